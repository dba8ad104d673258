#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ipam/use/inspect.h"

namespace croft::app {

/// Text in columns, as kubectl prints it: headings in capitals, three blanks between columns, no blanks at the end of a
/// line. Empty cells read `-`.
class Table {
 public:
  struct Look {
    bool headings = true;
    std::size_t width =
        0;  ///< a line is made to fit into so many characters, by less of its widest cells and columns; 0: as it is
  };

  explicit Table(std::vector<std::string> headings) : rows_{std::move(headings)} {}
  /// With `more` columns, of which rows have the cells in any case, where `wide` says so.
  Table(std::vector<std::string> headings, const std::vector<std::string>& more, bool wide)
      : Table(std::move(headings)) {
    if (wide) rows_.front().insert(rows_.front().end(), more.begin(), more.end());
  }
  /// Cells behind the last heading are left out.
  void add(std::vector<std::string> cells) {
    cells.resize(std::min(cells.size(), rows_.front().size()));
    rows_.push_back(std::move(cells));
  }
  [[nodiscard]] bool empty() const { return rows_.size() == 1; }
  [[nodiscard]] std::string to_string(const Look& look) const;
  [[nodiscard]] std::string to_string() const { return to_string(Look{}); }
  /// The same, a line each, first the headings whatever the look says of them.
  [[nodiscard]] std::vector<std::string> lines(const Look& look) const;

  /// Sorts by a column, named by its heading in any case: runs of digits as numbers, cells without text last. Error:
  /// invalid_argument naming the columns that there are.
  [[nodiscard]] Result<void> sort_by(const std::string& column);

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// Characters shown, counting UTF-8 sequences once.
[[nodiscard]] std::size_t width_of(const std::string& text);

/// Draws a pool and its blocks with half-block characters: two addresses a character, the upper and the lower half. The
/// first line is the whole pool, one half a block (or several, in a large pool); then a row for each block, at most
/// kPictureBlocksMax of them. With `colour` (ANSI) every address has its own: held, cooling, reserved, free. Without, a
/// half is filled when it is held, and `▒` and `░` stand for pairs with a cooling or a reserved address.
[[nodiscard]] std::string draw(const engine::PoolView& pool, bool colour);
inline constexpr std::size_t kPictureBlocksMax = 32;

/// One block the same way, with its label and what the signs mean.
[[nodiscard]] std::string draw(const engine::BlockView& block, bool colour);

/// The same for a run of addresses: lines of two states a character, each line behind two blanks.
[[nodiscard]] std::string draw(const std::vector<core::AddressState>& states, bool colour);
/// One line that says what the signs mean.
[[nodiscard]] std::string legend(bool colour);

}  // namespace croft::app
