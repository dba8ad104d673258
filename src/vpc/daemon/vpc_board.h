#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "store/kube/vpc_objects.h"
#include "vpc/use/warm_ports.h"

namespace croft::app {

/// The agents' notice board in the cluster: an object `ipamds` a node in kube-system. From one thread at a time;
/// peers() from any.
class VpcBoard {
 public:
  /// `address` is where this node's agent serves its peers, `10.0.0.2:7312`. `api` and `clock` must outlive it.
  VpcBoard(store::kube::Api& api, const Clock& clock, std::string node, std::string address)
      : api_(api), stocks_(api), clock_(clock), node_(std::move(node)), address_(std::move(address)) {}

  struct Status {
    std::uint32_t free = 0, low = 0, high = 0;
    /// "dry", "hungry", "normal" or "overflow" (docs/notes/warm-pool.md#control-loop).
    std::string status;
  };
  /// Says how this node's stock is. Asks the API only when something is new, or ten minutes have passed: somebody may
  /// have changed or deleted it.
  [[nodiscard]] Result<void> publish(const cloud::Interface& interface, const Status& status, Deadline deadline);
  /// Deletes what names a node that is not there, when it was so at the call before too. Nothing at all where the
  /// cluster has no nodes, or not this one: then the list is not to be believed.
  [[nodiscard]] Result<void> clean_up(Deadline deadline);

  /// engine::PeerAgents::peers, without those that give no address: the richest first. An address
  /// that is no numeric `10.0.0.2:7312` is passed over: whoever may write these objects leads the agent to
  /// no socket of its machine. It is told once, a line without newline; `tell` may be null.
  [[nodiscard]] Result<std::vector<engine::PeerAgents::Peer>> peers(
      const std::string& subnet, Deadline deadline, const std::function<void(const std::string& line)>& tell = nullptr);

 private:
  void note_passed_over(std::map<std::string, std::string> passed_over,
                        const std::function<void(const std::string& line)>& tell);

  using Ipamd = wire::kube::VpcObject<wire::kube::IpamdRecord>;
  store::kube::Api& api_;
  store::kube::VpcObjects<wire::kube::IpamdRecord> stocks_;
  const Clock& clock_;
  const std::string node_;
  const std::string address_;
  std::optional<Ipamd> own_;  ///< as it was written or read last
  std::chrono::nanoseconds own_at_{};
  std::map<std::string, std::string> absent_;  ///< by UID: objects whose node was absent, and its name
  std::mutex mutex_;                           ///< guards what is below
  std::map<std::string, std::string> told_;    ///< by node: addresses that are none
};

}  // namespace croft::app
