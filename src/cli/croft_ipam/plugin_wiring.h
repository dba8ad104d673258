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

/// The parts that croft-ipam and calico-ipam share. The places on this node are those of the runtime's environment:
/// CROFT_AGENT and CROFT_TOMBSTONES, else the defaults. `clock` and `random` must outlive it.
[[nodiscard]] edge::IpamWorld ipam_world(const Clock& clock, Random& random);
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
