#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "register/node.h"
#include "sim/server.h"
#include "store/cached/cached_store.h"
#include "store/forwarding_store.h"

namespace croft::sim {

/// The keys of all claimed blocks, one list for all nodes of a plan, as old as news of a watch are.
class ClaimedKeys {
 public:
  ClaimedKeys(Schedule& schedule, Span lag) : schedule_(schedule), lag_(lag) {}

  /// To be told of each commit.
  void committed(const std::vector<Changed>& changes);
  /// Takes in a claim that was there before.
  void put(const core::Key& affinity) { apply(affinity, true); }

  [[nodiscard]] core::KeyList list(net::Family family) { return keys_[family == net::Family::v4 ? 0 : 1].list(); }
  /// The number of claims.
  [[nodiscard]] std::size_t count() const { return affinities_.size(); }
  [[nodiscard]] bool contains(const core::Key& block) const { return claims_.contains(block.name); }

 private:
  void apply(const core::Key& affinity, bool is_there);

  Schedule& schedule_;
  const Span lag_;
  std::vector<std::pair<core::Key, bool>> waiting_;
  std::unordered_set<std::string> affinities_;
  std::unordered_map<std::string, std::size_t> claims_;  ///< of a block, by its name
  std::array<store::SharedKeys, 2> keys_;
};

/// A node's way to the register without memory. A look for a block to claim lists claims and blocks by label in a real
/// Kubernetes API, and the measured server goes through all of them. `claimed` is null for an agent, whose memory has
/// them.
class NodeStore final : public store::ForwardingStore {
 public:
  NodeStore(Client& client, Server& server, const ClaimedKeys* claimed)
      : ForwardingStore(client), server_(server), claimed_(claimed) {}
  [[nodiscard]] Result<store::ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override;
  [[nodiscard]] std::vector<Result<store::Revision>> commit_each(std::span<const store::Write> writes,
                                                                 const store::WriteToken& token,
                                                                 Deadline deadline) override {
    return beneath().commit_each(writes, token, deadline);
  }

 private:
  Server& server_;
  const ClaimedKeys* claimed_;
};

/// The answers of the memory of a node's agent (store/cached), for thousands of nodes in one process. Its own records
/// are those of the server at that moment, and take no time. Records that an agent does not know are asked for beneath.
class NodeMemory final : public store::ForwardingStore {
 public:
  NodeMemory(store::Store& direct, Server& server, ClaimedKeys& claimed, const core::AffinityOwner& node);
  [[nodiscard]] Result<store::ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override;
  [[nodiscard]] std::vector<Result<store::Revision>> commit_each(std::span<const store::Write> writes,
                                                                 const store::WriteToken& token,
                                                                 Deadline deadline) override {
    return beneath().commit_each(writes, token, deadline);
  }

 private:
  enum class Known : std::uint8_t { yes, absent, no };
  [[nodiscard]] Known knows(const core::Key& key);
  [[nodiscard]] bool knows_lists(const core::Missing& wanted) const;

  Server& server_;
  ClaimedKeys& claimed_;
  const std::string own_names_;
};

}  // namespace croft::sim
