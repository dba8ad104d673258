#include "cli/croft/picture.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/counted.h"
#include "cli/croft/table.h"

namespace croft::app {
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
  return fmt::format("{} {}", block.block.cidr.to_string(),
                     block.block.affinity ? block.block.affinity->name : "nobody");
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
        text += fmt::format("  {} held, {} cooling, {} free", block.usage.held, block.usage.cooling,
                            block.usage.free().to_string());
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
