#include "store/etcd/etcd_store.h"

#include <memory>

#include "store/conformance/conformance.h"
#include "store/etcd/etcd_fixture.h"
#include "store/etcd/place.h"
#include "store/etcd/registry.h"

namespace croft::store {
namespace {

/// Each test begins with an empty etcd.
class EtcdBackend final : public ConformanceBackend {
 public:
  EtcdBackend() { etcd::clear(*connect(), soon()); }
  [[nodiscard]] std::unique_ptr<Store> open() override {
    return make_etcd_store(connect(), clock_, random_, etcd::make_kubernetes_registry({}).value());
  }
  void damage(const Key& key) override {
    const auto registry = etcd::make_kubernetes_registry({}).value();
    wire::etcd::TxnRequest txn;
    wire::etcd::PutRequest put;
    put.key = etcd::Places(registry.get()).place_of(key).value();
    put.value = "{";
    txn.success.emplace_back(put);
    const auto done = connect()->txn(txn, soon());
    EXPECT_TRUE(done) << done.error().message;
  }
  [[nodiscard]] bool writes(Kind kind) const override {
    return kind != Kind::service_cidr && kind != Kind::foreign_service;
  }

 private:
  [[nodiscard]] std::unique_ptr<etcd::Client> connect() {
    return etcd::client_of({etcd::shared_etcd().url()}, clock_, random_);
  }
  [[nodiscard]] Deadline soon() const { return Deadline::after(clock_.now(), std::chrono::seconds{10}); }

  os::SystemClock clock_;
  os::SystemRandom random_;
};

INSTANTIATE_TEST_SUITE_P(Etcd, StoreConformance,
                         testing::Values(BackendCase{"etcd", [] { return std::make_unique<EtcdBackend>(); }}));

}  // namespace
}  // namespace croft::store
