#include "app/croft/table.h"

#include <algorithm>

#include "base/printable.h"

namespace croft::app {

std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string Table::to_string() const {
  const auto shown = [](const std::string& cell) {
    return cell.empty() ? std::string("-") : printable(cell, Printed::line);
  };
  std::vector<std::size_t> widths(rows_.front().size());
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(shown(row[i])));
  }
  std::string text;
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string cell = shown(row[i]);
      text += cell;
      if (i + 1 < row.size()) text.append(widths[i] - width_of(cell) + 3, ' ');
    }
    text += '\n';
  }
  return text;
}

}  // namespace croft::app
