#include "edge/vpc/host_view.h"

#include "edge/vpc/ip_bytes.h"

namespace croft::edge {

Result<std::vector<net::Address>> HostView::in_use(Deadline deadline) {
  TRY(const auto found, os::host_addresses(namespaces_directory_, clock_, deadline));
  std::vector<net::Address> all;
  all.reserve(found.size());
  for (const auto& one : found) all.push_back(from_bytes(one));
  return all;
}

}  // namespace croft::edge
