// The CNI plugins on a store of a cluster and on a cloud, and calico-ipam. croft-ipam becomes this program where no
// agent answers (docs/adr/0019-plugin-files.md).

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "cli/croft_ipam/plugin_main.h"
#include "cli/croft_ipam/plugin_wiring.h"
#include "cli/stores/open_sqlite.h"
#include "cli/stores/open_store.h"
#include "ipam/door/calico_ipam.h"
#include "os/clock.h"
#include "os/log_file.h"
#include "os/process.h"
#include "store/kube/pod_wishes.h"
#include "vpc/door/adapters.h"
#include "vpc/ucloud/ucloud.h"

namespace croft::app {
namespace {

/// Where the other file began the call.
template <class World>
void go_on(World& world, const Clock& clock) {
  if (auto begun = call_so_far(clock); begun) {
    world.so_far = *std::move(begun);
  } else {
    world.misplaced = begun.error();
  }
}

// ---- croft-ipam

/// For one of two reads at once.
constexpr std::chrono::seconds kAnnotationsTime{5};

int serve_croft_ipam(const edge::CniHost& host) {
  os::make_files_private();
  const os::SystemClock clock;
  os::SystemRandom random;
  edge::CroftIpamWorld world = croft_ipam_world(clock, random);
  world.open_store = [&](const std::string& url, store::OpenMode mode) { return open_store(url, mode, clock, {}); };
  world.ask_for_wishes = [&](const std::string& url, const core::PodIdentity& pod) -> Result<core::AnnotatedWishes> {
    TRY(const auto api, open_kube_api(url, clock, {}, kAnnotationsTime));
    return store::kube::ask_for_wishes(*api, pod, Deadline::after(clock.now(), kAnnotationsTime));
  };
  go_on(world, clock);
  return edge::serve_cni(edge::croft_ipam_plugin(world), host, os::write_json_to_standard_output,
                         os::write_standard_error);
}

// ---- croft-vpc

[[nodiscard]] Result<edge::VpcCloud> open_cloud(const wire::cni::VpcConfig& config, const Clock& clock,
                                                Random& random) {
  namespace ucloud = cloud::ucloud;
  ucloud::Place place;
  place.api = config.api;
  place.metadata = config.metadata;
  place.subnet = config.subnet;
  edge::VpcCloud cloud;
  // A static program looks up no names: the API has a numeric address here.
  TRY(cloud.provider, ucloud::open_ucloud(place, ucloud::keys_of_environment(os::from_environment), {}, clock));
  if (!config.probe) return cloud;
  const auto mac = [provider = cloud.provider.get()](Deadline deadline) -> Result<net::Mac> {
    TRY(const cloud::Interface interface, provider->interface(deadline));
    return interface.mac;
  };
  const std::chrono::milliseconds unit{config.probe_unit_milliseconds};
  cloud.probe = std::make_unique<edge::WireProbe>(edge::WireProbe::Wire{config.interface, mac, unit}, clock, random);
  return cloud;
}

int serve_croft_vpc(const edge::CniHost& host) {
  os::make_files_private();
  const os::SystemClock clock;
  os::SystemRandom random;
  edge::CroftVpcWorld world = croft_vpc_world(clock, random);
  world.open_store = [&](const std::string& url, store::OpenMode mode) { return open_sqlite(url, mode, clock); };
  world.open_cloud = [&](const wire::cni::VpcConfig& config) { return open_cloud(config, clock, random); };
  go_on(world, clock);
  return edge::serve_cni(edge::croft_vpc_plugin(world), host, os::write_json_to_standard_output,
                         os::write_standard_error);
}

// ---- calico-ipam

using wire::cni::DatastoreChoice;

[[nodiscard]] Result<std::unique_ptr<store::Store>> open_datastore(const DatastoreChoice& choice, store::OpenMode mode,
                                                                   const Clock& clock) {
  // Only now: the lock's directory, made before, is for others too.
  os::make_files_private();
  if (choice.kind == DatastoreChoice::Kind::store_url) return open_store(choice.url, mode, clock, {});
  if (choice.kind == DatastoreChoice::Kind::kubernetes) {
    KubePlace place;
    place.kubeconfig = choice.kubeconfig;
    place.group = calico_group(choice.api_group);
    place.overrides = {choice.api_root, choice.ca_cert_file, choice.cert_file, choice.key_file, choice.token};
    return open_kube_store(place, clock, {}, true);
  }
  EtcdPlace place;
  place.endpoints = choice.endpoints;
  place.ca_file = choice.ca_cert_file;
  place.certificate_file = choice.cert_file;
  place.key_file = choice.key_file;
  place.user = choice.user;
  place.password = choice.password;
  return open_etcd_store(std::move(place), clock);
}

int serve_calico_ipam(const edge::CniHost& host) {
  const os::SystemClock clock;
  os::SystemRandom random;
  const edge::CalicoIpamWorld world{
      ipam_world(clock, random),
      [&](const DatastoreChoice& choice, store::OpenMode mode) { return open_datastore(choice, mode, clock); },
      os::from_environment,
      [](const std::string& file, const std::string& line, std::uint64_t bytes_max) {
        os::append_log_line(log_place(file), line, bytes_max);
      },
  };
  return edge::serve_cni(edge::calico_ipam_plugin(world), host, os::write_json_to_standard_output,
                         os::write_standard_error);
}

/// `-v` prints the version; any other, `-upgrade` above all, is refused: who calls it would take an exit without error
/// for the work done.
int answer_calico_options(std::span<char* const> options) {
  const std::string option = options.front();
  if (option == "-v" || option == "--v") return os::write_standard_output(std::string(CROFT_VERSION) + "\n") ? 0 : 1;
  static_cast<void>(os::write_standard_error(
      option + ": this version knows only -v; taking over the reservations of host-local is not in it\n"));
  return 1;
}

}  // namespace
}  // namespace croft::app

int main(int argc, char** argv) {
  using namespace croft::app;
  static constexpr std::array kPersonalities = {
      Personality{"croft-ipam", serve_croft_ipam},
      Personality{"croft-vpc", serve_croft_vpc},
      Personality{"calico-ipam", serve_calico_ipam, answer_calico_options},
  };
  plugin_main(argc, argv, kPersonalities, CROFT_LIBRARIES);
}
