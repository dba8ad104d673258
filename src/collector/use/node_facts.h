#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/net/prefix.h"
#include "base/result.h"
#include "collector/decide/facts.h"
#include "ipam/use/transact.h"

// The knowledge that the engine needs from outside. Its adapters: `collector/door`, `store/kube`.

namespace croft::engine {

/// Says which nodes and pods exist: the Kubernetes API, a file, or the store's own Node records (then pods are not
/// known). From one thread at a time.
class FactSource {
 public:
  virtual ~FactSource() = default;

  /// Asks anew. The answer is frozen, and `taken_at` is no earlier than this call, or it is marked incomplete: a list
  /// of unknown age proves nothing. A source that is away is an error, or an answer marked incomplete.
  [[nodiscard]] virtual Result<core::collect::Facts> facts() = 0;

  /// Whether single pods and nodes can be asked for besides. A file is all that it has to say.
  [[nodiscard]] virtual bool answers_one_by_one() const { return false; }
  /// One pod, as new as can be, whatever lists say; nothing where none has the name. Only where that can be asked, as
  /// the next one.
  [[nodiscard]] virtual Result<std::optional<core::collect::PodFact>> pod(const std::string& /*namespace_name*/,
                                                                          const std::string& /*name*/) {
    return std::optional<core::collect::PodFact>();
  }
  /// Whether a node is there.
  [[nodiscard]] virtual Result<bool> has_node(const std::string& /*name*/) { return false; }
};

/// Says which pods exist. From one thread at a time.
class PodSource {
 public:
  virtual ~PodSource() = default;

  /// Asks anew, and takes every pod; `begin` comes before the first one, and again when all that was taken is void. The
  /// answer is Facts::pods_revision. An error: not all pods are known.
  [[nodiscard]] virtual Result<std::optional<std::uint64_t>> pods(
      const std::function<void()>& begin, const std::function<void(const core::collect::PodFact&)>& take) = 0;
  /// One of them, asked for by itself; nothing where none has the name.
  [[nodiscard]] virtual Result<std::optional<core::collect::PodFact>> pod(const std::string& namespace_name,
                                                                          const std::string& name) = 0;
};

/// The ranges that nodes' own objects say, for their kubelets and networks to read: `spec.podCIDRs` in Kubernetes. From
/// one thread at a time.
class NodeCidrs {
 public:
  virtual ~NodeCidrs() = default;

  struct OfNode {
    std::string node;
    std::vector<net::Prefix> cidrs;  ///< what can be read as one; empty without damage: none yet
    std::optional<Error> damage;     ///< something else that it says is no range
    bool being_deleted = false;
    std::string written_by;  ///< the program that wrote them, where that is known
  };
  /// Asks anew; every node is in it.
  [[nodiscard]] virtual Result<std::vector<OfNode>> all() = 0;
  /// Says these, the first one first, for a node that has none; once said they stay. The same again is a success.
  /// Errors: not_found; conflict when the node says others.
  [[nodiscard]] virtual Result<void> publish(const std::string& node, const std::vector<net::Prefix>& cidrs) = 0;
};

/// Facts out of the store's own Node records. Pods are not known from there: without a source of pods only what belongs
/// to nodes that are gone is collected.
///
/// With `denied`, for who writes nothing, the one of both lists that this account may not read is done without, and
/// `denied` is told which. Without nodes those that pods name are there, now and later: no node is gone then.
class NodeFacts final : public FactSource {
 public:
  using Denied = std::function<void(const std::string& what, const Error& why)>;
  explicit NodeFacts(const Context& context, PodSource* pods = nullptr, Denied denied = nullptr)
      : context_(context), pods_(pods), denied_(std::move(denied)) {}

  [[nodiscard]] Result<core::collect::Facts> facts() override;
  [[nodiscard]] bool answers_one_by_one() const override { return true; }
  [[nodiscard]] Result<std::optional<core::collect::PodFact>> pod(const std::string& namespace_name,
                                                                  const std::string& name) override;
  [[nodiscard]] Result<bool> has_node(const std::string& name) override;

 private:
  const Context& context_;
  [[nodiscard]] bool may_pass_over(const Error& error) const {
    return denied_ && error.code == ErrorCode::permission_denied;
  }

  PodSource* const pods_;  ///< may be null
  const Denied denied_;    ///< may be null
  bool are_nodes_hidden_ = false;
  std::set<std::string> nodes_of_pods_;  ///< with are_nodes_hidden_: that any pod has named so far
};

}  // namespace croft::engine
