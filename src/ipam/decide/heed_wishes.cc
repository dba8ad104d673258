#include "ipam/decide/heed_wishes.h"

#include <algorithm>

#include <fmt/format.h>

namespace croft::core {

Result<void> heed_wishes(const AnnotatedWishes& said, const WishesWanted& wanted, AssignRequest& request) {
  for (const net::Family family : net::kFamilies) {
    if (!wanted.pools[family]) continue;
    for (const PodWishes* wishes : {&said.name_space, &said.pod}) {
      if (wishes->pools[family]) request.pools[family] = *wishes->pools[family];
    }
  }
  const auto& families = said.pod.families ? said.pod.families : said.name_space.families;
  if (wanted.families && families) {
    for (const net::Family family : net::kFamilies) request.count[family] = (*families)[family] ? 1 : 0;
  }
  if (!wanted.addresses) return {};
  for (const net::Address& address : said.pod.addresses) {
    if (std::ranges::find(request.addresses, address) == request.addresses.end()) request.addresses.push_back(address);
  }
  if (request.addresses.size() <= kWishedAddressesMax) return {};
  return fail(ErrorCode::invalid_argument,
              fmt::format("{} addresses are requested with those of the pod's annotations, at most {} are allowed",
                          request.addresses.size(), kWishedAddressesMax));
}

Result<void> check_something_is_asked(const AssignRequest& request) {
  if (request.count.v4 > 0 || request.count.v6 > 0 || !request.addresses.empty()) return {};
  return fail(ErrorCode::invalid_argument,
              "neither family is wanted: set ipam.assign_ipv4 or ipam.assign_ipv6 to \"true\"");
}

}  // namespace croft::core
