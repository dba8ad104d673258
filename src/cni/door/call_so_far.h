#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"

// A call that begins in one file of the plugin and goes on in its sibling (docs/adr/0019-plugin-files.md). The small
// file has asked the node's agent; an etcd or a Kubernetes API is the sibling's. It does everything anew, without harm:
// a call that is asked again has the same answer.

namespace croft::edge {

/// The first file's knowledge of the call.
struct CallSoFar {
  Instant began;                  ///< a DEL means what its owner held then
  bool may_have_written = false;  ///< of an ADD: the agent, which did not answer
  bool lifted = false;            ///< of an ADD: a tombstone of its owner, which is gone
  bool may_hold = false;          ///< by that tombstone the owner may hold something
  bool served = false;            ///< of a DEL: by the agent; what earlier DELs left is all that is to do
  std::string agent_said;         ///< why the agent did not serve; empty: there is none
  friend bool operator==(const CallSoFar&, const CallSoFar&) = default;
};

/// Between two files on one machine, which an upgrade replaces one after the other.
[[nodiscard]] std::string encode_call_so_far(const CallSoFar& call);
/// Nothing: it is none, or of another version.
[[nodiscard]] std::optional<CallSoFar> parse_call_so_far(std::string_view text);

/// Goes on in the sibling; comes back only where that can't be, with unavailable. Empty: this file can do all of it.
using HandOver = std::function<Error(const CallSoFar& call)>;

}  // namespace croft::edge
