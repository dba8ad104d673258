#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace croft::bench {

/// A figure beside the measured one, of the same run.
struct Figure {
  std::string name;
  double value = 0;
  std::string unit = {};  ///< empty: that of the row
};

/// `of` goes on after "1.5 x".
struct Ratio {
  double value = 0;
  std::string of = {};
};

/// What a row may be (docs/promises.md#budgets): of its value, or of its ratio.
struct Budget {
  enum class Of : std::uint8_t { value, ratio } of = Of::value;
  enum class Is : std::uint8_t { at_most, at_least } is = Is::at_most;
  double limit = 0;
};
[[nodiscard]] Budget at_most(double value);
[[nodiscard]] Budget at_least(double value);
[[nodiscard]] Budget ratio_at_most(double value);
[[nodiscard]] Budget ratio_at_least(double value);

/// One measurement for the table of bench/run. Whether it meets its budget is computed when it is written.
struct Row {
  std::string id;    ///< "burst.sqlite.add.lone": scripts/figures finds it by that
  std::string what;  ///< for people
  double value = 0;
  std::string unit = {};
  std::optional<Figure> peer = {};   ///< another program that does this
  std::optional<Figure> limit = {};  ///< what cannot be beaten
  std::optional<Ratio> ratio = {};
  std::optional<Budget> budget = {};
  std::string not_judged = {};  ///< why the budget does not count in this run; empty: it does
  std::string note = {};
};

/// The row's ratio to a figure of the same unit.
[[nodiscard]] Ratio ratio_to(const Row& row, const Figure& figure);

/// Appends the row as a line of JSON to the file that CROFT_BENCH_ROWS names, if it does. A row that cannot be written
/// ends the program.
void record(const Row& row);
/// Prints the line for people too.
void report(const std::string& line, const Row& row);
/// A row without a value: the table says why.
void not_measured(const std::string& id, const std::string& what, const std::string& reason);

}  // namespace croft::bench
