#include "ipam/door/calico_ipam.h"

#include <cstdint>
#include <cstdlib>
#include <string>

#include "cli/croft_ipam/living_probe.h"
#include "cli/croft_ipam/log_place.h"
#include "cli/croft_ipam/node_agent.h"
#include "cli/croft_ipam/node_paths.h"
#include "cli/croft_ipam/personalities.h"
#include "cli/croft_ipam/store_parts.h"
#include "cli/stores/kube_url.h"
#include "cli/stores/open_store.h"
#include "os/clock.h"
#include "os/log_file.h"
#include "os/process.h"
#include "os/random.h"

namespace croft::app {
namespace {

using wire::cni::DatastoreChoice;

[[nodiscard]] Result<std::unique_ptr<store::Store>> open_datastore(const DatastoreChoice& choice, store::OpenMode mode,
                                                                   const Clock& clock) {
  // Only now: the lock's directory, made before, is for others too.
  os::make_files_private();
  if (choice.kind == DatastoreChoice::Kind::store_url) return open_store(choice.url, mode, clock, kPluginParts);
  if (choice.kind == DatastoreChoice::Kind::kubernetes) {
    KubePlace place;
    place.kubeconfig = choice.kubeconfig;
    place.group = calico_group(choice.api_group);
    place.overrides = {choice.api_root, choice.ca_cert_file, choice.cert_file, choice.key_file, choice.token};
    return open_kube_store(place, clock, kPluginParts, mode, true);
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

}  // namespace

int serve_calico_ipam(const edge::CniHost& host) {
  const os::SystemClock clock;
  os::SystemRandom random;
  const NodePaths paths = node_paths();
  const edge::CalicoIpamWorld world{
      [&](const DatastoreChoice& choice, store::OpenMode mode) { return open_datastore(choice, mode, clock); },
      clock,
      random,
      os::host_name().value_or(""),
      [](const char* name) {
        const char* value = std::getenv(name);
        return std::string(value == nullptr ? "" : value);
      },
      [](const std::string& file, const std::string& line, std::uint64_t bytes_max) {
        os::append_log_line(log_place(file), line, bytes_max);
      },
      [&](const std::string& socket) { return find_agent(socket, clock); },
      paths.agent_socket,
      paths.tombstones,
      paths.fault,
      living_probe(clock),
  };
  return edge::serve_cni(edge::calico_ipam_plugin(world), host, os::write_json_to_standard_output,
                         os::write_standard_error);
}

int answer_calico_options(std::span<char* const> options) {
  const std::string option = options.front();
  if (option == "-v" || option == "--v") return os::write_standard_output(std::string(CROFT_VERSION) + "\n") ? 0 : 1;
  static_cast<void>(os::write_standard_error(
      option + ": this version knows only -v; taking over the reservations of host-local is not in it\n"));
  return 1;
}

}  // namespace croft::app
