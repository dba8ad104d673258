#pragma once

#include <string>
#include <vector>

namespace croft::app {

/// Text in columns, as kubectl prints it: headings in capitals, three blanks between columns, no blanks at the end of a
/// line. Empty cells read `-`.
class Table {
 public:
  explicit Table(std::vector<std::string> headings) : rows_{std::move(headings)} {}
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  [[nodiscard]] std::string to_string() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// Characters shown, counting UTF-8 sequences once.
[[nodiscard]] std::size_t width_of(const std::string& text);

}  // namespace croft::app
