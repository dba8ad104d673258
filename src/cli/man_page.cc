#include "cli/man_page.h"

#include <cstddef>

#include <fmt/format.h>

#include "cli/help_page.h"

namespace croft::app {
namespace {

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

std::string joined(const std::string& program, const std::vector<std::string>& path, const char* between) {
  std::string text = program;
  for (const std::string& name : path) text += between + name;
  return text;
}

std::string items(const char* title, const std::vector<OptionModel>& options) {
  std::string text;
  for (const OptionModel& option : options) {
    text += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(option_heading(option)), roff(option_text(option)));
  }
  return text.empty() ? "" : fmt::format(".SH {}\n", title) + text;
}

std::string commands_text(const CommandModel& command, const std::string& name, int section) {
  std::string text;
  for (const CommandModel& one : command.commands) {
    text += fmt::format(".TP\n\\fB{}\\-{}\\fR({})\n{}\n", roff(name), roff(one.name), section, roff(one.description));
  }
  return text.empty() ? "" : ".SH COMMANDS\n" + text;
}

std::string upper(std::string text) {
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

constexpr const char* kExitStatus =
    ".SH EXIT STATUS\n.TP\n0\nfine\n.TP\n1\nerror\n.TP\n2\nusage\n.TP\n3\nfindings\n.TP\n4\nthe store cannot be "
    "reached\n.TP\n5\nrefused for safety\n";

std::string page_text(const CommandModel& root, const CommandModel& command, const std::vector<std::string>& path,
                      const std::string& version, int section) {
  const std::string name = joined(root.name, path, "-");
  std::string text = fmt::format(".TH {} {} \"\" \"{} {}\" \"{}\"\n", roff(upper(name)), section, root.name, version,
                                 section == 8 ? "System Administration" : "User Commands");
  text += fmt::format(".SH NAME\n{} \\- {}\n", roff(name), roff(command.description));
  text += fmt::format(".SH SYNOPSIS\n\\fB{}\\fR\n", roff(usage_line(root, path)));
  text += fmt::format(".SH DESCRIPTION\n{}\n", roff(command.notes.empty() ? command.description : command.notes));
  text +=
      commands_text(command, name, section) + items("ARGUMENTS", command.arguments) + items("OPTIONS", command.options);
  std::vector<OptionModel> common;
  for (const OptionModel& option : root.options) {
    if (option.names.back() != "--help" && option.names.back() != "--version") common.push_back(option);
  }
  if (!path.empty()) text += items("OPTIONS OF EVERY COMMAND", common);
  std::string examples;
  for (const std::string& line : command.examples) {
    examples += roff(line) + "\n";
  }
  if (!examples.empty()) text += ".SH EXAMPLES\n.nf\n" + examples + ".fi\n";
  text += kExitStatus;
  if (!path.empty()) {
    const std::vector<std::string> above(path.begin(), path.end() - 1);
    text += fmt::format(".SH SEE ALSO\n\\fB{}\\fR({})\n", roff(joined(root.name, above, "-")), section);
  }
  return text;
}

void gather(const CommandModel& root, const CommandModel& command, const std::vector<std::string>& path,
            const std::string& version, int section, std::vector<ManPage>& out) {
  out.push_back(
      {fmt::format("{}.{}", joined(root.name, path, "-"), section), page_text(root, command, path, version, section)});
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
