#include "vpc/daemon/deleted_claims.h"

#include <ctime>
#include <optional>
#include <set>
#include <string>

namespace croft::app {
namespace {

/// As UK8S' agent writes it: the node's local time.
std::string local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  char text[sizeof "2006-01-02 15:04:05"] = {};
  if (::localtime_r(&now, &parts) == nullptr) return {};
  return std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts) == 0 ? std::string() : std::string(text);
}

}  // namespace

Result<int> DeletedClaims::let_go(const std::function<bool(const net::Address&)>& is_held, Deadline deadline) {
  const auto claims = objects_.claims("", deadline);
  // A cluster without the kind has none.
  if (!claims && claims.error().code == ErrorCode::not_found) return 0;
  if (!claims) return fail(claims.error());
  std::optional<std::set<std::string>> nodes;
  int gone = 0;
  for (const auto& claim : *claims) {
    if (!claim.meta.deletion_timestamp || !claim.record.attached || claim.record.node.empty()) continue;
    if (claim.record.node == node_) {
      const auto address = net::Address::parse(claim.record.ip);
      if (address && is_held(*address)) continue;
    } else {
      if (!nodes) {
        TRY(nodes, objects_.node_names(deadline));
      }
      // A list without this node is not to be believed.
      if (!nodes->contains(node_) || nodes->contains(claim.record.node)) continue;
    }
    TRY(const bool went, detach(claim, deadline));
    gone += went ? 1 : 0;
  }
  return gone;
}

Result<bool> DeletedClaims::detach(const store::kube::VpcObjects::NamedClaim& seen, Deadline deadline) {
  TRY(const auto now, objects_.claim(seen.meta.name_space, seen.meta.name, deadline));
  const bool is_same = now && now->meta.uid == seen.meta.uid && now->meta.deletion_timestamp &&
                       now->record.node == seen.record.node && now->record.ip == seen.record.ip;
  if (!is_same) return false;
  wire::kube::VpcIpClaimRecord record = now->record;
  record.attached = false;
  record.last_detach_time = local_time();
  const auto written = objects_.update(*now, record, deadline);
  if (written) return true;
  const ErrorCode code = written.error().code;
  if (code == ErrorCode::conflict || code == ErrorCode::not_found || code == ErrorCode::unknown_outcome) return false;
  return fail(written.error());
}

}  // namespace croft::app
