#include "vpc/door/node_view.h"

#include <fmt/format.h>

#include "vpc/door/wire_probe.h"

namespace croft::edge {

namespace {

std::vector<net::Address> addresses_of(const std::vector<os::IpBytes>& found) {
  std::vector<net::Address> all;
  all.reserve(found.size());
  for (const auto& one : found) all.push_back(from_bytes(one));
  return all;
}

}  // namespace

Result<HostView::Use> HostView::use(Deadline deadline) {
  TRY(const auto found, os::host_use(namespaces_directory_, clock_, deadline));
  Use use{addresses_of(found.own), {}};
  for (const auto& one : found.namespaces) use.namespaces.push_back(addresses_of(one));
  return use;
}

Result<std::vector<core::warm::LivePod>> ApiPods::pods(Deadline deadline) {
  std::vector<core::warm::LivePod> all;
  bool is_too_long = false;
  TRY_VOID(list_(
      deadline,
      [&] {
        all.clear();
        is_too_long = false;
      },
      [&](const core::collect::PodFact& fact) {
        is_too_long = is_too_long || all.size() == kPodsMax;
        if (is_too_long || fact.is_in_node_network) return;
        // The mirror of a static pod has a UID that kubelet and its runtime do not know.
        all.push_back({{fact.name, fact.namespace_name, fact.is_mirror ? std::string() : fact.uid},
                       fact.addresses,
                       fact.phase == "Succeeded" || fact.phase == "Failed"});
      }));
  if (is_too_long) {
    return fail(ErrorCode::corrupt, fmt::format("the API server tells of more than {} pods of this node", kPodsMax));
  }
  return all;
}

}  // namespace croft::edge
