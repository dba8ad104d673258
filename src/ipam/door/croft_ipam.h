#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/door/client.h"
#include "base/clock.h"
#include "base/result.h"
#include "cni/door/cni_call.h"
#include "cni/door/skeleton.h"
#include "ipam/use/assign.h"
#include "register/owner.h"
#include "store/store.h"
#include "store/store_url.h"

namespace croft::edge {

/// The outside that `croft-ipam` shares with `calico-ipam`; `app` fills it in.
struct IpamWorld {
  const Clock& clock;
  Random& random;
  /// This host's own name; the node's when nothing else says it. `calico-ipam` needs it in lower case.
  std::string host_name = {};
  /// The agent behind a socket; null when there is no such socket. Without it every call goes to the store.
  std::function<std::unique_ptr<Agent>(const std::string& socket)> find_agent{};
  /// The agent's socket when the configuration names none.
  std::string agent_socket = kDefaultAgentSocket;
  /// Where DELs leave what they can't release now (cni/door/tombstones.h); empty: nowhere.
  std::string tombstones = {};
  /// An error in the places above: every call is refused with it.
  std::optional<Error> misplaced = {};
  /// Asks the node's kernel who lives with an address; null: nobody is asked.
  engine::DeviceOf device_of = nullptr;
};

/// The outside of the personality `croft-ipam`.
struct CroftIpamWorld : IpamWorld {
  /// Opens a store by its URL.
  std::function<Result<std::unique_ptr<store::Store>>(const std::string& url, store::OpenMode mode)> open_store;
  /// Takes one line for each decision, without newline; never fails.
  /// `log_file` is empty when the configuration names none.
  std::function<void(const std::string& log_file, const std::string& line)> log;
  /// The wishes in the annotations of a pod and its namespace, from the Kubernetes API that a store's URL names; for
  /// ipam.annotations "api". Null: there is none.
  std::function<Result<core::AnnotatedWishes>(const std::string& store_url, const core::PodIdentity& pod)>
      ask_for_wishes = nullptr;
  /// Where calls that go to a store of another machine take turns (cni/door/tombstones.h); empty: they don't.
  std::string turns = {};
  /// Goes on in the sibling where the store is not of this machine alone.
  HandOver hand_over = {};
  /// In the sibling, a call that began in the other file: no agent is asked again.
  std::optional<CallSoFar> so_far = {};
};

inline constexpr const char* kDefaultStoreUrl = "sqlite:/var/lib/croft/croft.db";

/// The personality `croft-ipam`: translates between CNI and the engine, decides nothing. `world` must outlive the
/// plugin. Errors are CNI errors as docs/promises.md#cni-codes numbers them; a refusal's `details` names each pool
/// considered.
/// - ADD and DEL go through the node's agent when one answers in time, else to the store: the same answer either way.
/// - ADD makes the configured pools that are absent, then assigns. The result carries the pool's prefix length and
///   gateway; without gateway /32 or /128. With it come the configured routes of the families that the pod got.
/// - An address that somebody lives with on this node is not given (ipam/use/assign.h); the agent, or else this
/// process, asks the kernel.
/// - DEL of an absent store or an unknown owner is a success; so is GC, which frees nothing without a list. So is one
///   while the store is away: it leaves a tombstone, for which later calls or the agent make up.
/// - STATUS makes what the first ADD would make (store, configured pools) and tries an assignment without keeping it.
[[nodiscard]] CniPlugin croft_ipam_plugin(const CroftIpamWorld& world);

}  // namespace croft::edge
