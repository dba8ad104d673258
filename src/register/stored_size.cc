#include "register/stored_size.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

namespace croft::core {
namespace {

// Each with its punctuation, and with the longest numbers.

/// All members of a block but the lists, and the frame of what is beside it.
constexpr std::size_t kOfBlock = 512;
/// Of an ordinal: its places in `allocations` and `unallocated`, and its sequence number under its name.
constexpr std::size_t kOfOrdinal = 6 + 6 + 29;
/// The names of the members of an attribute.
constexpr std::size_t kOfAttribute = 64;
/// Of an ordinal that cools: when, by which clocks, for how long, its sequence number again.
constexpr std::size_t kOfCooling = 272;
constexpr std::size_t kOfClockMark = 76;
constexpr std::size_t kOfText = 6;
/// \u0000
constexpr std::size_t kOfEscape = 6;

std::size_t length_of(std::string_view text, Bound bound) {
  if (bound == Bound::quick) return kOfEscape * text.size();
  const auto is_plain = [](char c) {
    return c >= ' ' && c <= '~' && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&';
  };
  const auto plain = static_cast<std::size_t>(std::count_if(text.begin(), text.end(), is_plain));
  return plain + kOfEscape * (text.size() - plain);
}

std::size_t bytes_of_texts(const std::map<std::string, std::string>& texts, Bound bound) {
  std::size_t bytes = 0;
  for (const auto& [name, text] : texts) bytes += kOfText + length_of(name, bound) + length_of(text, bound);
  return bytes;
}

/// What an attribute says of whoever holds.
std::size_t bytes_of_holder(const Attribute& attribute, Bound bound) {
  return kOfAttribute + (attribute.handle_id ? length_of(*attribute.handle_id, bound) : 0) +
         bytes_of_texts(attribute.secondary, bound) + bytes_of_texts(attribute.alternate_owner, bound);
}

std::size_t bytes_of_spares(const Cooling& cooling, Bound bound) {
  return length_of(cooling.previous_handle, bound) + bytes_of_texts(cooling.previous_secondary, bound) +
         kOfClockMark * cooling.seen.size();
}

/// Of what cools, which is recorded for every ordinal by itself.
template <class BytesOf>
std::size_t bytes_of_cooling(const Block& block, BytesOf bytes_of) {
  std::size_t bytes = 0;
  for (const auto& index : block.allocations) {
    if (index && block.attributes[*index].cooling) bytes += bytes_of(block.attributes[*index]);
  }
  return bytes;
}

std::size_t bytes_of_frame(const Block& block, Bound bound) {
  return kOfBlock + (block.affinity ? length_of(block.affinity->name, bound) : 0) +
         (block.rest ? block.rest->bytes_max() : 0) + kOfOrdinal * block.allocations.size();
}

bool is_cooling(const Attribute& attribute) { return attribute.cooling.has_value(); }

}  // namespace

std::size_t bytes_of(const Block& block, Bound bound) {
  std::size_t bytes = bytes_of_frame(block, bound);
  bool any_cooling = false;
  for (const Attribute& attribute : block.attributes) {
    any_cooling |= is_cooling(attribute);
    if (!is_cooling(attribute)) bytes += bytes_of_holder(attribute, bound);
  }
  if (!any_cooling) return bytes;
  return bytes + bytes_of_cooling(block, [&](const Attribute& attribute) {
           return kOfCooling + bytes_of_holder(attribute, bound) - kOfAttribute +
                  bytes_of_spares(*attribute.cooling, bound);
         });
}

std::size_t bytes_of(const std::vector<CoolingBeside>& cooling, Bound bound) {
  std::size_t bytes = kOfBlock;
  for (const CoolingBeside& one : cooling) bytes += kOfCooling + bytes_of_spares(one.cooling, bound);
  return bytes;
}

std::size_t bytes_needed(const Block& block, Bound bound) {
  std::size_t bytes = bytes_of_frame(block, bound);
  bytes += kOfCooling * (block.allocations.size() - block.unallocated.free_count());
  bool any_cooling = false;
  for (const Attribute& attribute : block.attributes) {
    any_cooling |= is_cooling(attribute);
    if (is_cooling(attribute)) continue;
    const std::size_t held = bytes_of_holder(attribute, bound);
    bytes += held - std::min(held, kOfCooling);
  }
  if (!any_cooling) return bytes;
  return bytes + bytes_of_cooling(block, [&](const Attribute& attribute) {
           return bytes_of_holder(attribute, bound) - kOfAttribute;
         });
}

Block without(Block block, Spare spare) {
  for (Attribute& attribute : block.attributes) {
    if (!attribute.cooling) continue;
    switch (spare) {
      case Spare::previous_secondary:
        attribute.cooling->previous_secondary = {};
        break;
      case Spare::previous_handle:
        attribute.cooling->previous_handle.clear();
        break;
      case Spare::clock_marks:
        attribute.cooling->seen.clear();
        break;
    }
  }
  return block;
}

Block fitted(Block block, std::size_t bytes_max) {
  const auto fits = [&] {
    return bytes_of(block, Bound::quick) <= bytes_max || bytes_of(block, Bound::close) <= bytes_max;
  };
  for (const Spare spare : kSpares) {
    if (bytes_max == kNoBytesMax || fits()) break;
    block = without(std::move(block), spare);
  }
  return block;
}

}  // namespace croft::core
