#pragma once

#include "engine/ports.h"
#include "engine/transact.h"

namespace croft::engine {

/// Facts out of the store's own Node records. Pods are not known from there: without a source of pods only what belongs
/// to nodes that are gone is collected.
class NodeFacts final : public FactSource {
 public:
  explicit NodeFacts(const Context& context, PodSource* pods = nullptr) : context_(context), pods_(pods) {}

  [[nodiscard]] Result<core::collect::Facts> facts() override;
  [[nodiscard]] bool answers_one_by_one() const override { return true; }
  [[nodiscard]] Result<std::optional<core::collect::PodFact>> pod(const std::string& namespace_name,
                                                                  const std::string& name) override;
  [[nodiscard]] Result<bool> has_node(const std::string& name) override;

 private:
  const Context& context_;
  PodSource* const pods_;  ///< may be null
};

}  // namespace croft::engine
