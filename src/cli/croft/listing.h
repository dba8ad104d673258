#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/printable.h"
#include "base/result.h"
#include "cli/croft/command_line.h"
#include "cli/croft/json_output.h"
#include "cli/croft/table.h"
#include "ipam/use/inspect.h"
#include "ipam/use/transact.h"

namespace croft::app {

/// The table that a listing command shows.
struct Listing {
  std::string nothing;  ///< what is said when there are no rows: "No pools."
  Table table;
  Data data;         ///< of json_of(), when CommandLine::wants_data()
  std::string note;  ///< a line, or more, below the table; empty: none
  Printed note_as = Printed::text;
};

/// Adds --no-headers, --sort-by and --watch.
void add_list_options(CLI::App& command, CommandLine& line);

/// Opens the store and prints what `look` makes of it, as the options say. With --watch again whenever rows change,
/// until the process is told to end. Errors: those of `look`; invalid_argument for options that don't go together.
[[nodiscard]] Result<int> list(CommandLine& line, const std::function<Result<Listing>(const engine::Context&)>& look);

/// The same of something that is in no store.
[[nodiscard]] Result<int> list_without_store(CommandLine& line, const std::function<Result<Listing>()>& look);

/// The changes of a table of which `before` was shown: rows that were not there, or not so; then a line for each first
/// cell that is gone. Lines as Table::lines() has them.
[[nodiscard]] std::string changed_lines(const std::vector<std::string>& before, const std::vector<std::string>& now);

/// For a list of nothing: whether it is one because no such node or pool is known. Empty: not asked for. Error:
/// not_found, naming what is near or some that there are; or why it can't be found out.
[[nodiscard]] Result<void> check_known(const engine::Context& context, const std::string& node,
                                       const std::string& pool);

/// The alternatives to a pool of this name: "; did you mean …?" or the names of some.
[[nodiscard]] Result<Error> no_such_pool(const engine::Context& context, const std::string& pool);

/// Whether a pod is the one that an operator named: "pod" or "namespace/pod".
[[nodiscard]] inline bool is_pod(const std::string& name_space, const std::string& pod, const std::string& wanted) {
  return pod == wanted || (!pod.empty() && name_space + "/" + pod == wanted);
}

/// Whether an address is, or was, of that pod.
[[nodiscard]] inline bool is_pod(const engine::AddressView& a, const std::string& wanted) {
  return is_pod(a.namespace_name, a.pod, wanted);
}

/// Labels as kubectl's -l asks for them: `zone=a,rack!=7,ssd,!old`. All terms have to hold.
class LabelSelector {
 public:
  /// Error: invalid_argument naming the term. No text: everything matches.
  [[nodiscard]] static Result<LabelSelector> parse(const std::string& text);
  [[nodiscard]] bool matches(const std::map<std::string, std::string>& labels) const;
  [[nodiscard]] bool is_empty() const { return terms_.empty(); }

 private:
  struct Term {
    std::string key;
    std::optional<std::string> value;  ///< absent: whether there is such a label
    bool is_negative = false;
  };
  std::vector<Term> terms_;
};

}  // namespace croft::app
