#include "cli/command_model.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>

namespace croft::app {
namespace {

/// "--cluster-cidr" takes a CIDR.
std::string named_after(const CLI::Option& option) {
  if (option.get_lnames().empty()) return "TEXT";
  std::string name = option.get_lnames().front();
  name = name.substr(name.rfind('-') + 1);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return name;
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
  std::string text;
  for (const std::string& choice : choices_in(type_name)) text += (text.empty() ? "" : "|") + choice;
  if (!text.empty()) return text;
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

}  // namespace croft::app
