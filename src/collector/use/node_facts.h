#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>

#include "collector/use/sources.h"
#include "ipam/use/transact.h"

namespace croft::engine {

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
