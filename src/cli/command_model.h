#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's
class App;
}

namespace croft::app {

// The tree of commands as values: what help, suggestions, completions and man pages are made of.

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
/// The values of "TEXT:{a,b}" or of "{a->0,b->1} OR {0,1}".
[[nodiscard]] std::vector<std::string> choices_in(const std::string& type_name);

}  // namespace croft::app
