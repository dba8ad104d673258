#include "store/free_block.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace croft::store {
namespace {

using net::Prefix;

/// Octets in the order of their texts: 0, 1, 10, 100 … and the place of each in it.
struct OctetOrder {
  OctetOrder() {
    std::iota(octets.begin(), octets.end(), 0U);
    std::ranges::sort(octets, {}, [](std::uint32_t octet) { return std::to_string(octet); });
    for (std::uint32_t place = 0; place < octets.size(); ++place) places[octets[place]] = place;
  }
  std::array<std::uint32_t, 256> octets{}, places{};
};

const OctetOrder& octet_order() {
  static const OctetOrder order;
  return order;
}

/// The slices of IPv4 in the order of names. A slice is a /24, or a /16 where the blocks are larger than a /24: the
/// names of all blocks that begin in it are next to each other.
class Slices {
 public:
  explicit Slices(int block_length) : octets_(block_length >= 24 ? 3 : 2) {}

  [[nodiscard]] int length() const { return 8 * octets_; }
  [[nodiscard]] Prefix of(const net::Address& address) const { return Prefix::containing(address, length()); }
  /// The place of a slice among all.
  [[nodiscard]] std::uint32_t place_of(const Prefix& slice) const {
    return each_octet(number_of(slice), octet_order().places);
  }
  [[nodiscard]] Prefix at(std::uint32_t place) const {
    return whole_ipv4().subprefix(each_octet(place, octet_order().octets), length());
  }
  /// A name before those of all blocks that begin in a slice, and behind those of all slices before it. That of a block
  /// around the slice, which is asked for by itself.
  [[nodiscard]] std::string name_before(const Prefix& slice) const {
    std::string name = core::block_key(slice).name;
    name.replace(name.rfind('/') + 1, name.npos, std::to_string(length() - 1));
    return name;
  }
  /// The first and the last place that the slices of a pool have.
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> places_in(const Prefix& pool) const {
    // Whole octets: the places of what begins alike follow each other.
    const int whole = std::min(pool.length(), length()) / 8 * 8;
    const Prefix hull = Prefix::containing(pool.first(), whole);
    const std::uint32_t mask = (std::uint32_t{1} << (length() - whole)) - 1;
    const std::uint32_t first = place_of(of(hull.first())) & ~mask;
    return {first, first | mask};
  }

 private:
  static Prefix whole_ipv4() { return Prefix::containing(net::Address::v4(0), 0); }
  [[nodiscard]] std::uint32_t number_of(const Prefix& slice) const {
    return static_cast<std::uint32_t>(whole_ipv4().subprefix_index(slice).lo);
  }
  [[nodiscard]] std::uint32_t each_octet(std::uint32_t number, const std::array<std::uint32_t, 256>& map) const {
    std::uint32_t result = 0;
    for (int shift = 8 * (octets_ - 1); shift >= 0; shift -= 8) result = result << 8 | map[number >> shift & 0xff];
    return result;
  }

  int octets_;
};

/// The search of one pool of IPv4.
class PagedSearch {
 public:
  PagedSearch(const core::FreeBlock& wanted, const LookAtBlocks& look)
      : wanted_(wanted), look_(look), slices_(wanted.length), places_(slices_.places_in(wanted.pool)) {}

  [[nodiscard]] Result<core::FoundBlock> run() {
    const std::uint32_t start = slices_.place_of(slices_.of(wanted_.start.first()));
    core::FoundBlock found;
    TRY(found.block, look_between(start, places_.second));
    if (!found.block) {
      TRY(found.block, look_between(places_.first, start));
    }
    if (found.block) return found;
    found.there = there_.size();
    found.other = other_;
    return found;
  }

