#include "store/etcd/etcd_store.h"

#include <memory>

#include "store/conformance/conformance.h"
#include "store/etcd/etcd_fixture.h"
#include "store/etcd/place.h"
#include "store/etcd/registry.h"

namespace croft::store {
namespace {

/// One etcd for all tests of the program; each begins with an empty one.
etcd::EtcdProcess& shared_etcd() {
  static auto* process = [] {
    auto* started = new etcd::EtcdProcess();
    started->start();
    return started;
  }();
  return *process;
}

std::unique_ptr<etcd::Client> connect(const Clock& clock, Random& random) {
  etcd::ClientOptions options;
  options.endpoints = {shared_etcd().url()};
  auto client = etcd::Client::make(options, clock, random);
  EXPECT_TRUE(client) << client.error().message;
  return *std::move(client);
}

class EtcdBackend final : public ConformanceBackend {
 public:
  EtcdBackend() {
    wire::etcd::TxnRequest txn;
    wire::etcd::DeleteRequest all;
    all.key = std::string(1, '\0');
    all.range_end = std::string(1, '\0');
    txn.success.emplace_back(all);
    const auto done = connect(clock_, random_)->txn(txn, Deadline::after(clock_.now(), std::chrono::seconds{10}));
    EXPECT_TRUE(done) << done.error().message;
  }
  [[nodiscard]] std::unique_ptr<Store> open() override {
    return make_etcd_store(connect(clock_, random_), clock_, random_, etcd::make_kubernetes_registry({}).value());
  }
  void damage(const Key& key) override {
    const auto registry = etcd::make_kubernetes_registry({}).value();
    wire::etcd::TxnRequest txn;
    wire::etcd::PutRequest put;
    put.key = etcd::Places(registry.get()).place_of(key).value();
    put.value = "{";
    txn.success.emplace_back(put);
    const auto done = connect(clock_, random_)->txn(txn, Deadline::after(clock_.now(), std::chrono::seconds{10}));
    EXPECT_TRUE(done) << done.error().message;
  }
  [[nodiscard]] bool writes(Kind kind) const override {
    return kind != Kind::service_cidr && kind != Kind::foreign_service;
  }

 private:
  os::SystemClock clock_;
  os::SystemRandom random_;
};

INSTANTIATE_TEST_SUITE_P(Etcd, StoreConformance,
                         testing::Values(BackendCase{"etcd", [] { return std::make_unique<EtcdBackend>(); }}));

}  // namespace
}  // namespace croft::store
