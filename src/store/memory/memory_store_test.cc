#include "store/memory/memory_store.h"

#include <gtest/gtest.h>

#include "store/conformance/conformance.h"

namespace croft::store {
namespace {

class MemoryBackend final : public ConformanceBackend {
 public:
  [[nodiscard]] std::unique_ptr<Store> open() override { return std::make_unique<MemoryStore>(first_.data()); }
  void damage(const Key& key) override { first_.damage(key); }
  [[nodiscard]] bool outlives_processes() const override { return false; }

 private:
  MemoryStore first_;
};

INSTANTIATE_TEST_SUITE_P(Memory, StoreConformance,
                         testing::Values(BackendCase{"memory", [] { return std::make_unique<MemoryBackend>(); }}));

}  // namespace
}  // namespace croft::store
