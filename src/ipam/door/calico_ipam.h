#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "calico/netconf.h"
#include "cni/door/skeleton.h"
#include "ipam/decide/assign.h"
#include "ipam/door/croft_ipam.h"
#include "store/store.h"
#include "store/store_url.h"

namespace croft::edge {

/// The outside of the personality `calico-ipam`.
struct CalicoIpamWorld : IpamWorld {
  /// Opens the register that the configuration names.
  std::function<Result<std::unique_ptr<store::Store>>(const wire::cni::DatastoreChoice& choice, store::OpenMode mode)>
      open_store;
  /// Reads the environment.
  wire::cni::GetVariable variable;
  /// Takes one line, without newline; the file is replaced when it has outgrown `bytes_max`. Never fails.
  /// `log_file` is empty when the configuration names none.
  std::function<void(const std::string& log_file, const std::string& line, std::uint64_t bytes_max)> log;
};

/// How long ADD and DEL wait for the host-wide lock before they go on without it, and how long they may then take.
inline constexpr std::chrono::seconds kCalicoLockWaitMax{90};
inline constexpr std::chrono::seconds kCalicoWorkMax{90};
/// A DEL, which may be asked for again at any time, takes no longer than kCalicoWorkMax with all that it does: a
/// kubelet gives up after two minutes. So it waits this long for the lock.
inline constexpr std::chrono::seconds kCalicoDelLockWaitMax{60};

/// The personality: Calico's configuration, handles and results on Croft's engine
/// (docs/notes/calico-ipam.md#plugin, docs/formats/calico-ipam.md). ADD and DEL; CHECK succeeds without work;
/// STATUS and GC need a newer version than it speaks. It reads the files that the configuration names (the node's name)
/// and locks the one that all calls of a host share. `world` must outlive the plugin.
[[nodiscard]] CniPlugin calico_ipam_plugin(const CalicoIpamWorld& world);

/// A refusal in the words of Calico's plugin (docs/notes/calico-ipam.md#pool-choice), which people and tools search
/// for. The message is Calico's; the code and the details, every pool considered and why not, are Croft's. Where Calico
/// has no words the message is Croft's too.
[[nodiscard]] Error calico_error(const core::Refusal& refusal, const core::AssignRequest& request);

}  // namespace croft::edge
