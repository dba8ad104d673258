#include "cli/help_page.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

namespace croft::app {
namespace {

constexpr std::size_t kWidth = 100;      // of a line
constexpr std::size_t kHeadingMax = 34;  // a longer one stands in a line of its own

using Rows = std::vector<std::pair<std::string, std::string>>;

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

/// Text in lines of at most `width`, all but the first with `indent` blanks before them.
std::string wrapped(const std::string& text, std::size_t width, std::size_t indent) {
  std::string out, line;
  const auto end_line = [&] {
    out += (out.empty() ? "" : std::string(indent, ' ')) + line + "\n";
    line.clear();
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(" \n", at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!line.empty() && line.size() + 1 + word.size() > width) end_line();
    if (!word.empty()) line += (line.empty() ? "" : " ") + word;
    if (end < text.size() && text[end] == '\n') end_line();
    at = end + 1;
  }
  if (!line.empty() || out.empty()) end_line();
  return out;
}

std::string two_columns(const Rows& rows) {
  std::size_t widest = 0;
  for (const auto& [heading, text] : rows) {
    if (heading.size() <= kHeadingMax) widest = std::max(widest, heading.size());
  }
  const std::size_t indent = widest + 5;
  std::string out;
  for (const auto& [heading, text] : rows) {
    const bool is_alone = heading.size() > widest;
    out += "  " + heading + (is_alone ? "\n" : std::string()) +
           std::string(is_alone ? indent : indent - 2 - heading.size(), ' ') + wrapped(text, kWidth - indent, indent);
  }
  return out;
}

Rows rows_of(const std::vector<OptionModel>& options) {
  Rows rows;
  for (const OptionModel& option : options) rows.emplace_back(option_heading(option), option_text(option));
  return rows;
}

bool is_of_program(const OptionModel& option) {
  return std::ranges::any_of(option.names,
                             [](const std::string& name) { return name == "--help" || name == "--version"; });
}

/// The options of the program that every command takes.
std::vector<OptionModel> common_options(const CommandModel& root) {
  std::vector<OptionModel> options;
  std::ranges::copy_if(root.options, std::back_inserter(options), [](const auto& o) { return !is_of_program(o); });
  return options;
}

std::string commands_text(const CommandModel& command) {
  Rows rows;
  for (const CommandModel& one : command.commands) {
    std::string names = one.name;
    for (const std::string& alias : one.aliases) names += ", " + alias;
    rows.emplace_back(names, one.description);
  }
  return rows.empty() ? "" : "\nCommands:\n" + two_columns(rows);
}

std::string examples_text(const CommandModel& command) {
  std::string text;
  for (const std::string& example : command.examples) text += "  " + example + "\n";
  return text.empty() ? "" : "\nExamples:\n" + text;
}

}  // namespace

const CommandModel* command_at(const CommandModel& root, const std::vector<std::string>& names) {
  const CommandModel* command = &root;
  for (const std::string& name : names) {
    const auto it = std::ranges::find(command->commands, name, &CommandModel::name);
    if (it == command->commands.end()) return nullptr;
    command = &*it;
  }
  return command;
}

std::string usage_line(const CommandModel& root, const std::vector<std::string>& path) {
  std::string text = root.name;
  for (const std::string& name : path) text += " " + name;
  const CommandModel* command = command_at(root, path);
  if (command == nullptr) return text;
  if (!command->commands.empty()) text += " COMMAND";
  for (const OptionModel& argument : command->arguments) {
    const std::string name = argument.names.front() + (argument.many ? " ..." : "");
    text += argument.required ? " " + name : " [" + name + "]";
  }
  for (const OptionModel& option : command->options) {
    if (option.required) text += fmt::format(" {} {}", option.names.back(), option.value);
  }
  return text + " [options]";
}

std::string option_heading(const OptionModel& option) {
  return joined(option.names, ", ") +
         (option.names.front().starts_with('-') && !option.value.empty() ? " " + option.value : "");
}

std::string option_text(const OptionModel& option) {
  std::vector<std::string> more;
  if (option.required) more.emplace_back("required");
  // Where the text says it already, once is enough.
  if (!option.default_value.empty() && option.description.find("default") == std::string::npos) {
    more.push_back("default: " + option.default_value);
  }
  if (!option.environment.empty()) more.push_back("environment: " + option.environment);
  return option.description + (more.empty() ? "" : " (" + joined(more, "; ") + ")");
}

std::string help_page(const CommandModel& root, const std::vector<std::string>& path) {
  const CommandModel* command = command_at(root, path);
  if (command == nullptr) return "";
  std::string text = wrapped(command->description, kWidth, 0) + "\nUsage: " + usage_line(root, path) + "\n";
  text += commands_text(*command);
  if (!command->arguments.empty()) text += "\nArguments:\n" + two_columns(rows_of(command->arguments));
  if (path.empty()) {
    text += "\nOptions:\n" + two_columns(rows_of(command->options));
  } else {
    if (!command->options.empty()) text += "\nOptions:\n" + two_columns(rows_of(command->options));
    const std::vector<OptionModel> common = common_options(root);
    if (!common.empty()) text += "\nOptions of every command:\n" + two_columns(rows_of(common));
  }
  if (!command->notes.empty()) text += "\n" + wrapped(command->notes, kWidth, 0);
  return text + examples_text(*command);
}

}  // namespace croft::app
