// Reads any bytes as an Ethernet frame of ARP or neighbour discovery. Checked: nothing crashes; what is understood
// names a MAC and an address that somebody can have, and the first sign is there when the second is. Then the same
// bytes as the address of a probe and of an announcement: they are understood.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/assert.h"
#include "os/neighbour_packet.h"

namespace {

using croft::net::Address;
using croft::net::Mac;
using croft::os::ProbeNonce;

constexpr Mac kMac{{2, 0, 0, 0, 0, 1}};

bool is_somebodys(const Mac& mac) { return mac != Mac() && (mac.bytes[0] & 1) == 0; }
bool is_somebodys(const Address& ip) {
  const unsigned first = ip.bytes()[0];
  return ip.value() != croft::net::U128() && (ip.is_v6() ? first != 0xff : first < 224);
}

void read_any(std::span<const std::uint8_t> frame) {
  const auto signs = croft::os::signs_in(frame);
  CROFT_ASSERT(signs[0] || !signs[1]);
  for (const auto& sign : signs) {
    if (!sign) continue;
    CROFT_ASSERT(is_somebodys(sign->mac) && is_somebodys(sign->address));
    CROFT_ASSERT(frame.size() >= 42);
  }
}

void read_back(std::span<const std::uint8_t> bytes) {
  for (const std::size_t size : {4U, 16U}) {
    std::array<std::uint8_t, 16> padded{};
    std::copy_n(bytes.begin(), std::min(bytes.size(), size), padded.begin());
    const Address ip = *Address::of_bytes(std::span(padded).first(size));
    if (!is_somebodys(ip)) continue;
    for (const auto& frame :
         {croft::os::probe_frame(ip, kMac, ProbeNonce{}), croft::os::announcement_frame(ip, kMac)}) {
      const auto signs = croft::os::signs_in({reinterpret_cast<const std::uint8_t*>(frame.data()), frame.size()});
      CROFT_ASSERT(signs[0] && !signs[1] && signs[0]->address == ip && signs[0]->mac == kMac);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  read_any({data, size});
  read_back({data, size});
  return 0;
}
