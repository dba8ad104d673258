#include <algorithm>
#include <chrono>
#include <utility>

#include "cli/croft_ipam/croft_vpc_world.h"
#include "cli/croft_ipam/personalities.h"
#include "cli/croft_ipam/sibling.h"
#include "cli/stores/open_store.h"
#include "os/clock.h"
#include "os/interfaces.h"
#include "os/process.h"
#include "os/random.h"
#include "vpc/daemon/ucloud_place.h"
#include "vpc/door/wire_probe.h"

namespace croft::app {
namespace {

constexpr std::chrono::seconds kMetadataTime{10};

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

}  // namespace

int serve_cluster_vpc(const edge::CniHost& host) {
  os::make_files_private();
  const os::SystemClock clock;
  os::SystemRandom random;
  edge::CroftVpcWorld world = croft_vpc_world(clock, random);
  world.open_store = [&](const std::string& url, store::OpenMode mode) { return open_store(url, mode, clock, {}); };
  world.open_cloud = [&](const wire::cni::VpcConfig& config) { return open_cloud(config, clock, random); };
  if (auto begun = call_so_far(clock); begun) {
    world.so_far = *std::move(begun);
  } else {
    world.misplaced = begun.error();
  }
  return edge::serve_cni(edge::croft_vpc_plugin(world), host, os::write_json_to_standard_output,
                         os::write_standard_error);
}

}  // namespace croft::app
