#include "cli/croft/table.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/did_you_mean.h"
#include "base/letters.h"
#include "base/printable.h"
#include "base/texts.h"
#include "base/time_text.h"

namespace croft::app {
namespace {

constexpr std::size_t kGap = 3;
constexpr std::size_t kCellMin = 8;  // narrower a cell says nothing

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

/// The first characters, the last of them `…` when some are missing.
std::string cut(const std::string& text, std::size_t width) {
  if (width_of(text) <= width) return text;
  std::size_t characters = 0, end = 0;
  for (; end < text.size(); ++end) {
    if (begins_character(text[end]) && ++characters == width) break;
  }
  return text.substr(0, end) + "…";
}

/// How wide the columns are and how far apart.
struct Layout {
  std::vector<std::size_t> widths;
  std::size_t gap = kGap;

  [[nodiscard]] std::size_t total() const {
    return std::accumulate(widths.begin(), widths.end(), std::size_t{0}) + gap * (widths.size() - 1);
  }
};

/// Makes a line fit. It takes from the widest columns, but not from the first, which names the row's subject; then from
/// the gaps; and leaves out the last columns when that is not enough.
void fit(Layout& layout, std::size_t width) {
  while (layout.widths.size() > 1 && layout.total() > width) {
    const auto widest = std::max_element(layout.widths.begin() + 1, layout.widths.end());
    if (*widest > kCellMin) {
      --*widest;
    } else if (layout.gap > 1) {
      --layout.gap;
    } else {
      layout.widths.pop_back();
    }
  }
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The run of digits at `at`, without zeros at its front.
std::string_view number_at(std::string_view text, std::size_t& at) {
  const std::size_t begin = at;
  while (at < text.size() && is_digit(text[at])) ++at;
  std::string_view digits = text.substr(begin, at - begin);
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  return digits;
}

/// "now", "7h", ">14d" as seconds: they are sorted by their length, before other texts.
std::optional<std::chrono::seconds> span_in(std::string_view cell) {
  if (cell == "now") return std::chrono::seconds(0);
  return parse_span(cell.starts_with('>') ? cell.substr(1) : cell);
}

bool comes_before(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return !a.empty() && b.empty();
  const auto span = span_in(a), other = span_in(b);
  if (span || other) return span && (!other || *span < *other);
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      const std::string_view x = number_at(a, i), y = number_at(b, j);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
    }
  }
  return i == a.size() && j < b.size();
}

}  // namespace

std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::vector<std::string> Table::lines(const Look& look) const {
  const auto shown = [](const std::string& cell) {
    return cell.empty() ? std::string("-") : printable(cell, Printed::line);
  };
  Layout layout{std::vector<std::size_t>(rows_.front().size())};
  auto& widths = layout.widths;
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(shown(row[i])));
  }
  if (look.width > 0) fit(layout, look.width);
  std::vector<std::string> lines;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < std::min(row.size(), widths.size()); ++i) {
      const std::string cell = cut(shown(row[i]), widths[i]);
      if (i > 0) line.append(layout.gap, ' ');
      line += cell;
      line.append(i + 1 < std::min(row.size(), widths.size()) ? widths[i] - width_of(cell) : 0, ' ');
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string Table::to_string(const Look& look) const {
  std::string text;
  const std::vector<std::string> all = lines(look);
  for (std::size_t i = look.headings ? 0 : 1; i < all.size(); ++i) text += all[i] + '\n';
  return text;
}

Result<void> Table::sort_by(const std::string& column) {
  const std::vector<std::string>& headings = rows_.front();
  std::vector<std::string> known;
  for (const std::string& heading : headings) known.push_back(lowered(heading));
  const auto it = std::find(known.begin(), known.end(), lowered(column));
  if (it == known.end()) {
    return fail(ErrorCode::invalid_argument, "--sort-by: there is no column {}{}; the columns are {}", echo(column),
                did_you_mean(lowered(column), known), joined(headings));
  }
  const auto at = static_cast<std::size_t>(it - known.begin());
  std::stable_sort(rows_.begin() + 1, rows_.end(),
                   [&](const auto& a, const auto& b) { return comes_before(a[at], b[at]); });
  return {};
}

namespace {

using core::AddressState;

constexpr std::size_t kColumns = 64;
constexpr std::size_t kStripHalvesMax = kColumns * 2 * 2;  // two lines of the strip

/// The state that one half of a character shows; nothing: there is none.
using Half = std::optional<AddressState>;

const char* plain(Half upper, Half lower) {
  const auto either = [&](Half half) { return upper == half || lower == half; };
  if (either(AddressState::cooling)) return "▒";
  if (upper == AddressState::held && lower == AddressState::held) return "█";
  if (upper == AddressState::held) return "▀";
  if (lower == AddressState::held) return "▄";
  if (either(AddressState::reserved)) return "░";
  return upper ? "·" : " ";
}

int colour_of(AddressState state) {
  switch (state) {
    case AddressState::held:
      return 34;  // green
    case AddressState::cooling:
      return 214;  // orange
    case AddressState::reserved:
      return 240;  // dark grey
    case AddressState::free:
      return 253;  // near white
  }
  return 0;
}

std::string cell(Half upper, Half lower, bool colour) {
  if (!colour) return plain(upper, lower);
  if (!upper) return " ";
  if (!lower) return fmt::format("\x1b[38;5;{}m▀\x1b[0m", colour_of(*upper));
  return fmt::format("\x1b[38;5;{};48;5;{}m▀\x1b[0m", colour_of(*upper), colour_of(*lower));
}

/// Lines of at most kColumns characters.
std::vector<std::string> lines_of(const std::vector<AddressState>& halves, bool colour) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < halves.size(); i += 2) {
    if (i % (kColumns * 2) == 0) lines.emplace_back();
    lines.back() += cell(halves[i], i + 1 < halves.size() ? Half(halves[i + 1]) : Half(), colour);
  }
  return lines;
}

