#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "base/letters.h"
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

/// The options of the program that every command takes.
std::vector<OptionModel> common_options(const CommandModel& root) {
  std::vector<OptionModel> options;
  std::ranges::copy_if(root.options, std::back_inserter(options), [](const OptionModel& option) {
    return option.names.back() != "--help" && option.names.back() != "--version";
  });
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

namespace {

// ---------------------------------------------------------------- completion

/// A command with where it is: " pool list", every name behind a blank; empty for the program.
struct Place {
  std::string at, parent;
  const CommandModel* command;
};

void gather_places(const CommandModel& command, const std::string& at, const std::string& parent,
                   std::vector<Place>& out) {
  out.push_back({at, parent, &command});
  for (const CommandModel& one : command.commands) gather_places(one, at + " " + one.name, at, out);
}

std::vector<Place> places_of(const CommandModel& root) {
  std::vector<Place> places;
  gather_places(root, "", "", places);
  return places;
}

/// The options of a command and those of the program that every command takes.
std::vector<OptionModel> options_at(const CommandModel& root, const CommandModel& command) {
  std::vector<OptionModel> options = command.options;
  if (&command == &root) return options;
  const std::vector<OptionModel> common = common_options(root);
  options.insert(options.end(), common.begin(), common.end());
  return options;
}

/// In single quotes for a shell; `inside` stands for one in between.
std::string quoted(const std::string& text, const char* inside) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string(inside) : std::string(1, c);
  return out + "'";
}
std::string sh_quoted(const std::string& text) { return quoted(text, "'\\''"); }
std::string fish_quoted(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped += c == '\\' ? std::string("\\\\") : std::string(1, c);
  return quoted(escaped, "\\'");
}

/// The words of bash and zsh, where they differ.
struct Shell {
  std::string name, first_line, locals, words, word, before, reply, reply_end;
};

/// Their common part: finds the command at hand and offers the fixed choices of an option's value.
std::string head(const CommandModel& root, const std::vector<Place>& places, const Shell& shell) {
  std::string text = fmt::format(
      "{1}# {2} completion for {0}; made by `{0} completion {2}`\n"
      "_{0}() {{\n"
      "  local at=\"\" i\n{3}"
      "  for (({4}; i++)); do\n"
      "    case \"$at {5}\" in\n",
      root.name, shell.first_line, shell.name, shell.locals, shell.words, shell.word);
  for (const Place& place : places) {
    if (place.at.empty()) continue;
    std::string patterns = "\"" + place.at + "\"";
    for (const std::string& alias : place.command->aliases) patterns += "|\"" + place.parent + " " + alias + "\"";
    text += fmt::format("      {}) at=\"{}\" ;;\n", patterns, place.at);
  }
  text += fmt::format("    esac\n  done\n  case \"$at {}\" in\n", shell.before);
  for (const Place& place : places) {
    for (const OptionModel& option : options_at(root, *place.command)) {
      if (option.choices.empty()) continue;
      std::string patterns;
      for (const std::string& name : option.names) {
        patterns += (patterns.empty() ? "\"" : "|\"") + place.at + " " + name + "\"";
      }
      text += fmt::format("    {}) {}{}{}; return ;;\n", patterns, shell.reply, joined(option.choices, " "),
                          shell.reply_end);
    }
  }
  return text + "  esac\n  case \"$at\" in\n";
}

}  // namespace

std::string bash_completion(const CommandModel& root) {
  const std::vector<Place> places = places_of(root);
  std::string text =
      head(root, places,
           {"bash", "", "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words=\"\"\n",
            "i = 1; i < COMP_CWORD", "${COMP_WORDS[i]}", "$before", "COMPREPLY=($(compgen -W \"", "\" -- \"$word\"))"});
  for (const Place& place : places) {
    std::vector<std::string> words;
    for (const CommandModel& one : place.command->commands) words.push_back(one.name);
    for (const OptionModel& option : options_at(root, *place.command)) words.push_back(option.names.back());
    text += fmt::format("    \"{}\") words=\"{}\" ;;\n", place.at, joined(words, " "));
  }
  // Options only when one was begun: before that the names of files may be wanted.
  text += fmt::format(
      "  esac\n"
      "  if [[ $word != -* ]]; then words=${{words%% -*}}; [[ $words == -* ]] && words=\"\"; fi\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
      "}}\n"
      "complete -o default -F _{0} {0}\n",
      root.name);
  return text;
}

std::string zsh_completion(const CommandModel& root) {
  const std::vector<Place> places = places_of(root);
  std::string text = head(root, places,
                          {"zsh", fmt::format("#compdef {}\n", root.name), "  local -a commands options\n",
                           "i = 2; i < CURRENT", "$words[i]", "$words[CURRENT-1]", "compadd -- ", ""});
  for (const Place& place : places) {
    std::string commands, options;
    for (const CommandModel& one : place.command->commands) {
      commands += " " + sh_quoted(one.name + ":" + one.description);
    }
    for (const OptionModel& option : options_at(root, *place.command)) {
      options += " " + sh_quoted(option.names.back() + ":" + option.description);
    }
    text += fmt::format("    \"{}\")\n      commands=({})\n      options=({}) ;;\n", place.at,
                        commands.empty() ? "" : commands.substr(1), options.empty() ? "" : options.substr(1));
  }
  text += fmt::format(
      "  esac\n"
      "  if [[ $words[CURRENT] == -* ]]; then\n"
      "    _describe -o option options\n"
      "  elif (( $#commands )); then\n"
      "    _describe command commands\n"
      "  else\n"
      "    _files\n"
      "  fi\n"
      "}}\n"
      "if [[ $funcstack[1] == _{0} ]]; then _{0} \"$@\"; else compdef _{0} {0}; fi\n",
      root.name);
  return text;
}

std::string fish_completion(const CommandModel& root) {
  const std::vector<Place> places = places_of(root);
  std::string text = fmt::format(
      "# fish completion for {0}; made by `{0} completion fish`\n"
      "function __{0}_at\n"
      "  set -l at \"\"\n"
      "  set -l words (commandline -opc)\n"
      "  for word in $words[2..-1]\n"
      "    switch \"$at $word\"\n",
      root.name);
  for (const Place& place : places) {
    if (place.at.empty()) continue;
    std::string patterns = "\"" + place.at + "\"";
    for (const std::string& alias : place.command->aliases) patterns += " \"" + place.parent + " " + alias + "\"";
    text += fmt::format("      case {}\n        set at \"{}\"\n", patterns, place.at);
  }
  text += "    end\n  end\n  test \"$at\" = \"$argv[1]\"\nend\n";
  for (const Place& place : places) {
    const std::string begin = fmt::format("complete -c {0} -n {1}", root.name,
                                          fish_quoted(fmt::format("__{}_at \"{}\"", root.name, place.at)));
    for (const CommandModel& one : place.command->commands) {
      text += fmt::format("{} -f -a {} -d {}\n", begin, one.name, fish_quoted(one.description));
    }
    for (const OptionModel& option : options_at(root, *place.command)) {
      text += begin;
      for (const std::string& name : option.names) {
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (!option.choices.empty()) text += " -x -a " + fish_quoted(joined(option.choices, " "));
      if (option.choices.empty() && !option.value.empty()) text += " -r";
      text += " -d " + fish_quoted(option.description) + "\n";
    }
  }
  return text;
}

}  // namespace croft::app
