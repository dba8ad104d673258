#pragma once

#include <memory>
#include <optional>
#include <string>

#include "agent/door/client.h"
#include "base/clock.h"
#include "base/result.h"
#include "cni/door/cni_call.h"
#include "ipam/door/croft_ipam.h"
#include "ipam/use/assign.h"
#include "vpc/door/croft_vpc.h"

// The outside of the plugins that have a store: what they find on their node, and the way between the two files.

namespace croft::app {

/// The agent behind a socket; nothing when there is no such file: most machines without an agent have none.
[[nodiscard]] std::unique_ptr<edge::Agent> find_agent(const std::string& socket, const Clock& clock);

/// Asks the kernel of this process's network namespace, which is the node's: main plugins start their IPAM plugin
/// before they enter the container's.
[[nodiscard]] engine::DeviceOf device_of_living(const Clock& clock);

/// The places on this node by the runtime's environment.
struct NodePaths {
  std::string agent_socket;  ///< CROFT_AGENT, else the default
  std::string tombstones;    ///< CROFT_TOMBSTONES, else the default
  /// A value that is neither an absolute path nor "none" is refused_by_configuration, naming it. It would be another
  /// place for each directory that a runtime calls from, and nobody finds a DEL left in one.
  std::optional<Error> fault;
};
[[nodiscard]] NodePaths node_paths();

/// The parts that both files of croft-ipam share: all but how a store is opened, and the way between the files. `clock`
/// and `random` must outlive it.
[[nodiscard]] edge::CroftIpamWorld croft_ipam_world(const Clock& clock, Random& random);
/// The parts of croft-vpc that both files share: all but how a store and a cloud are opened, and the way between them.
/// `clock` and `random` must outlive it.
[[nodiscard]] edge::CroftVpcWorld croft_vpc_world(const Clock& clock, Random& random);

/// Becomes the sibling, called as `personality`, with `input` as the configuration. It must outlive the function.
[[nodiscard]] edge::HandOver hand_over_to_sibling(const char* personality, const std::string& input);

/// In the sibling: the call that it goes on with; nothing where the runtime called it. Error: unavailable, where the
/// file that began it is of another version, which asks otherwise.
[[nodiscard]] Result<std::optional<edge::CallSoFar>> call_so_far(const Clock& clock);

}  // namespace croft::app
