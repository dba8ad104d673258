#pragma once

#include "engine/ports.h"
#include "engine/transact.h"

namespace croft::engine {

/// Facts out of the store's own Node records. Pods are not known from there: only what belongs to nodes that are gone
/// is collected.
class NodeFacts final : public FactSource {
 public:
  explicit NodeFacts(const Context& context) : context_(context) {}

  [[nodiscard]] Result<core::collect::Facts> facts() override;

 private:
  const Context& context_;
};

}  // namespace croft::engine
