#include "cli/croft_ipam/croft_vpc_world.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string>

#include "cli/croft_ipam/log_place.h"
#include "os/files.h"
#include "os/interfaces.h"
#include "os/log_file.h"
#include "os/process.h"
#include "vpc/door/agent_client.h"
#include "vpc/door/ip_bytes.h"

namespace croft::app {
namespace {

constexpr std::chrono::seconds kHostTime{2};

/// Where there is no such socket nobody is asked.
template <class Answer, class Ask>
[[nodiscard]] Result<Answer> if_there(const std::string& socket, Ask ask) {
  const auto status = os::file_status(socket);
  if (!status || !*status) return fail(ErrorCode::unavailable, "there is no " + socket);
  return ask();
}

[[nodiscard]] std::optional<net::Address> node_address(const core::WarmAddress& given, const Clock& clock) {
  const Deadline deadline = Deadline::after(clock.now(), kHostTime);
  os::MacBytes mac{};
  std::ranges::copy(given.mac.bytes, mac.begin());
  const auto interface = os::find_interface(mac, clock, deadline);
  const auto addresses = interface ? os::list_addresses(clock, deadline) : fail(interface.error());
  if (!addresses) return std::nullopt;
  const auto subnet = net::Prefix::containing(given.address, static_cast<int>(given.prefix_length));
  for (const os::AddressOnInterface& one : *addresses) {
    const net::Address address = edge::from_bytes(one.address);
    if (one.interface_index == interface->index && subnet.contains(address) && address != given.address) return address;
  }
  return std::nullopt;
}

/// Addresses of the host's own namespace: `ptp` makes a route to each pod there.
[[nodiscard]] Result<std::set<net::Address>> used_by_host(const Clock& clock) {
  const Deadline deadline = Deadline::after(clock.now(), kHostTime);
  std::set<net::Address> used;
  TRY(const auto routes, os::list_host_routes(clock, deadline));
  for (const auto& one : routes) used.insert(edge::from_bytes(one));
  TRY(const auto addresses, os::list_addresses(clock, deadline));
  for (const os::AddressOnInterface& one : addresses) used.insert(edge::from_bytes(one.address));
  return used;
}

}  // namespace

edge::CroftVpcWorld croft_vpc_world(const Clock& clock, Random& random) {
  const os::ProcessName self = os::own_process();
  return {
      {},
      clock,
      random,
      [](const std::string& file, const std::string& line) { os::append_log_line(log_place(file), line); },
      [&clock](const std::string& socket, const core::warm::Request& request) {
        return if_there<core::WarmAddress>(socket, [&] { return edge::assign_by_agent(socket, request, clock); });
      },
      [&clock](const std::string& socket, const core::warm::Release& release) {
        return if_there<void>(socket, [&] { return edge::release_by_agent(socket, release, clock); });
      },
      {},
      [&clock](const core::WarmAddress& given) { return node_address(given, clock); },
      self.id,
      self.began,
      [&clock] { return used_by_host(clock); },
  };
}

}  // namespace croft::app
