#include "vpc/door/croft_vpc.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "cli/croft_ipam/log_place.h"
#include "cli/croft_ipam/personalities.h"
#include "cli/stores/open_store.h"
#include "os/clock.h"
#include "os/files.h"
#include "os/interfaces.h"
#include "os/log_file.h"
#include "os/process.h"
#include "os/random.h"
#include "vpc/daemon/ucloud_place.h"
#include "vpc/door/agent_client.h"
#include "vpc/door/ip_bytes.h"
#include "vpc/door/wire_probe.h"

namespace croft::app {
namespace {

constexpr std::chrono::seconds kMetadataTime{10};
constexpr std::chrono::seconds kHostTime{2};

/// Where there is no such socket nobody is asked.
template <class Answer, class Ask>
[[nodiscard]] Result<Answer> if_there(const std::string& socket, Ask ask) {
  const auto status = os::file_status(socket);
  if (!status || !*status) return fail(ErrorCode::unavailable, "there is no " + socket);
  return ask();
}

[[nodiscard]] Result<edge::VpcCloud> open_cloud(const wire::cni::VpcConfig& config, const Clock& clock,
                                                Random& random) {
  UCloudPlace place;
  place.api = config.api;
  place.metadata = config.metadata;
  place.subnet = config.subnet;
  place.environment = ucloud_environment();
  edge::VpcCloud cloud;
  // A static program looks up no names: the API has a numeric address here.
  TRY(cloud.provider, open_ucloud(place, {}, clock));
  if (!config.probe) return cloud;
  std::string name = config.interface;
  if (name.empty()) {
    const Deadline deadline = Deadline::after(clock.now(), kMetadataTime);
    TRY(const cloud::Interface interface, cloud.provider->interface(deadline));
    os::MacBytes mac{};
    std::ranges::copy(interface.mac.bytes, mac.begin());
    TRY(const auto one, os::find_interface(mac, clock, deadline));
    name = one.name;
  }
  os::ProbeTiming timing;
  const std::chrono::nanoseconds unit = std::chrono::milliseconds{config.probe_unit_milliseconds};
  timing.probe_wait = unit;
  timing.probe_min = unit;
  timing.probe_max = unit * 2;
  timing.announce_wait = unit * 2;
  timing.announce_interval = unit * 2;
  cloud.probe = std::make_unique<edge::WireProbe>(name, timing, clock, random);
  return cloud;
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

/// Of the host's own namespace: `ptp` makes a route to each pod there.
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

int serve_croft_vpc(const edge::CniHost& host) {
  os::make_files_private();
  const os::SystemClock clock;
  os::SystemRandom random;
  const os::ProcessName self = os::own_process();
  const edge::CroftVpcWorld world{
      [&](const std::string& url, store::OpenMode mode) { return open_store(url, mode, clock, {}); },
      clock,
      random,
      [](const std::string& file, const std::string& line) { os::append_log_line(log_place(file), line); },
      [&](const std::string& socket, const core::warm::Request& request) {
        return if_there<core::WarmAddress>(socket, [&] { return edge::assign_by_agent(socket, request, clock); });
      },
      [&](const std::string& socket, const core::warm::Release& release) {
        return if_there<void>(socket, [&] { return edge::release_by_agent(socket, release, clock); });
      },
      [&](const wire::cni::VpcConfig& config) { return open_cloud(config, clock, random); },
      [&](const core::WarmAddress& given) { return node_address(given, clock); },
      self.id,
      self.began,
      [](std::uint32_t process, std::uint64_t began) {
        return os::is_running({process, began});
      },
      [&] { return used_by_host(clock); },
  };
  return edge::serve_cni(edge::croft_vpc_plugin(world), host, os::write_json_to_standard_output,
                         os::write_standard_error);
}

}  // namespace croft::app
