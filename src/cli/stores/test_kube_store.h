#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "base/clock.h"
#include "store/forwarding_store.h"
#include "store/kube/fake_api_fixture.h"
#include "store/kube/kube_store.h"
#include "store/kube/object_mapping.h"
#include "store/kube/objects.h"
#include "store/memory/memory_store.h"

namespace croft::app {

/// The parts of a KubeTestStore that are made before the ForwardingStore over them.
struct KubeTestParts {
  explicit KubeTestParts(std::shared_ptr<store::kube::FakeCluster> shared) : cluster(std::move(shared)) {
    store = store::make_kube_store(std::make_unique<store::kube::FakeApi>(cluster, clock),
                                   {wire::kube::fake_digest, wire::kube::fake_digest}, clock,
                                   {.group = wire::calico::ApiGroup::crd_v1});
  }
  std::shared_ptr<store::kube::FakeCluster> cluster;
  ManualClock clock;
  std::unique_ptr<store::Store> store;
};

/// A client of a register in a Kubernetes API in memory, with what tests of the engine ask of a store besides: faults,
/// counts of commits, further clients, epochs.
class KubeTestStore final : private KubeTestParts, public store::ForwardingStore {
 public:
  KubeTestStore() : KubeTestStore(std::make_shared<store::kube::FakeCluster>()) {}
  explicit KubeTestStore(std::shared_ptr<store::kube::FakeCluster> shared)
      : KubeTestParts(std::move(shared)), ForwardingStore(*KubeTestParts::store) {}

  [[nodiscard]] std::shared_ptr<store::kube::FakeCluster> data() const { return cluster; }
  void set_faults(store::FaultScript script) { faults_ = std::move(script); }
  [[nodiscard]] store::CallCounts counts() const { return counts_; }
  /// The object of a handle's or block's record, which is there, becomes one that can't be understood.
  void damage(const core::Key& key) {
    const auto mapping = store::kube::make_calico_mapping(wire::calico::ApiGroup::crd_v1,
                                                          {wire::kube::fake_digest, wire::kube::fake_digest});
    const auto path = wire::kube::object_path(mapping->resource_of(key.kind), {}, mapping->object_name(key).value());
    cluster->edit(path.value(), [&key](auto& object) {
      object["spec"][key.kind == core::Kind::block ? "allocations" : "block"] = "odd";
    });
  }

  [[nodiscard]] Result<store::Revision> commit(std::span<const store::Write> writes, const store::WriteToken& token,
                                               Deadline deadline) override {
    const store::Fault* fault = faults_.fault_of(++counts_.commit);
    if (fault != nullptr && !store::is_applied(*fault)) return fail(after(*fault));
    auto done = ForwardingStore::commit(writes, token, deadline);
    if (done && fault != nullptr) return fail(after(*fault));
    return done;
  }
  [[nodiscard]] std::uint64_t epoch() const override { return epoch_; }
  void begin_epoch() { ++epoch_; }

 private:
  static Error after(store::Fault fault) {
    switch (fault) {
      case store::Fault::lose_reply:
      case store::Fault::lose_request:
        return {ErrorCode::unknown_outcome, "the reply was lost", {}};
      case store::Fault::conflict:
      case store::Fault::repeat_request:
        return {ErrorCode::conflict, "somebody else wrote first", {}};
      case store::Fault::unavailable:
        return {ErrorCode::unavailable, "the API is away", {}};
      case store::Fault::storage_full:
        return {ErrorCode::storage_full, "etcd has no space", {}};
    }
    return {};
  }

  store::FaultScript faults_;
  store::CallCounts counts_;
  std::uint64_t epoch_ = 0;
};

}  // namespace croft::app

namespace croft::engine {
using TestStore = app::KubeTestStore;
inline constexpr bool kMakesNodes = false;
}  // namespace croft::engine