/// The pool as blocks: claimed ones are filled.
std::string strip(const engine::PoolView& pool, bool colour) {
  const int count_log2 = pool.pool.block_length - pool.pool.cidr.length();
  int per_half_log2 = 0;
  while ((std::size_t{1} << std::min(count_log2 - per_half_log2, 40)) > kStripHalvesMax) ++per_half_log2;
  std::vector<AddressState> halves(std::size_t{1} << (count_log2 - per_half_log2), AddressState::free);
  const int part_length = pool.pool.cidr.length() + (count_log2 - per_half_log2);
  for (const engine::BlockView& block : pool.blocks) {
    const net::Prefix part = net::Prefix::containing(block.block.cidr.first(), part_length);
    halves[static_cast<std::size_t>(pool.pool.cidr.subprefix_index(part).lo)] = AddressState::held;
  }
  std::string text = per_half_log2 == 0 ? "blocks, one each half character, filled when claimed:\n"
                                        : fmt::format("blocks, 2^{} to a half character, filled when one is claimed:\n",
                                                      per_half_log2);
  for (const std::string& line : lines_of(halves, colour)) text += "  " + line + "\n";
  return text;
}

std::string block_label(const engine::BlockView& block) {
  return fmt::format("{} {}", block.block.cidr,
                     printable(block.block.affinity ? block.block.affinity->name : "nobody", Printed::line));
}

}  // namespace

std::string draw(const std::vector<AddressState>& states, bool colour) {
  std::string text;
  for (const std::string& line : lines_of(states, colour)) text += "  " + line + "\n";
  return text;
}

std::string legend(bool colour) {
  if (!colour) return "two addresses a character: █ both held  ▀ ▄ one held  ▒ cooling  ░ reserved  · free\n";
  const auto key = [](AddressState state, const char* name) {
    return fmt::format("\x1b[38;5;{}m█\x1b[0m {}  ", colour_of(state), name);
  };
  return "two addresses a character: " + key(AddressState::held, "held") + key(AddressState::cooling, "cooling") +
         key(AddressState::reserved, "reserved") + key(AddressState::free, "free") + "\n";
}

std::string draw(const engine::BlockView& block, bool colour) { return legend(colour) + draw(block.states, colour); }

std::string draw(const engine::PoolView& pool, bool colour) {
  std::string text = strip(pool, colour);
  if (pool.blocks.empty()) return text + "no block is claimed yet\n";
  text += legend(colour);
  const std::size_t shown = std::min(pool.blocks.size(), kPictureBlocksMax);
  std::size_t width = 0;
  for (std::size_t i = 0; i < shown; ++i) width = std::max(width, width_of(block_label(pool.blocks[i])));
  for (std::size_t i = 0; i < shown; ++i) {
    const engine::BlockView& block = pool.blocks[i];
    std::string label = block_label(block);
    for (const std::string& line : lines_of(block.states, colour)) {
      text += fmt::format("  {}{}  {}", label, std::string(width - width_of(label), ' '), line);
      if (!label.empty()) {
        text +=
            fmt::format("  {} held, {} cooling, {} free", block.usage.held, block.usage.cooling, block.usage.free());
      }
      text += "\n";
      label.clear();
    }
  }
  if (shown < pool.blocks.size())
    text += fmt::format("  … and {}\n", counted(pool.blocks.size() - shown, "more block"));
  return text;
}

}  // namespace croft::app
