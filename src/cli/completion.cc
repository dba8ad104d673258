#include "cli/completion.h"

#include <functional>
#include <vector>

#include <fmt/format.h>

namespace croft::app {
namespace {

/// A command with where it is: " pool list", every name behind a blank; empty for the program.
struct Place {
  std::string at, parent;
  const CommandModel* command;
};

void gather(const CommandModel& command, const std::string& at, const std::string& parent, std::vector<Place>& out) {
  out.push_back({at, parent, &command});
  for (const CommandModel& one : command.commands) gather(one, at + " " + one.name, at, out);
}

std::vector<Place> places_of(const CommandModel& root) {
  std::vector<Place> places;
  gather(root, "", "", places);
  return places;
}

/// The options of a command and those of the program that every command takes.
std::vector<const OptionModel*> options_at(const CommandModel& root, const CommandModel& command) {
  std::vector<const OptionModel*> options;
  for (const OptionModel& option : command.options) options.push_back(&option);
  if (&command == &root) return options;
  for (const OptionModel& option : root.options) {
    if (option.names.back() != "--help" && option.names.back() != "--version") options.push_back(&option);
  }
  return options;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
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

/// `"X list"|"X ls") at="X list" ;;` for each command: how a word leads from one command to the next.
std::string steps(const std::vector<Place>& places, const char* indent) {
  std::string text;
  for (const Place& place : places) {
    if (place.at.empty()) continue;
    std::string patterns = "\"" + place.at + "\"";
    for (const std::string& alias : place.command->aliases) patterns += "|\"" + place.parent + " " + alias + "\"";
    text += fmt::format("{}{}) at=\"{}\" ;;\n", indent, patterns, place.at);
  }
  return text;
}

/// `" check --x"|" check -x") REPLY ;;` for each option with a fixed choice of values.
std::string values(const CommandModel& root, const std::vector<Place>& places, const char* indent,
                   const std::function<std::string(const std::string&)>& reply) {
  std::string text;
  for (const Place& place : places) {
    for (const OptionModel* option : options_at(root, *place.command)) {
      if (option->choices.empty()) continue;
      std::string patterns;
      for (const std::string& name : option->names) {
        patterns += (patterns.empty() ? "\"" : "|\"") + place.at + " " + name + "\"";
      }
      text += fmt::format("{}{}) {}; return ;;\n", indent, patterns, reply(joined(option->choices)));
    }
  }
  return text;
}

}  // namespace

std::string bash_completion(const CommandModel& root) {
  const std::vector<Place> places = places_of(root);
  std::string text = fmt::format(
      "# bash completion for {0}; made by `{0} completion bash`\n"
      "_{0}() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} at=\"\" words=\"\" i\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    case \"$at ${{COMP_WORDS[i]}}\" in\n",
      root.name);
  text += steps(places, "      ");
  text += "    esac\n  done\n  case \"$at $before\" in\n";
  text += values(root, places, "    ", [](const std::string& choices) {
    return fmt::format("COMPREPLY=($(compgen -W \"{}\" -- \"$word\"))", choices);
  });
  text += "  esac\n  case \"$at\" in\n";
  for (const Place& place : places) {
    std::vector<std::string> words;
    for (const CommandModel& one : place.command->commands) words.push_back(one.name);
    for (const OptionModel* option : options_at(root, *place.command)) words.push_back(option->names.back());
    text += fmt::format("    \"{}\") words=\"{}\" ;;\n", place.at, joined(words));
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
  std::string text = fmt::format(
      "#compdef {0}\n"
      "# zsh completion for {0}; made by `{0} completion zsh`\n"
      "_{0}() {{\n"
      "  local at=\"\" i\n"
      "  local -a commands options\n"
      "  for ((i = 2; i < CURRENT; i++)); do\n"
      "    case \"$at $words[i]\" in\n",
      root.name);
  text += steps(places, "      ");
  text += "    esac\n  done\n  case \"$at $words[CURRENT-1]\" in\n";
  text += values(root, places, "    ", [](const std::string& choices) { return "compadd -- " + choices; });
  text += "  esac\n  case \"$at\" in\n";
  for (const Place& place : places) {
    std::string commands, options;
    for (const CommandModel& one : place.command->commands) {
      commands += " " + sh_quoted(one.name + ":" + one.description);
    }
    for (const OptionModel* option : options_at(root, *place.command)) {
      options += " " + sh_quoted(option->names.back() + ":" + option->description);
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
    for (const OptionModel* option : options_at(root, *place.command)) {
      text += begin;
      for (const std::string& name : option->names) {
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (!option->choices.empty()) text += " -x -a " + fish_quoted(joined(option->choices));
      if (option->choices.empty() && !option->value.empty()) text += " -r";
      text += " -d " + fish_quoted(option->description) + "\n";
    }
  }
  return text;
}

}  // namespace croft::app
