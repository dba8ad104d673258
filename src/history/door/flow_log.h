#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/result.h"
#include "history/decide/holding.h"

namespace croft::edge {

/// The columns of a flow log that matter, by their heading; those that are not named are found by the headings that
/// known programs write (docs/formats/history.md#flows).
struct FlowColumns {
  std::string time;
  std::vector<std::string> addresses;
};

/// The holder of an address at a moment that is known this closely, as a cell; empty: nobody.
using HolderOf = std::function<Result<std::string>(const net::Address& address, const core::history::Moment& when)>;

/// Adds to a log of flows who had its addresses: a column `<heading>_holder` behind the others for each column of
/// addresses. The log is CSV (RFC 4180), or columns between blanks (as AWS writes flow logs), with a line of headings.
/// Times are RFC 3339, `DATE TIME` in UTC, or seconds or milliseconds since 1970. The holder is `?` where the time or
/// the address cannot be read, and empty where there is no address.
class FlowLog {
 public:
  /// Error: invalid_argument naming the column that there is not, with those that there are.
  [[nodiscard]] static Result<FlowLog> begin(std::string_view headings, const FlowColumns& columns);

  /// The line of headings, with those that are added.
  [[nodiscard]] const std::string& headings() const { return headings_; }
  /// A line with its holders. Both without the end of line.
  [[nodiscard]] Result<std::string> join(std::string_view line, const HolderOf& holder_of);
  /// How many lines so far could not be read, for people; empty: all could.
  [[nodiscard]] std::string trouble() const;

 private:
  FlowLog() = default;
  [[nodiscard]] std::vector<std::string> cells_of(std::string_view line) const;
  void add(std::string& line, const std::string& cell) const;

  char between_ = ',';
  std::string headings_;
  std::size_t time_ = 0;
  std::vector<std::size_t> addresses_;
  std::size_t lines_ = 0, unread_ = 0, first_unread_ = 0;
};

/// Between quotes where it needs them, and behind an apostrophe where it would be a formula.
[[nodiscard]] std::string csv_cell(const std::string& text);
/// The moments that a time may mean: those that begin with its digits. Nothing for a text that is no time.
[[nodiscard]] std::optional<core::history::Moment> flow_time(std::string_view text);

}  // namespace croft::edge
