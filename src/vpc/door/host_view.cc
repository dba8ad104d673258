#include "vpc/door/host_view.h"

#include "vpc/door/ip_bytes.h"

namespace croft::edge {
namespace {

std::vector<net::Address> addresses_of(const std::vector<os::IpBytes>& found) {
  std::vector<net::Address> all;
  all.reserve(found.size());
  for (const auto& one : found) all.push_back(from_bytes(one));
  return all;
}

}  // namespace

Result<std::vector<net::Address>> HostView::in_use(Deadline deadline) {
  TRY(const auto found, os::host_addresses(namespaces_directory_, clock_, deadline));
  return addresses_of(found);
}

Result<HostView::Use> HostView::use(Deadline deadline) {
  TRY(const auto found, os::host_use(namespaces_directory_, clock_, deadline));
  Use use{addresses_of(found.own), {}};
  for (const auto& one : found.namespaces) use.namespaces.push_back(addresses_of(one));
  return use;
}

}  // namespace croft::edge
