#include <chrono>
#include <utility>

#include "cli/croft_ipam/croft_ipam_world.h"
#include "cli/croft_ipam/personalities.h"
#include "cli/croft_ipam/sibling.h"
#include "cli/croft_ipam/store_parts.h"
#include "cli/stores/open_store.h"
#include "os/clock.h"
#include "os/process.h"
#include "os/random.h"
#include "store/kube/pod_wishes.h"

namespace croft::app {
namespace {

/// For one of two reads at once.
constexpr std::chrono::seconds kAnnotationsTime{5};

}  // namespace

int serve_cluster_ipam(const edge::CniHost& host) {
  os::make_files_private();
  const os::SystemClock clock;
  os::SystemRandom random;
  edge::CroftIpamWorld world = croft_ipam_world(clock, random);
  world.open_store = [&](const std::string& url, store::OpenMode mode) {
    return open_store(url, mode, clock, kPluginParts);
  };
  world.ask_for_wishes = [&](const std::string& url, const core::PodIdentity& pod) -> Result<core::AnnotatedWishes> {
    TRY(const auto api, open_kube_api(url, clock, kPluginParts, kAnnotationsTime));
    return store::kube::ask_for_wishes(*api, pod, Deadline::after(clock.now(), kAnnotationsTime));
  };
  if (auto begun = call_so_far(clock); begun) {
    world.so_far = *std::move(begun);
  } else {
    world.misplaced = begun.error();
  }
  return edge::serve_cni(edge::croft_ipam_plugin(world), host, os::write_json_to_standard_output,
                         os::write_standard_error);
}

}  // namespace croft::app
