#include "cli/croft_ipam/plugin_wiring.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "base/printable.h"
#include "base/texts.h"
#include "cli/croft_ipam/plugin_main.h"
#include "cni/door/tombstones.h"
#include "cni/format/conflist.h"
#include "os/files.h"
#include "os/host_route.h"
#include "os/interfaces.h"
#include "os/log_file.h"
#include "os/process.h"
#include "vpc/door/agent_client.h"

namespace croft::app {
namespace {

/// The kernel answers in microseconds, or while somebody else changes its tables a little later.
constexpr std::chrono::seconds kKernelTime{1};

/// A value that is neither an absolute path nor "none" would be another place for each directory that a runtime calls
/// from, and nobody finds a DEL left in one.
std::string path_named_by(const char* variable, const char* otherwise, std::string_view none,
                          std::optional<Error>& fault) {
  std::string named = os::from_environment(variable);
  if (named.empty()) return otherwise;
  if (named.front() != '/' && named != none && !fault) {
    fault = make_error(ErrorCode::refused_by_configuration,
                       "{} in the environment of the container runtime: {} is no absolute path; give one that begins "
                       "with /, or \"{}\"",
                       variable, echo(named), none);
  }
  return named;
}

/// The lock's directory lasts one boot, as the agent's socket.
constexpr const char* kTurns = "/run/croft";

constexpr std::chrono::seconds kHostTime{2};

/// Where there is no such socket nobody is asked.
template <class Answer, class Ask>
[[nodiscard]] Result<Answer> if_there(const std::string& socket, Ask ask) {
  const auto status = os::file_status(socket);
  if (!status || !*status) return fail(ErrorCode::unavailable, "there is no " + socket);
  return ask();
}

[[nodiscard]] std::optional<net::Address> node_address(const core::StockAddress& given, const Clock& clock) {
  const Deadline deadline = Deadline::after(clock.now(), kHostTime);
  const auto interface = os::find_interface(given.mac, clock, deadline);
  const auto addresses = interface ? os::list_addresses(clock, deadline) : fail(interface.error());
  if (!addresses) return std::nullopt;
  const auto subnet = net::Prefix::containing(given.address, static_cast<int>(given.prefix_length));
  for (const os::AddressOnInterface& one : *addresses) {
    const bool is_there = one.interface_index == interface->index && subnet.contains(one.address);
    if (is_there && one.address != given.address) return one.address;
  }
  return std::nullopt;
}

/// Addresses of the host's own namespace: `ptp` makes a route to each pod there.
[[nodiscard]] Result<std::set<net::Address>> used_by_host(const Clock& clock) {
  const Deadline deadline = Deadline::after(clock.now(), kHostTime);
  TRY(const auto routes, os::list_host_routes(clock, deadline));
  std::set<net::Address> used(routes.begin(), routes.end());
  TRY(const auto addresses, os::list_addresses(clock, deadline));
  for (const os::AddressOnInterface& one : addresses) used.insert(one.address);
  return used;
}

constexpr const char* kVariable = "CROFT_CALL_SO_FAR";

}  // namespace

edge::IpamWorld ipam_world(const Clock& clock, Random& random) {
  edge::IpamWorld world{clock, random, os::host_name().value_or("")};
  // Most machines without an agent have no such file.
  world.find_agent = [&clock](const std::string& socket) {
    const auto status = os::file_status(socket);
    return status && *status ? edge::agent_at(socket, clock) : nullptr;
  };
  world.agent_socket = path_named_by("CROFT_AGENT", edge::kDefaultAgentSocket, edge::kNoAgent, world.misplaced);
  world.tombstones = path_named_by("CROFT_TOMBSTONES", edge::kDefaultTombstones, edge::kNoTombstones, world.misplaced);
  // This process's network namespace is the node's: main plugins start their IPAM plugin before they enter the
  // container's.
  world.device_of = [&clock](const net::Address& address) {
    return os::device_of_living(address, clock, Deadline::after(clock.now(), kKernelTime));
  };
  return world;
}

edge::CroftIpamWorld croft_ipam_world(const Clock& clock, Random& random) {
  return {
      ipam_world(clock, random),
      {},
      [](const std::string& file, const std::string& line) { os::append_log_line(log_place(file), line); },
      nullptr,
      kTurns,
  };
}

edge::CroftVpcWorld croft_vpc_world(const Clock& clock, Random& random) {
  return {
      {},
      clock,
      random,
      [](const std::string& file, const std::string& line) { os::append_log_line(log_place(file), line); },
      [&clock](const std::string& socket, const core::warm::Request& request) {
        return if_there<core::StockAddress>(socket, [&] { return edge::assign_by_agent(socket, request, clock); });
      },
      [&clock](const std::string& socket, const core::warm::Release& release) {
        return if_there<void>(socket, [&] { return edge::release_by_agent(socket, release, clock); });
      },
      {},
      [&clock](const core::StockAddress& given) { return node_address(given, clock); },
      [&clock] { return used_by_host(clock); },
  };
}

edge::HandOver hand_over_to_sibling(const char* personality, const std::string& input) {
  return [personality, &input](const edge::CallSoFar& call) {
    Error error =
        os::become_sibling({wire::cni::kSiblingName, personality, input, kVariable, edge::encode_call_so_far(call)});
    if (error.code == ErrorCode::not_found) {
      error.message +=
          "; croft-ipam needs it for an etcd, a Kubernetes API or a cloud: run croftd install, or copy it there";
    } else if (error.code == ErrorCode::already_exists) {
      error.message += ": run croftd install, or copy the right file there";
    }
    // The register is there, whatever keeps this node from asking it: nobody may take that for an empty one.
    error.code = ErrorCode::unavailable;
    return error;
  };
}

Result<std::optional<edge::CallSoFar>> call_so_far(const Clock& clock) {
  const auto text = os::handed_over(kVariable);
  if (!text) return std::optional<edge::CallSoFar>();
  auto call = edge::parse_call_so_far(*text);
  if (!call) {
    return fail(ErrorCode::unavailable,
                "{} is of another version than the plugin that began this call: install both of one version",
                wire::cni::kSiblingName);
  }
  call->began.boot = clock.now().boot;
  return call;
}

}  // namespace croft::app
