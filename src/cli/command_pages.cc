#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "base/letters.h"
#include "base/texts.h"
#include "cli/command_model.h"

namespace croft::app {
namespace {

// ---------------------------------------------------------------- help
constexpr std::size_t kWidth = 100;      // of a line
constexpr std::size_t kHeadingMax = 34;  // a longer one stands in a line of its own

using Rows = std::vector<std::pair<std::string, std::string>>;

constexpr std::pair<const char*, const char*> kExitCodes[] = {{"0", "fine"},
                                                              {"1", "error"},
                                                              {"2", "usage"},
                                                              {"3", "findings"},
                                                              {"4", "the store cannot be reached"},
                                                              {"5", "refused for safety"}};

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

/// "-o, --output table|wide|json|yaml".
std::string option_heading(const OptionModel& option) {
  return joined(option.names, ", ") +
         (option.names.front().starts_with('-') && !option.value.empty() ? " " + option.value : "");
}

/// Its description with what it is by default and where else it may come from.
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

Rows rows_of(const std::vector<OptionModel>& options) {
  Rows rows;
  for (const OptionModel& option : options) rows.emplace_back(option_heading(option), option_text(option));
  return rows;
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

/// The command of these names below `root`, nullptr when there is none. No names: `root`.
const CommandModel* command_at(const CommandModel& root, const std::vector<std::string>& names) {
  const CommandModel* command = &root;
  for (const std::string& name : names) {
    const auto it = std::ranges::find(command->commands, name, &CommandModel::name);
    if (it == command->commands.end()) return nullptr;
    command = &*it;
  }
  return command;
}

/// `croft pool create NAME --cidr CIDR [options]`; `path` has the names below `root`.
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

}  // namespace

std::vector<OptionModel> common_options(const CommandModel& root) {
  std::vector<OptionModel> options;
  std::ranges::copy_if(root.options, std::back_inserter(options), [](const OptionModel& option) {
    return option.names.back() != "--help" && option.names.back() != "--version";
  });
  return options;
}

std::string help_page(const CommandModel& root, const std::vector<std::string>& path) {
  const CommandModel* command = command_at(root, path);
  if (command == nullptr) return "";
  std::string text = wrapped(command->description, kWidth, 0) + "\nUsage: " + usage_line(root, path) + "\n";
  text += commands_text(*command);
  if (!command->arguments.empty()) text += "\nArguments:\n" + two_columns(rows_of(command->arguments));
  if (!command->options.empty()) text += "\nOptions:\n" + two_columns(rows_of(command->options));
  if (path.empty()) text += "\nExit codes:\n" + two_columns(Rows(std::begin(kExitCodes), std::end(kExitCodes)));
  const std::vector<OptionModel> common = path.empty() ? std::vector<OptionModel>() : common_options(root);
  if (!common.empty()) text += "\nOptions of every command:\n" + two_columns(rows_of(common));
  if (!command->notes.empty()) text += "\n" + wrapped(command->notes, kWidth, 0);
  return text + examples_text(*command);
}

namespace {

// ---------------------------------------------------------------- man pages

/// Text as roff reads it: no minus that becomes a hyphen, no line that begins with a request.
std::string roff(const std::string& text) {
  std::string out;
  bool at_begin = true;
  for (const char c : text) {
    if (at_begin && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
    at_begin = c == '\n';
  }
  return out;
}

/// "croft-pool-list".
std::string page_name(const CommandModel& root, const std::vector<std::string>& path) {
  return root.name + (path.empty() ? "" : "-") + joined(path, "-");
}

std::string items(const char* title, const std::vector<OptionModel>& options) {
  std::string text;
  for (const OptionModel& option : options) {
    text += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(option_heading(option)), roff(option_text(option)));
  }
  return text.empty() ? "" : fmt::format(".SH {}\n", title) + text;
}

std::string commands_items(const CommandModel& command, const std::string& name, int section) {
  std::string text;
  for (const CommandModel& one : command.commands) {
    text += fmt::format(".TP\n\\fB{}\\-{}\\fR({})\n{}\n", roff(name), roff(one.name), section, roff(one.description));
  }
  return text.empty() ? "" : ".SH COMMANDS\n" + text;
}

std::string page_text(const CommandModel& root, const CommandModel& command, const std::vector<std::string>& path,
                      const std::string& version, int section) {
  const std::string name = page_name(root, path);
  std::string text = fmt::format(".TH {} {} \"\" \"{} {}\" \"{}\"\n", roff(raised(name)), section, root.name, version,
                                 section == 8 ? "System Administration" : "User Commands");
  text += fmt::format(".SH NAME\n{} \\- {}\n", roff(name), roff(command.description));
  text += fmt::format(".SH SYNOPSIS\n\\fB{}\\fR\n", roff(usage_line(root, path)));
  text += fmt::format(".SH DESCRIPTION\n{}\n", roff(command.notes.empty() ? command.description : command.notes));
  text += commands_items(command, name, section) + items("ARGUMENTS", command.arguments) +
          items("OPTIONS", command.options);
  if (!path.empty()) text += items("OPTIONS OF EVERY COMMAND", common_options(root));
  if (!command.examples.empty()) text += ".SH EXAMPLES\n.nf\n" + roff(joined(command.examples, "\n")) + "\n.fi\n";
  text += ".SH EXIT STATUS\n";
  for (const auto& [code, meaning] : kExitCodes) text += fmt::format(".TP\n{}\n{}\n", code, meaning);
  if (!path.empty()) {
    const std::vector<std::string> above(path.begin(), path.end() - 1);
    text += fmt::format(".SH SEE ALSO\n\\fB{}\\fR({})\n", roff(page_name(root, above)), section);
  }
  return text;
}

void gather(const CommandModel& root, const CommandModel& command, const std::vector<std::string>& path,
            const std::string& version, int section, std::vector<ManPage>& out) {
  out.push_back(
      {fmt::format("{}.{}", page_name(root, path), section), page_text(root, command, path, version, section)});
  for (const CommandModel& one : command.commands) {
    std::vector<std::string> below = path;
    below.push_back(one.name);
    gather(root, one, below, version, section, out);
  }
}

}  // namespace

std::vector<ManPage> man_pages(const CommandModel& root, const std::string& version, int section) {
  std::vector<ManPage> pages;
  gather(root, root, {}, version, section, pages);
  return pages;
}

}  // namespace croft::app
