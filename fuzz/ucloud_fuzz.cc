// Reads any bytes as what UCloud's API and metadata answer, and as a request of ours. Checked: nothing crashes; what is
// accepted keeps to its bounds: addresses of hosts, gateways of their family, lengths that fit; a form that was read is
// read back from what is written of it.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "vpc/format/ucloud.h"

using namespace croft;
using namespace croft::wire::ucloud;

namespace {

void check(const Addresses& all) {
  for (const cloud::CloudAddress& one : all.addresses) {
    CROFT_ASSERT(one.address.is_valid() && one.address.value() != net::U128{});
    CROFT_ASSERT(one.prefix_length <= static_cast<std::uint32_t>(net::bit_length(one.address.family())));
    CROFT_ASSERT(!one.gateway || one.gateway->family() == one.address.family());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto answer = decode_answer(text)) {
    CROFT_ASSERT(answer->message.size() <= 256);
    CROFT_ASSERT((meaning_of(answer->ret_code).verdict == Verdict::ok) == (answer->ret_code == 0));
    if (const auto given = decode_given(*answer)) check(*given);
    if (const auto all = decode_addresses(*answer)) check(*all);
    if (const auto subnets = decode_subnets(*answer)) {
      for (const cloud::SubnetState& one : *subnets) CROFT_ASSERT(!one.subnet.empty());
    }
    static_cast<void>(decode_interface_id(*answer, net::Mac{}));
  }
  static_cast<void>(decode_metadata(text));
  if (const auto credentials = decode_credentials(text)) CROFT_ASSERT(!credentials->keys.private_key.empty());
  return 0;
}
