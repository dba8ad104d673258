#include "vpc/daemon/cluster_claims.h"

#include <fmt/format.h>

#include "base/net/echo.h"

namespace croft::app {

Result<std::vector<net::Address>> ClusterClaims::claimed(Deadline deadline) {
  const auto claims = objects_.claims("", deadline);
  std::vector<net::Address> addresses;
  // A cluster without the kind has none.
  if (!claims && claims.error().code == ErrorCode::not_found) return addresses;
  if (!claims) return fail(claims.error());
  for (const auto& claim : *claims) {
    // Whoever may write claims in one namespace does not decide for all nodes.
    if (claim.record.ip.empty()) continue;
    if (const auto address = net::Address::parse(claim.record.ip)) {
      addresses.push_back(*address);
    } else {
      tell_once(claim.meta.name_space + "/" + claim.meta.name, claim.record.ip);
    }
  }
  return addresses;
}

void ClusterClaims::tell_once(const std::string& name, const std::string& ip) {
  {
    const std::lock_guard lock(mutex_);
    if (told_.size() >= kToldMax || !told_.insert(name + " " + ip).second) return;
  }
  log_(fmt::format("VpcIpClaim {} promises nothing: its ip {} is no address; it is passed over", name, net::echo(ip)));
}

}  // namespace croft::app
