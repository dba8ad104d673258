#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/result.h"
#include "ipam/decide/assign.h"
#include "register/owner.h"
#include "register/pool.h"

// The messages between plugin and agent (proto/croft/agent.proto), bytes <-> values. Both sides use this pair; what the
// other side sent is checked against the bounds before anything looks at it. All
// errors of decoding: invalid_argument, naming the member.

namespace croft::wire::agent {

/// A longer call is refused.
inline constexpr std::size_t kMessageBytesMax = 64U << 10;
/// So is a longer answer: a refusal names every pool and why it would not do.
inline constexpr std::size_t kAnswerBytesMax = 4U << 20;
inline constexpr std::size_t kPoolSpecsMax = 64;
inline constexpr std::size_t kAskedPoolsMax = 64;
inline constexpr std::size_t kAddressesMax = 256;
inline constexpr std::size_t kLabelsMax = 256;
inline constexpr std::size_t kTextBytesMax = 4096;
inline constexpr std::uint32_t kCountMax = 1;  ///< addresses of one family in one request

// gRPC's names of the methods.
inline constexpr const char* kServiceName = "croft.agent.v1.Agent";
inline constexpr const char* kAssignMethod = "/croft.agent.v1.Agent/Assign";
inline constexpr const char* kReleaseMethod = "/croft.agent.v1.Agent/Release";
inline constexpr const char* kStatusMethod = "/croft.agent.v1.Agent/Status";

/// Which file a store is, on this machine.
struct StoreFile {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  friend bool operator==(const StoreFile&, const StoreFile&) = default;
};

/// The head of every call that may write: which store and node it means, and until when it may be begun.
struct Caller {
  std::string store;  ///< the URL
  std::string node;
  BootId boot;
  Deadline expires;
  /// The identity of a file store: the path may name another one by now than the agent has open.
  std::optional<StoreFile> file = {};
  /// The inode of its network namespace; 0: it does not say.
  std::uint64_t network_namespace = 0;
  /// Until when it waits as long as it gets signs of life, which then begin before `expires`; absent: it takes none.
  std::optional<Deadline> ends = {};
  friend bool operator==(const Caller& a, const Caller& b) {
    return a.store == b.store && a.file == b.file && a.node == b.node && a.boot == b.boot &&
           a.expires.at_since_boot == b.expires.at_since_boot && a.network_namespace == b.network_namespace &&
           a.ends.has_value() == b.ends.has_value() && (!a.ends || a.ends->at_since_boot == b.ends->at_since_boot);
  }
};

struct AssignCall {
  Caller caller;
  std::vector<core::PoolSpec> pools;  ///< made first when they are absent
  core::AssignRequest request;        ///< its node is the caller's
  /// The further wishes to take from annotations in the Kubernetes API; absent: none.
  std::optional<core::WishesWanted> annotations = {};
};

struct ReleaseCall {
  Caller caller;
  core::Owner owner;
};

/// An Error is one of the engine's: the call was served as far as it went.
using AssignOutcome = std::variant<core::Assigned, core::Refusal, Error>;
using ReleaseOutcome = std::variant<std::vector<net::Address>, Error>;

struct AgentStatus {
  std::string version;
  std::string store;
  std::string node;
  bool cache_in_use = false;
  std::uint64_t own_blocks = 0;
  std::uint64_t known_affinities = 0;
  std::uint64_t served_from_cache = 0;
  std::uint64_t served_from_store = 0;
  std::uint64_t failed = 0;
  std::uint64_t commits = 0;       ///< by which calls were served together
  std::uint64_t blocks_ahead = 0;  ///< claimed ahead, and not given back so far
  friend bool operator==(const AgentStatus&, const AgentStatus&) = default;
};

[[nodiscard]] std::string encode(const AssignCall& call);
[[nodiscard]] std::string encode(const ReleaseCall& call);
[[nodiscard]] std::string encode(const AssignOutcome& outcome);
[[nodiscard]] std::string encode(const ReleaseOutcome& outcome);
[[nodiscard]] std::string encode(const AgentStatus& status);

/// The sign of life before an answer, the same for both kinds of call.
[[nodiscard]] std::string encode_sign_of_life();
[[nodiscard]] bool is_sign_of_life(std::string_view bytes);

[[nodiscard]] Result<AssignCall> decode_assign_call(std::string_view bytes);
[[nodiscard]] Result<ReleaseCall> decode_release_call(std::string_view bytes);
[[nodiscard]] Result<AssignOutcome> decode_assign_outcome(std::string_view bytes);
[[nodiscard]] Result<ReleaseOutcome> decode_release_outcome(std::string_view bytes);
[[nodiscard]] Result<AgentStatus> decode_status(std::string_view bytes);

}  // namespace croft::wire::agent