 private:
  [[nodiscard]] Result<std::optional<Prefix>> look_between(std::uint32_t place, std::uint32_t last) {
    std::string after = slices_.name_before(slices_.at(place));
    std::vector<Key> keys;  // of slices that are not complete
    for (bool more = true; more && place <= last;) {
      const BlockPage wanted{{core::Kind::block, core::block_names_of(net::Family::v4)}, after, kBlockKeysAtOnce};
      TRY(BlockKeys seen, look(wanted, around(slices_.at(place))));
      std::vector<Key>& page = seen.page;
      more = seen.more && !page.empty();
      if (more) after = page.back().name;
      keys.insert(keys.end(), std::make_move_iterator(page.begin()), std::make_move_iterator(page.end()));
      // The slice of the last name may go on on the next page.
      const auto end = more ? std::optional(place_of(keys.back())) : std::nullopt;
      auto from = keys.cbegin();
      for (; place <= last && (!end || place < *end); ++place) {
        const Prefix slice = slices_.at(place);
        if (!slice.overlaps(wanted_.pool)) continue;
        from = first_at(from, keys.cend(), place);
        const auto to = first_at(from, keys.cend(), place + 1);
        TRY(auto block, look_in(slice, {from, to}));
        if (block) return block;
        from = to;
      }
      keys.erase(keys.cbegin(), first_at(keys.cbegin(), keys.cend(), place));
    }
    return std::optional<Prefix>();
  }

  using At = std::vector<Key>::const_iterator;
  [[nodiscard]] At first_at(At from, At to, std::uint32_t place) const {
    return std::find_if(from, to, [&](const Key& key) { return place_of(key) >= place; });
  }

  [[nodiscard]] Result<std::optional<Prefix>> look_in(const Prefix& slice, std::span<const Key> keys) {
    core::FreeBlock here = wanted_;
    if (slice.length() > wanted_.pool.length()) here.pool = slice;
    const bool has_start = here.pool.contains(wanted_.start.first());
    here.start = has_start ? wanted_.start : here.pool.subprefix(0, wanted_.length);
    const core::FoundBlock found = core::find_free_block(here, keys);
    if (!found.block) {
      note(keys);
      if (found.other) other_ = found.other;
      return std::optional<Prefix>();
    }
    // Blocks that contain the slice have their names elsewhere.
    std::vector<Key> unknown = around(slice);
    std::erase_if(unknown, [&](const Key& key) { return asked_.contains(key); });
    if (!unknown.empty()) TRY_VOID(look(std::nullopt, unknown));
    for (const Key& key : around(slice)) {
      if (!around_.contains(key)) continue;
      other_ = core::block_cidr_of(key);
      return std::optional<Prefix>();
    }
    return found.block;
  }

  [[nodiscard]] Result<BlockKeys> look(const std::optional<BlockPage>& page, const std::vector<Key>& single) {
    TRY(BlockKeys seen, look_(page, single));
    asked_.insert(single.begin(), single.end());
    around_.insert(seen.there.begin(), seen.there.end());
    return seen;
  }

  void note(std::span<const Key> keys) {
    for (const Key& key : keys) {
      const auto cidr = core::block_cidr_of(key);
      if (cidr && wanted_.pool.contains(cidr->first())) there_.insert(key);
    }
  }

  [[nodiscard]] std::vector<Key> around(const Prefix& slice) const {
    std::vector<Key> keys;
    for (int length = 0; length < slice.length(); ++length) {
      keys.push_back(core::block_key(Prefix::containing(slice.first(), length)));
    }
    return keys;
  }
  /// A key that tells no block has the place of its neighbours: it is passed over there.
  [[nodiscard]] std::uint32_t place_of(const Key& key) const {
    const auto cidr = core::block_cidr_of(key);
    return cidr ? slices_.place_of(slices_.of(cidr->first())) : 0;
  }

  const core::FreeBlock& wanted_;
  const LookAtBlocks& look_;
  const Slices slices_;
  const std::pair<std::uint32_t, std::uint32_t> places_;
  std::set<Key> asked_, around_;  ///< keys of blocks around slices, and those of them that are there
  std::set<Key> there_;
  std::optional<Prefix> other_;
};

}  // namespace

Result<core::FoundBlock> find_free_block(const core::FreeBlock& wanted, const LookAtBlocks& look) {
  if (wanted.pool.family() == net::Family::v4) return PagedSearch(wanted, look).run();
  std::vector<Key> keys;
  BlockPage page{{core::Kind::block, core::block_names_of(wanted.pool.family())}, "", kListLimitMax};
  for (bool more = true; more;) {
    TRY(BlockKeys seen, look(page, {}));
    more = seen.more && !seen.page.empty();
    if (more) page.after = seen.page.back().name;
    std::move(seen.page.begin(), seen.page.end(), std::back_inserter(keys));
  }
  return core::find_free_block(wanted, keys);
}

}  // namespace croft::store
