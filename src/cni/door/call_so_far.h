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
  Instant began;           ///< its time limit counts from here
  std::string agent_said;  ///< why the agent did not serve; empty: there is none, or it served
  friend bool operator==(const CallSoFar&, const CallSoFar&) = default;
};

/// Between two files on one machine, which an upgrade replaces one after the other.
[[nodiscard]] std::string encode_call_so_far(const CallSoFar& call);
/// Nothing: it is none, or of another version.
[[nodiscard]] std::optional<CallSoFar> parse_call_so_far(std::string_view text);

/// Goes on in the sibling; comes back only where that can't be, with unavailable. Empty: this file can do all of it.
using HandOver = std::function<Error(const CallSoFar& call)>;

}  // namespace croft::edge
