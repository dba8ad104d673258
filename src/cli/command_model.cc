#include "cli/command_model.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/did_you_mean.h"
#include "base/letters.h"
#include "base/printable.h"
#include "base/texts.h"

namespace croft::app {
namespace {

/// "--cluster-cidr" takes a CIDR.
std::string named_after(const CLI::Option& option) {
  if (option.get_lnames().empty()) return "TEXT";
  const std::string& name = option.get_lnames().front();
  return raised(name.substr(name.rfind('-') + 1));
}

/// The values of "TEXT:{a,b}" or of "{a->0,b->1} OR {0,1}".
std::vector<std::string> choices_in(const std::string& type_name) {
  std::vector<std::string> choices;
  const std::size_t open = type_name.find('{');
  const std::size_t close = type_name.find('}', open);
  if (open == std::string::npos || close == std::string::npos) return choices;
  std::string word;
  for (std::size_t i = open + 1; i <= close; ++i) {
    const char c = type_name[i];
    if (c != ',' && c != '}') {
      word += c;
      continue;
    }
    choices.push_back(word.substr(0, word.find("->")));
    word.clear();
  }
  return choices;
}

OptionModel model_of(const CLI::Option& option) {
  OptionModel model;
  if (option.get_positional()) {
    model.names.push_back(option.get_name(true, false));
  } else {
    for (const std::string& name : option.get_snames()) model.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) model.names.push_back("--" + name);
  }
  model.description = option.get_description();
  model.environment = option.get_envname();
  model.required = option.get_required();
  model.many = option.get_expected_max() > 1;
  if (option.get_expected_max() == 0 || option.get_type_size_max() == 0) return model;  // a switch
  const std::string type = option.get_type_name();
  model.choices = choices_in(type);
  model.value = plain_value(type);
  if (model.value == "TEXT") model.value = named_after(option);
  model.default_value = option.get_default_str();
  return model;
}

}  // namespace

std::string plain_value(const std::string& type_name) {
  if (const auto choices = choices_in(type_name); !choices.empty()) return joined(choices, "|");
  // The option's author said what it takes.
  std::string first = type_name.substr(0, type_name.find(':'));
  const std::string_view own[] = {"TEXT", "INT", "UINT", "FLOAT", "BOOLEAN", "ENUM"};
  if (std::ranges::none_of(own, [&](std::string_view one) { return first.starts_with(one); })) return first;
  const std::size_t open = type_name.find("in [");
  const std::size_t dash = type_name.find(" - ", open);
  const std::size_t close = type_name.find(']', open);
  if (open != std::string::npos && dash < close && close != std::string::npos) {
    return type_name.substr(open + 4, dash - open - 4) + " to " + type_name.substr(dash + 3, close - dash - 3);
  }
  if (type_name.starts_with("TEXT")) return "TEXT";
  if (type_name.starts_with("BOOL")) return "true|false";
  const bool is_number =
      type_name.starts_with("INT") || type_name.starts_with("UINT") || type_name.starts_with("FLOAT");
  return is_number ? "NUMBER" : "TEXT";
}

namespace {

CommandModel model_of(const CLI::App& app, const Examples& examples, const std::string& path) {
  CommandModel model;
  model.name = app.get_name();
  model.aliases = app.get_aliases();
  model.description = app.get_description();
  model.notes = app.get_footer();
  model.examples = examples(path);
  for (const CLI::Option* option : app.get_options({})) {
    (option->get_positional() ? model.arguments : model.options).push_back(model_of(*option));
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    model.commands.push_back(model_of(*command, examples, path + (path.empty() ? "" : " ") + command->get_name()));
  }
  return model;
}

/// The help of each command, from the tree as a whole.
class HelpPages : public CLI::Formatter {
 public:
  explicit HelpPages(Examples examples) : examples_(std::move(examples)) {}
  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const override {
    std::vector<std::string> path;
    const CLI::App* root = app;
    for (; root->get_parent() != nullptr; root = root->get_parent()) path.insert(path.begin(), root->get_name());
    return help_page(model_of(*root, examples_, ""), path);
  }

 private:
  const Examples examples_;
};

}  // namespace

CommandModel model_of(const CLI::App& app, const Examples& examples) { return model_of(app, examples, ""); }

void use_help_pages(CLI::App& app, const Examples& examples) { app.formatter(std::make_shared<HelpPages>(examples)); }

namespace {

/// A walk along the arguments, down the tree of commands.
struct Walk {
  std::vector<const CommandModel*> chain;  ///< from the program to the command at hand
  std::vector<std::string> path;           ///< the names of those below the program
  std::optional<std::string> error;
  const OptionModel* valueless = nullptr;  ///< the option that the last argument is, when its value is missing

