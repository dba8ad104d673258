#include "ipam/decide/block_overlap.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/net/ordinal.h"

namespace croft::core {
namespace {

using net::Address;
using net::Prefix;

/// One look: exact keys, and windows of names. The ends of a window have to be names that a block can have.
struct Look {
  std::vector<Key> keys;
  std::vector<KeyWindow> within;  ///< with the keys: of the blocks within this one
  std::vector<KeyWindow> around;  ///< of the blocks that contain it
};

Listing all_of(Kind kind, net::Family family) { return {kind, block_names_of(family)}; }

void add_window(const Prefix& from, const Prefix& last, Look& look) {
  look.within.push_back({all_of(Kind::block, from.family()), block_key(from).name, block_key(last).name});
  look.keys.push_back(block_key(last));  // a window ends before its end
}

/// All names of the addresses of one /24 lie between that of .0 and that of .99, which is the last of all octets in the
/// order of texts.
void add_within_v4(const Prefix& block, Look& look) {
  constexpr int kSlice = 24;
  for (int length = block.length() + 1; length <= kSlice; ++length) {
    for (std::uint64_t i = 0; i < std::uint64_t{1} << block.subprefix_count_log2(length); ++i) {
      look.keys.push_back(block_key(block.subprefix(i, length)));
    }
  }
  const std::uint64_t slices = block.length() >= kSlice ? 1 : std::uint64_t{1} << block.subprefix_count_log2(kSlice);
  for (std::uint64_t i = 0; i < slices; ++i) {
    const Prefix slice = slices == 1 ? Prefix::containing(block.first(), kSlice) : block.subprefix(i, kSlice);
    add_window(slice, slice.subprefix(99, 32), look);
  }
}

/// The first seven groups of a block's addresses are the same, and so is their text: but where the last group is zero,
/// which may shorten it.
void add_within_v6(const Prefix& block, Look& look) {
  constexpr int kBits = 128;
  const Prefix slice = Prefix::containing(block.first(), 112);
  const std::uint64_t first = slice.subprefix_index(Prefix::containing(block.first(), kBits)).lo;
  if (first == 0) {
    for (int length = block.length() + 1; length <= kBits; ++length) {
      look.keys.push_back(block_key(Prefix::containing(block.first(), length)));
    }
  }
  if (first > 0) {  // all have as many digits: in the order of numbers, with longer ones between them
    add_window(block, Prefix::containing(block.last(), kBits), look);
  } else {
    add_window(slice.subprefix(1, kBits), slice.subprefix(0xffff, kBits), look);
  }
}

/// The names of all blocks that begin with one address, whatever their length, are next to each other: for all that
/// may contain a block there are as many windows as its first address has ones, not a key for each length.
void add_around(const Prefix& block, int shortest, Look& look) {
  const int bits = net::bit_length(block.family());
  std::optional<Address> before;
  for (int length = shortest; length < block.length(); ++length) {
    const Address first = Prefix::containing(block.first(), length).first();
    if (first == before) continue;
    before = first;
    std::string from = block_key(Prefix::containing(first, bits)).name;
    std::string least = std::to_string(length);  // as text
    for (int any = length + 1; any < bits; ++any) least = std::min(least, std::to_string(any));
    from.replace(from.rfind('/') + 1, from.npos, least);
    const std::string end = block_key(Prefix::containing(*first.next(), bits)).name;
    if (from < end) {
      look.around.push_back({all_of(Kind::block, block.family()), std::move(from), end});
      continue;
    }
    // "…4::" lies behind "…4:0:1": there are few of these.
    for (int any = length; any < block.length() && Prefix::containing(block.first(), any).first() == first; ++any) {
      look.keys.push_back(block_key(Prefix::containing(first, any)));
    }
  }
}

/// `shortest` is the length of the largest one that is looked for.
Look look_at(const Prefix& block, int shortest = 0) {
  Look look;
  const int bits = net::bit_length(block.family());
  add_around(block, shortest, look);
  if (block.length() == bits) return look;
  if (block.family() == net::Family::v4) {
    add_within_v4(block, look);
  } else {
    add_within_v6(block, look);
  }
  return look;
}

bool is_there(const Reader& reader, const Key& key) {
  const auto* found = reader.snapshot().find(key);
  return found != nullptr && found->has_value();
}

/// Names that a window has too many of lie between those of the blocks within this one: each by itself, if these are
/// few enough.
constexpr int kEachByItselfHostBitsMax = 7;

std::vector<Key> all_within(const Prefix& block) {
  std::vector<Key> keys;
  for (int length = block.length() + 1; length <= net::bit_length(block.family()); ++length) {
    for (std::uint64_t i = 0; i < std::uint64_t{1} << block.subprefix_count_log2(length); ++i) {
      keys.push_back(block_key(block.subprefix(i, length)));
    }
  }
  return keys;
}

/// No list of these is at hand: it is the store's own.
Listing all_beside(net::Family family) { return all_of(Kind::block_beside, family); }

/// The blocks of other lengths that overlap this one and have a record beside them, which is asked for.
std::vector<Prefix> beside_overlapping(Reader& reader, const Prefix& block) {
  std::vector<Prefix> found;
  const auto consider = [&](const Key& key) {
    const auto cidr = block_cidr_of(key);
    if (cidr && *cidr != block && cidr->overlaps(block)) found.push_back(*cidr);
  };
  const std::vector<Key>* all = reader.snapshot().keys(all_beside(block.family()));
  // Only a block that could be read has anything beside it.
  const int shortest = net::bit_length(block.family()) - kBlockHostBitsMax;
  Look look = all == nullptr ? look_at(block, shortest) : Look();
  if (all != nullptr) {
    for (const Key& key : *all) consider(key);
  }
  for (Key& key : look.keys) {
    key.kind = Kind::block_beside;
    reader.ask(key);
    if (is_there(reader, key)) consider(key);
  }
  for (std::vector<KeyWindow>* windows : {&look.within, &look.around}) {
    for (KeyWindow& window : *windows) {
      window.listing.kind = Kind::block_beside;
      const KeysInWindow* seen = reader.window(window);
      if (seen == nullptr) continue;
      const std::vector<Key>& keys = seen->more ? reader.keys(all_beside(block.family())) : seen->keys;
      for (const Key& key : keys) consider(key);
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  for (const Prefix& other : found) reader.ask(block_beside_key(other));
  return found;
}

/// All blocks of the family but those of the block's own length, which overlap it in no case. Between all names: every
/// one begins with the prefix.
KeyWindow all_of_other_lengths(const Prefix& block, Newness newness) {
  KeyWindow window{all_of(Kind::block, block.family()), block_names_of(block.family()), block_names_of(block.family())};
  ++window.before.back();
  window.but_length = block.length();
  window.may_lag = newness == Newness::may_lag;
  return window;
}

}  // namespace

Overlap glance_at_overlap(Reader& reader, const Prefix& block, Newness newness) {
  if (reader.reads_one_by_one()) {
    const KeysInWindow* seen = reader.window(all_of_other_lengths(block, newness));
    if (seen == nullptr) return {};
    for (const Key& key : seen->keys) {
      const auto cidr = block_cidr_of(key);
      if (cidr && *cidr != block && cidr->overlaps(block)) return {cidr, false};
    }
    if (!seen->more) return {};
  }
  const Look look = look_at(block);
  Overlap overlap;
  const auto consider = [&](const Key& key) {
    const auto cidr = block_cidr_of(key);
    if (cidr && *cidr != block && cidr->overlaps(block)) overlap.block = cidr;
  };
  for (const Key& key : look.keys) {
    reader.ask(key);
    if (is_there(reader, key)) consider(key);
  }
  /// Whether one has more than it shows.
  const auto look_through = [&](const std::vector<KeyWindow>& windows) {
    bool more = false;
    for (const KeyWindow& window : windows) {
      const KeysInWindow* seen = reader.window(window);
      if (seen == nullptr) continue;
      for (const Key& key : seen->keys) consider(key);
      more = more || seen->more;
    }
    return more;
  };
  overlap.unknown = look_through(look.around);
  bool more_within = look_through(look.within);
  if (more_within && !overlap.block && net::bit_length(block.family()) - block.length() <= kEachByItselfHostBitsMax) {
    more_within = false;
    for (const Key& key : all_within(block)) {
      reader.ask(key);
      if (is_there(reader, key)) consider(key);
    }
  }
  overlap.unknown = overlap.unknown || more_within;
  return overlap;
}

Listing stored_blocks(const Reader& reader, net::Family family) {
  return {Kind::block, block_names_of(family), reader.keys_at_hand()};
}

Overlap overlap_of(Reader& reader, const Prefix& block) {
  const Overlap overlap = glance_at_overlap(reader, block);
  if (overlap.block || !overlap.unknown) return overlap;
  for (const Key& key : reader.keys(stored_blocks(reader, block.family()))) {
    if (const auto cidr = block_cidr_of(key); cidr && *cidr != block && cidr->overlaps(block)) return {cidr, false};
  }
  return {};
}

void ask_for_lists(Reader& reader, net::Family family) {
  static_cast<void>(reader.keys(stored_blocks(reader, family)));
  static_cast<void>(reader.keys(all_beside(family)));
}

std::optional<Prefix> damaged_rest(Reader& reader, const Prefix& block) {
  for (const Prefix& other : beside_overlapping(reader, block)) {
    if (reader.damage(block_beside_key(other)) != nullptr) return other;
  }
  return {};
}

std::vector<CoolingBeside> rest_of_other_lengths(Reader& reader, const Prefix& block, std::vector<Prefix>* others) {
  std::vector<CoolingBeside> rest;
  for (const Prefix& other : beside_overlapping(reader, block)) {
    const auto* beside = reader.get(block_beside_key(other));
    if (beside == nullptr) continue;
    if (others != nullptr) others->push_back(other);
    for (CoolingBeside one : beside->cooling) {
      if (one.ordinal >= block_size(other)) continue;  // damage that tells of no address
      const auto ordinal = net::ordinal_of(block, net::address_at(other, net::Ordinal(one.ordinal)));
      if (!ordinal) continue;
      one.ordinal = ordinal->value;
      rest.push_back(std::move(one));
    }
  }
  return rest;
}

bool is_wide_look(const Prefix& block) { return block.family() == net::Family::v4 && block.length() < 24; }

OtherBlocks blocks_of_other_lengths(const std::vector<Key>& keys, const Prefix& cidr, int length) {
  const std::string ending = fmt::format("/{}", length);
  std::vector<Prefix> found;
  for (const Key& key : keys) {
    if (key.name.ends_with(ending)) continue;
    if (const auto block = block_cidr_of(key); block && block->overlaps(cidr)) found.push_back(*block);
  }
  const auto example = found.empty() ? std::nullopt : std::optional(found.front());
  return {net::Intervals(std::move(found)), example};
}

std::string overlap_text(const Prefix& block, const Overlap& overlap) {
  if (!overlap.block) {
    return fmt::format("whether block {} overlaps one of another length is not known", block.to_string());
  }
  const Prefix& other = *overlap.block;
  return fmt::format(
      "block {} overlaps block {}, which is of another length: `croft block show {}` tells who holds its addresses; "
      "once they are released `croft affinity release` gives it up",
      block.to_string(), other.to_string(), other.to_string());
}

}  // namespace croft::core
