#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's
class App;
}

namespace croft::app {

// The tree of commands as values, and all that is made of it: help, suggestions, completions and man pages.

/// An option, or an argument that stands by itself.
struct OptionModel {
  std::vector<std::string> names;    ///< "-o", "--output"; of an argument its name, NAME
  std::string value;                 ///< what it takes in plain words, "NUMBER" or "a|b"; empty: a switch
  std::vector<std::string> choices;  ///< the values it may have, when they can be listed
  std::string description;
  std::string default_value, environment;  ///< empty: none
  bool required = false;
  bool many = false;  ///< it may be given again
};

struct CommandModel {
  std::string name;
  std::vector<std::string> aliases;
  std::string description;
  std::string notes;                  ///< what there is to say besides
  std::vector<std::string> examples;  ///< command lines that show it, as they are typed
  std::vector<OptionModel> options, arguments;
  std::vector<CommandModel> commands;
};

/// The command lines that show a command ("pool create"; "" is the program).
using Examples = std::function<std::vector<std::string>(const std::string& path)>;

/// The model of a program's own App: all of it.
[[nodiscard]] CommandModel model_of(const CLI::App& app, const Examples& examples);

/// Gives an App, and the commands that are added to it afterwards, the help of help_page().
void use_help_pages(CLI::App& app, const Examples& examples);

/// The value that an option takes, in plain words, from CLI11's: "TEXT:{a,b}" is "a|b", "INT in [0 - 9]" "0 to 9".
[[nodiscard]] std::string plain_value(const std::string& type_name);

/// The output of `--help` of the command at `path`, the names below `root`: its own arguments and options, those that
/// every command takes, and its own examples.
[[nodiscard]] std::string help_page(const CommandModel& root, const std::vector<std::string>& path);

struct ManPage {
  std::string file;  ///< "croft-pool-list.1"
  std::string text;  ///< for man(1), in the macros of man(7)
};

/// A page for the program and one for each command below it. `section` is 1 for what people type, 8 for
/// daemons. The same tree and version give the same bytes.
[[nodiscard]] std::vector<ManPage> man_pages(const CommandModel& root, const std::string& version, int section = 1);

/// The options of the program that every command takes.
[[nodiscard]] std::vector<OptionModel> common_options(const CommandModel& root);

/// The words that may stand in the place of the last of `words`; the others are typed already. A line each, with a tab
/// and what it is: commands, options where one was begun, choices of an option's value. Empty: the name of a file, or
/// anything. No store is asked.
[[nodiscard]] std::string completions(const CommandModel& root, std::vector<std::string> words);

/// The error of a command line that could not be read, in words for a person. It names a command or an option that does
/// not exist, with the nearest ones, or a missing command. `arguments` are without the program's name. nullopt: none of
/// these; what the parser says is all there is.
[[nodiscard]] std::optional<std::string> usage_error(const CommandModel& root,
                                                     const std::vector<std::string>& arguments);

/// The names of the commands that a command line begins with, none of an alias: {"pool", "list"} of `pools ls --x`.
[[nodiscard]] std::vector<std::string> command_path(const CommandModel& root,
                                                    const std::vector<std::string>& arguments);

}  // namespace croft::app
