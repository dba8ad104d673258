// Reads any bytes as the network configuration of calico-ipam. Input: CNI_ARGS up to the first line feed, then the
// configuration. Checked: nothing crashes; an error says something; what ADD accepts, DEL accepts, of the same name and
// from the same store.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "calico/netconf.h"
#include "cni/format/environment.h"
#include "cni/format/network.h"

namespace cni = croft::wire::cni;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t line = std::min(input.find('\n'), input.size());
  const std::string args(input.substr(0, line));
  input.remove_prefix(std::min(line + 1, input.size()));
  auto document = cni::parse_network_config(input);
  if (!document) {
    CROFT_ASSERT(!document.error().msg.empty());
    return 0;
  }
  const auto network = cni::read_network(*std::move(document));
  if (!network) {
    CROFT_ASSERT(!network.error().msg.empty());
    return 0;
  }
  const auto decode = [&](cni::Command command) {
    return cni::decode_calico_netconf(*network, args, command, [](const char*) { return std::string(); });
  };
  const auto add = decode(cni::Command::add);
  const auto del = decode(cni::Command::del);
  if (!add) CROFT_ASSERT(!add.error().msg.empty());
  if (!del) CROFT_ASSERT(!del.error().msg.empty());
  if (add) {
    CROFT_ASSERT(del && del->name == add->name && del->datastore == add->datastore);
    CROFT_ASSERT(add->datastore.endpoints.size() <= cni::kEtcdEndpointsMax);
    CROFT_ASSERT(add->log_megabytes_max >= 0 && add->log_megabytes_max <= cni::kLogMegabytesMax);
  }
  return 0;
}
