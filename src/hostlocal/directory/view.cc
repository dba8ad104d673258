#include "hostlocal/directory/view.h"

#include <algorithm>
#include <utility>

namespace croft::store::hostlocal {

namespace {
constexpr net::U128 kMapped = net::U128{0xffff} << 32;
}  // namespace

std::uint32_t content_hash(std::string_view key) {
  std::uint64_t x = 0xcbf29ce484222325U;  // FNV-1a, then the last steps of splitmix64
  for (const char c : key) x = (x ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return static_cast<std::uint32_t>(x ^ (x >> 31));
}

net::U128 number_of(const net::Address& address) {
  return address.is_v4() ? kMapped | address.value() : address.value();
}

net::Address address_of(net::U128 number) { return net::Address::v6(number).unmapped(); }

net::Address address_of(net::U128 number, net::Family family) {
  return net::Address::from(family, family == net::Family::v4 ? number - kMapped : number);
}

using core::space::SparsePlace;

std::optional<SparsePlace> ScannedView::place_of(const net::Address& address) const {
  return taken_.place_of(number_of(address));
}

/// Cells carry their whole hash, so they can be dealt again without reading anything.
void ScannedView::grow() {
  VectorCells old = std::exchange(holders_, VectorCells{std::vector<std::uint64_t>(holders_.cells.size() * 2)});
  const std::uint32_t mask = holders_.size() - 1;
  for (const std::uint64_t cell : old.cells) {
    if (cell == 0) continue;
    std::uint32_t index = HolderTable<VectorCells>::hash_of(cell) & mask;
    while (holders_.cells[index] != 0) index = (index + 1) & mask;
    holders_.cells[index] = cell;
  }
}

void ScannedView::see_content(const net::Address& address, std::uint32_t hash) {
  if (holder_count_ >= holders_.size() / 2) grow();
  const auto place = place_of(address);
  if (!place || !HolderTable(holders_).add(hash, *place)) {
    fit_ = false;
    return;
  }
  ++holder_count_;
}

std::optional<net::Address> ScannedView::next_free(const net::Address& first, const net::Address& last) {
  const auto number = taken_.next_free(number_of(first), number_of(last));
  return number ? std::optional(address_of(*number, first.family())) : std::nullopt;
}

std::vector<net::Address> ScannedView::with_hash(std::uint32_t hash) {
  std::vector<net::Address> found;
  HolderTable(holders_).for_each(hash, [&](SparsePlace place) {
    if (const auto number = taken_.number_at(place)) found.push_back(address_of(*number));
  });
  std::sort(found.begin(), found.end());
  return found;
}

void ScannedView::add(const net::Address& address, std::uint32_t hash) {
  const void* slots_before = taken_.slots().data();
  taken_.take(number_of(address));
  if (taken_.slots().data() != slots_before) fit_ = false;  // the places of all holders have moved
  see_content(address, hash);
}

void ScannedView::remove(const net::Address& address, std::uint32_t hash) {
  const auto place = place_of(address);
  if (!place) return;
  if (HolderTable(holders_).remove(hash, *place)) --holder_count_;
  taken_.give_back(number_of(address));
}

}  // namespace croft::store::hostlocal
