#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/printable.h"
#include "cli/croft/command_line.h"
#include "cli/croft/data.h"
#include "cli/croft/table.h"

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

}  // namespace croft::app
