#include "ipam/door/croft_ipam.h"

#include "cli/croft_ipam/living_probe.h"
#include "cli/croft_ipam/log_place.h"
#include "cli/croft_ipam/node_agent.h"
#include "cli/croft_ipam/node_paths.h"
#include "cli/croft_ipam/personalities.h"
#include "cli/croft_ipam/store_parts.h"
#include "cli/stores/open_store.h"
#include "os/clock.h"
#include "os/log_file.h"
#include "os/process.h"
#include "os/random.h"
#include "store/kube/pod_wishes.h"

namespace croft::app {
namespace {

/// For one of two reads at once.
constexpr std::chrono::seconds kAnnotationsTime{5};
/// Of one boot, as the agent's socket.
constexpr const char* kTurns = "/run/croft";

}  // namespace

int serve_croft_ipam(const edge::CniHost& host) {
  os::make_files_private();
  const os::SystemClock clock;
  os::SystemRandom random;
  const NodePaths paths = node_paths();
  const edge::CroftIpamWorld world{
      [&](const std::string& url, store::OpenMode mode) { return open_store(url, mode, clock, kPluginParts); },
      clock,
      random,
      os::host_name().value_or(""),
      [](const std::string& file, const std::string& line) { os::append_log_line(log_place(file), line); },
      [&](const std::string& socket) { return find_agent(socket, clock); },
      paths.agent_socket,
      paths.tombstones,
      paths.fault,
      [&](const std::string& url, const core::PodIdentity& pod) -> Result<core::AnnotatedWishes> {
        TRY(const auto api, open_kube_api(url, clock, kPluginParts, kAnnotationsTime));
        return store::kube::ask_for_wishes(*api, pod, Deadline::after(clock.now(), kAnnotationsTime));
      },
      living_probe(clock),
      kTurns,
  };
  return edge::serve_cni(edge::croft_ipam_plugin(world), host, os::write_json_to_standard_output,
                         os::write_standard_error);
}

}  // namespace croft::app
