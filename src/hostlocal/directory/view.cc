#include "hostlocal/directory/view.h"

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

}  // namespace croft::store::hostlocal
