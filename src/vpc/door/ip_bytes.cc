#include "vpc/door/ip_bytes.h"

#include <cstddef>
#include <cstdint>

namespace croft::edge {

os::IpBytes to_bytes(const net::Address& address) {
  os::IpBytes out;
  out.is_v6 = address.is_v6();
  net::U128 rest = address.value();
  for (std::size_t i = out.is_v6 ? 16 : 4; i-- > 0;) {
    out.bytes.at(i) = static_cast<std::uint8_t>(rest.lo & 0xff);
    rest = rest >> 8;
  }
  return out;
}

net::Address from_bytes(const os::IpBytes& bytes) {
  net::U128 value;
  const std::size_t size = bytes.is_v6 ? 16 : 4;
  for (std::size_t i = 0; i < size; ++i) value = (value << 8) + net::U128(bytes.bytes.at(i));
  return net::Address::from(bytes.is_v6 ? net::Family::v6 : net::Family::v4, value);
}

}  // namespace croft::edge