  [[nodiscard]] std::string typed() const {
    std::string text = chain.front()->name;
    for (const std::string& name : path) text += " " + name;
    return text;
  }
};

bool is_named(const CommandModel& command, const std::string& word) {
  return command.name == word || std::ranges::find(command.aliases, word) != command.aliases.end();
}

std::vector<std::string> names_of_commands(const CommandModel& command) {
  std::vector<std::string> names;
  for (const CommandModel& one : command.commands) names.push_back(one.name);
  return names;
}

/// Looks among the options of the command at hand and of those above it.
const OptionModel* find_option(const Walk& walk, const std::string& name) {
  for (auto command = walk.chain.rbegin(); command != walk.chain.rend(); ++command) {
    for (const OptionModel& option : (*command)->options) {
      if (std::ranges::find(option.names, name) != option.names.end()) return &option;
    }
  }
  return nullptr;
}

std::string unknown_option(const Walk& walk, const std::string& name) {
  std::vector<std::string> known;
  for (const CommandModel* command : walk.chain) {
    for (const OptionModel& option : command->options) {
      std::ranges::copy_if(option.names, std::back_inserter(known), [](const auto& n) { return n.starts_with("--"); });
    }
  }
  return fmt::format("`{}` has no option {}{}", walk.typed(), echo(name), did_you_mean(name, known));
}

std::string unknown_command(const Walk& walk, const std::string& word) {
  const CommandModel& here = *walk.chain.back();
  std::vector<std::string> known = names_of_commands(here);
  std::string meant = did_you_mean(word, known);
  if (meant.empty()) {
    for (const CommandModel& one : here.commands) known.insert(known.end(), one.aliases.begin(), one.aliases.end());
    meant = did_you_mean(word, known);
  }
  if (meant.empty()) meant = "; there are " + joined(names_of_commands(here));
  return fmt::format("`{}` has no command {}{}", walk.typed(), echo(word), meant);
}

/// How many words from `at` on belong to the option there; sets the error when there is no such option.
std::size_t words_of_option(Walk& walk, const std::vector<std::string>& arguments, std::size_t at) {
  const std::string& word = arguments[at];
  const bool is_long = word.starts_with("--");
  const std::size_t equals = word.find('=');
  const std::string name = is_long ? word.substr(0, equals) : word.substr(0, 2);
  const OptionModel* option = find_option(walk, name);
  if (option == nullptr) {
    walk.error = unknown_option(walk, name);
    return 1;
  }
  const bool has_value_in_it = is_long ? equals != std::string::npos : word.size() > 2;
  if (option->value.empty() || has_value_in_it) return 1;
  if (at + 1 == arguments.size()) walk.valueless = option;
  return 2;
}

bool is_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && (word[1] < '0' || word[1] > '9');
}

Walk walk_along(const CommandModel& root, const std::vector<std::string>& arguments) {
  Walk walk{{&root}, {}, {}};
  for (std::size_t at = 0; at < arguments.size() && !walk.error;) {
    const std::string& word = arguments[at];
    if (word == "--") break;
    if (is_option(word)) {
      at += words_of_option(walk, arguments, at);
      continue;
    }
    ++at;
    const CommandModel& here = *walk.chain.back();
    const auto it = std::ranges::find_if(here.commands, [&](const CommandModel& one) { return is_named(one, word); });
    if (it != here.commands.end()) {
      walk.chain.push_back(&*it);
      walk.path.push_back(it->name);
    } else if (!here.commands.empty() && here.arguments.empty()) {
      walk.error = unknown_command(walk, word);
    } else if (here.arguments.empty()) {
      walk.error = fmt::format("`{}` takes no argument, and was given {}", walk.typed(), echo(word));
    }
  }
  return walk;
}

std::string completion_line(const std::string& word, const std::string& description) {
  return fmt::format("{}\t{}\n", word, description);
}

}  // namespace

std::string completions(const CommandModel& root, std::vector<std::string> words) {
  if (words.empty()) words.emplace_back();
  const std::string word = std::move(words.back());
  words.pop_back();
  const Walk walk = walk_along(root, words);
  std::string text;
  if (walk.error) return text;
  const std::size_t equals = word.starts_with("--") ? word.find('=') : word.npos;
  const OptionModel* option = equals == word.npos ? walk.valueless : find_option(walk, word.substr(0, equals));
  if (option != nullptr) {
    const std::string before = equals == word.npos ? "" : word.substr(0, equals + 1);
    for (const std::string& choice : option->choices) text += completion_line(before + choice, option->description);
    return text;
  }
  const CommandModel& here = *walk.chain.back();
  if (!word.starts_with('-')) {
    for (const CommandModel& one : here.commands) text += completion_line(one.name, one.description);
    return text;
  }
  const std::vector<OptionModel> common = &here == &root ? std::vector<OptionModel>() : common_options(root);
  for (const auto* options : {&here.options, &common}) {
    for (const OptionModel& one : *options) text += completion_line(one.names.back(), one.description);
  }
  return text;
}

std::optional<std::string> usage_error(const CommandModel& root, const std::vector<std::string>& arguments) {
  Walk walk = walk_along(root, arguments);
  if (walk.error) return walk.error;
  const CommandModel& here = *walk.chain.back();
  if (here.commands.empty() || !here.arguments.empty()) return std::nullopt;
  return fmt::format("`{}` needs a command: {}", walk.typed(), joined(names_of_commands(here)));
}

std::vector<std::string> command_path(const CommandModel& root, const std::vector<std::string>& arguments) {
  return walk_along(root, arguments).path;
}

}  // namespace croft::app
