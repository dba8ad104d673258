#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/clock.h"
#include "base/printable.h"
#include "base/result.h"
#include "cli/croft/json_output.h"
#include "cli/stores/open_store.h"
#include "ipam/use/transact.h"
#include "store/pause.h"
#include "store/store.h"
#include "store/store_url.h"

namespace croft::app {

/// How a command that lists something prints its table (listing.h).
struct ListOptions {
  bool no_headers = false, watch = false;
  std::string sort_by;  ///< a heading; empty: as it comes
};

/// The options every command takes, and what runs when the line has been read.
struct CommandLine {
  enum class Output { table, wide, json, yaml };

  std::string store_url;  ///< empty until choose_store(), where none was given
  Output output = Output::table;
  std::string colour = "auto";
  /// The command that was chosen; returns the exit code, or an error that main() prints.
  std::function<Result<int>(CommandLine&)> run;

  const Clock& clock;
  Random& random;
  std::unique_ptr<store::Store> store;
  store::Pausable* pausable = nullptr;  ///< the store itself, behind all that stands before it; null: none is open
  ListOptions listing = {};
  std::string kubeconfig{};  ///< of --kubeconfig and --context, as kubectl has them
  std::string context{};
  bool is_default_store = false;  ///< nobody has named one
  /// The command asks the pods of a cluster beside any store: --kubeconfig and --context may name it then.
  bool asks_cluster = false;
  /// The Kubernetes API whose pods hold the addresses: the store's own, or the one that is named so. Empty: none.
  std::string cluster_url{};
  std::string cluster_words{};  ///< the options that name it beside the store, each after a space
  std::map<std::string, std::set<std::string>> not_read{};  ///< note_not_read: what, by the right that lacks

  /// Settles which store is meant, once the line has been read. It is --store; or else the Kubernetes API that
  /// --context and --kubeconfig name, or that kubectl talks to when the program is its plugin (`kubectl croft`); or
  /// else the one on this machine. Error: invalid_argument for flags that contradict each other.
  [[nodiscard]] Result<void> choose_store(bool is_kubectl_plugin);
  /// Opens the store of --store; with `create` an absent one is made.
  [[nodiscard]] Result<engine::Context> open(bool create = false);
  /// The same for a command that only looks: with the rights to read Calico's records nothing of Croft's has to be
  /// there (open_store_to_look). Writes through it are refused.
  [[nodiscard]] Result<engine::Context> open_to_look();
  /// Something that this account may not read, and that was passed over: "running pods". main() tells of all in a line.
  void note_not_read(const std::string& what, const Error& why);
  [[nodiscard]] bool in_colour() const;
  /// Whether data is wanted and no table: JSON or YAML.
  [[nodiscard]] bool wants_data() const { return output == Output::json || output == Output::yaml; }
  [[nodiscard]] bool wide() const { return output == Output::wide; }
  /// The text of data in the form that was asked for; what must not reach a terminal is escaped as JSON does it.
  [[nodiscard]] std::string data_text(const Data& data) const;

 private:
  [[nodiscard]] std::string_view if_absent() const;
  [[nodiscard]] Result<engine::Context> take(Result<std::unique_ptr<store::Store>> opened);
};

/// Opens a store as open_store does, with all parts that this program has. Error also: unavailable for one that is not
/// there, with `if_absent` behind what it says.
[[nodiscard]] Result<std::unique_ptr<store::Store>> open_by_url(const std::string& url, store::OpenMode mode,
                                                                const Clock& clock, std::string_view if_absent = "");

/// Prints to standard output; a closed pipe ends the program quietly.
void print(const std::string& text, Printed how = Printed::text);
/// The records that were passed over as this account may not read them, in one line; empty: none.
[[nodiscard]] std::string not_read_text(const CommandLine& line);

/// A line on standard error. A warning is made printable, and stands behind "croft: ".
void tell(const std::string& text);
void warn(const std::string& text);

/// The whole tree of commands with the options that all of them take; what is read goes into `line`.
void add_everything(CLI::App& app, CommandLine& line);

/// Adds one noun with its verbs below `app`, or verbs to the noun that it is given. Each is in the room of its noun.
using AddCommands = void(CLI::App& app, CommandLine& line);
AddCommands add_pool_commands, add_block_commands, add_ip_commands, add_node_commands, add_affinity_commands,
    add_agent_commands, add_config_commands, add_check_command, add_explain_command, add_host_local_commands,
    add_service_commands, add_store_commands, add_migrate_commands, add_record_commands, add_reservation_commands,
    add_self_commands, add_plan_command, add_history_commands, add_top_command, add_vpc_commands;
AddCommands add_service_audit_commands, add_ip_release_command, add_node_range_commands, add_pool_split_command,
    add_pool_defaults_command, add_host_local_import_command;

/// The program under the name `cnivpctl`, in the manner of the one that UK8S has
/// (docs/notes/warm-pool.md#cnivpctl): errors are one line `error: <text>` on standard output, with exit code 1.
/// Returns the exit code.
[[nodiscard]] int run_cnivpctl(int argc, char** argv, const Clock& clock);

/// A noun, which needs one of its commands.
[[nodiscard]] CLI::App* add_noun(CLI::App& app, const char* name, const char* help);

/// Adds a command that runs `run` with the options that its line is read into.
template <class Options>
[[nodiscard]] auto add_command(CLI::App& noun, CommandLine& line, const char* name, const std::string& help,
                               Result<int> (*run)(CommandLine&, const Options&), bool asks_cluster = false) {
  const auto options = std::make_shared<Options>();
  CLI::App* const command = noun.add_subcommand(name, help);
  command->callback([&line, options, run, asks_cluster] {
    line.asks_cluster = asks_cluster;
    line.run = [options, run](CommandLine& l) { return run(l, *options); };
  });
  return std::pair(command, options);
}

/// Command lines that show a command ("pool create"), as they are typed. Every command that does something has one.
[[nodiscard]] std::vector<std::string> examples_of(std::string_view path);

/// The output of `croft --version`: the version, the commit when the tree it was built from has one, the libraries.
[[nodiscard]] std::string version_text();

/// Reads an address or prefix of the command line; the error names the argument.
[[nodiscard]] Result<net::Address> address_argument(const std::string& name, const std::string& text);
[[nodiscard]] Result<net::Prefix> prefix_argument(const std::string& name, const std::string& text);

/// With what `croft` opens stores and APIs.
[[nodiscard]] StoreParts operator_parts();

/// For a page of a list: the server reads 500 pods.
inline constexpr std::chrono::seconds kPageTime{15};

}  // namespace croft::app
