#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "base/nearest.h"
#include "base/net/echo.h"
#include "cli/command_model.h"

namespace croft::app {
namespace {

/// A walk along the arguments, down the tree of commands.
struct Walk {
  std::vector<const CommandModel*> chain;  ///< from the program to the command at hand
  std::vector<std::string> path;           ///< the names of those below the program
  std::optional<std::string> error;

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

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
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
  return fmt::format("`{}` has no option {}{}", walk.typed(), net::echo(name), did_you_mean(name, known));
}

std::string unknown_command(const Walk& walk, const std::string& word) {
  const CommandModel& here = *walk.chain.back();
  std::vector<std::string> known = names_of_commands(here);
  std::string meant = did_you_mean(word, known);
  if (meant.empty()) {
    for (const CommandModel& one : here.commands) known.insert(known.end(), one.aliases.begin(), one.aliases.end());
    meant = did_you_mean(word, known);
  }
  if (meant.empty()) meant = "; there are " + listed(names_of_commands(here));
  return fmt::format("`{}` has no command {}{}", walk.typed(), net::echo(word), meant);
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
  return option->value.empty() || has_value_in_it ? 1 : 2;
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
    } else if (!here.commands.empty()) {
      walk.error = unknown_command(walk, word);
    } else if (here.arguments.empty()) {
      walk.error = fmt::format("`{}` takes no argument, and was given {}", walk.typed(), net::echo(word));
    }
  }
  return walk;
}

}  // namespace

std::optional<std::string> usage_error(const CommandModel& root, const std::vector<std::string>& arguments) {
  Walk walk = walk_along(root, arguments);
  if (walk.error) return walk.error;
  const CommandModel& here = *walk.chain.back();
  if (here.commands.empty()) return std::nullopt;
  return fmt::format("`{}` needs a command: {}", walk.typed(), listed(names_of_commands(here)));
}

std::vector<std::string> command_path(const CommandModel& root, const std::vector<std::string>& arguments) {
  return walk_along(root, arguments).path;
}

}  // namespace croft::app
