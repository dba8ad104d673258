// Reads any bytes as what UCloud's API and metadata answer, and as a request of ours. Checked: nothing crashes; what is
// accepted keeps to its bounds: addresses of hosts, gateways of their family, lengths that fit; a form that was read is
// read back from what is written of it.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "vpc/format/ucloud/answers.h"
#include "vpc/format/ucloud/requests.h"

using namespace croft;
using namespace croft::wire::ucloud;

namespace {

void check(const IpInfo& info) {
  CROFT_ASSERT(info.address.is_valid() && info.address.value() != net::U128{});
  const auto bits = static_cast<std::uint32_t>(net::bit_length(info.address.family()));
  CROFT_ASSERT(!info.prefix_length || (*info.prefix_length > 0 && *info.prefix_length <= bits));
  CROFT_ASSERT(!info.gateway || info.gateway->family() == info.address.family());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto answer = decode_answer(text)) {
    CROFT_ASSERT(answer->message.size() <= 256);
    CROFT_ASSERT((verdict_of(answer->ret_code) == Verdict::ok) == (answer->ret_code == 0));
    if (const auto one = decode_allocated(*answer)) check(*one);
    if (const auto items = decode_batch(*answer)) {
      CROFT_ASSERT(items->size() <= kListMax);
      for (const BatchItem& item : *items) {
        if (item.given) check(*item.given);
      }
    }
    if (const auto all = decode_addresses(*answer)) {
      CROFT_ASSERT(all->addresses.size() + all->odd.size() <= kListMax);
      for (const IpInfo& info : all->addresses) check(info);
    }
    if (const auto subnets = decode_subnets(*answer)) {
      for (const SubnetInfo& one : *subnets) CROFT_ASSERT(!one.subnet.empty());
    }
    static_cast<void>(decode_host_interfaces(*answer));
  }
  static_cast<void>(decode_metadata(text));
  if (const auto credentials = decode_credentials(text)) CROFT_ASSERT(!credentials->keys.private_key.empty());
  return 0;
}
