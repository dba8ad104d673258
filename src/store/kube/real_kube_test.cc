// The same suite on a real API server: that of the kubeconfig (JSON) in CROFT_TEST_KUBECONFIG, all of whose objects of
// Calico's and Croft's kinds go. e2e/kube_store.py starts one.

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "http/tls.h"
#include "os/clock.h"
#include "os/digest.h"
#include "store/conformance/conformance.h"
#include "store/kube/client.h"
#include "store/kube/kube_store.h"

namespace croft::store {
namespace {

using Forms = std::vector<std::unique_ptr<kube::ObjectMapping>>;

Forms mappings() {
  Forms mappings;
  mappings.push_back(kube::make_croft_mapping(os::sha256));
  mappings.push_back(kube::make_calico_mapping(wire::calico::ApiGroup::crd_v1, {os::sha256, os::sha3_256}));
  return mappings;
}

class RealBackend final : public ConformanceBackend {
 public:
  RealBackend() {
    constexpr std::chrono::seconds kPatience{120};  // what a test has made are thousands of objects
    const auto api = client(kPatience);
    for (const auto& mapping : mappings()) {
      for (const core::KindTraits& traits : core::kKinds) {
        if (!mapping->has(traits.kind)) continue;
        kube::Request request{kube::Request::Method::delete_object, {}, {}};
        request.path = wire::kube::collection_path(mapping->resource_of(traits.kind)).value();
        const auto answer = api->call(request, Deadline::after(clock_.now(), kPatience));
        EXPECT_EQ(answer.outcome, kube::Answer::Outcome::done) << answer.error.message;
      }
    }
  }
  [[nodiscard]] std::unique_ptr<Store> open() override {
    return make_kube_store(client(), {os::sha256, os::sha3_256}, clock_, {.group = wire::calico::ApiGroup::crd_v1});
  }
  void damage(const Key& key) override {
    const auto api = client();
    for (const auto& mapping : mappings()) {
      if (!mapping->has(key.kind)) continue;
      kube::Request request;
      request.path =
          wire::kube::object_path(mapping->resource_of(key.kind), {}, mapping->object_name(key).value()).value();
      const auto answer = api->call(request, Deadline::after(clock_.now(), std::chrono::seconds{30}));
      ASSERT_EQ(answer.outcome, kube::Answer::Outcome::done) << answer.error.message;
      // What the schemas let pass and no record has.
      request.body = answer.body;
      const char* wrong = key.kind == Kind::high_water_mark ? "\"formatVersion\":0" : "\"cidr\":\"odd\"";
      const std::string member = key.kind == Kind::high_water_mark ? "\"formatVersion\":1" : "\"cidr\":\"";
      const std::size_t at = request.body.find(member);
      ASSERT_NE(at, std::string::npos) << request.body;
      const std::size_t end =
          key.kind == Kind::high_water_mark ? at + member.size() : request.body.find('"', at + member.size()) + 1;
      request.body.replace(at, end - at, wrong);
      request.method = kube::Request::Method::put;
      const auto put = api->call(request, Deadline::after(clock_.now(), std::chrono::seconds{30}));
      ASSERT_EQ(put.outcome, kube::Answer::Outcome::done) << put.error.message;
    }
  }
  [[nodiscard]] bool writes(Kind kind) const override {
    // Calico's definitions of this version lack members that the suite sets: see APIThatKeepsLess.
    if (kind == Kind::ipam_config) return false;
    return wire::kube::croft_kind_of(kind) != nullptr || wire::calico::has_crd(kind);
  }
  [[nodiscard]] std::uint64_t waits_for_completeness() const override { return 1; }

 private:
  [[nodiscard]] std::unique_ptr<kube::Api> client(std::chrono::seconds patience = std::chrono::seconds{10}) {
    kube::ClientOptions options;
    options.request_timeout = patience;
    const char* kubeconfig = std::getenv("CROFT_TEST_KUBECONFIG");
    options.access = kube::read_kubeconfig(kubeconfig != nullptr ? kubeconfig : "", "").value();
    options.make_security = [](os::TlsFiles files) { return os::make_tls(std::move(files)); };
    auto made = kube::make_client(std::move(options), clock_, random_);
    EXPECT_TRUE(made) << made.error().message;
    return *std::move(made);
  }

  os::SystemClock clock_;
  os::SystemRandom random_;
};

/// Calico's definitions of 2025 have no ipCooldownSeconds.
TEST(RealKube, AnApiThatKeepsLessIsNotTrusted) {
  RealBackend backend;
  const auto store = backend.open();
  const os::SystemClock clock;
  const Deadline soon = Deadline::after(clock.now(), std::chrono::seconds{30});
  const auto create = [&](const core::IpamConfig& config) {
    return store->commit(std::vector<Write>{{core::ipam_config_key(), config, Condition::if_absent()}}, sample_token(1),
                         soon);
  };
  const auto pruned = create({true, false, 5, "", 60});
  ASSERT_FALSE(pruned);
  EXPECT_EQ(pruned.error().code, ErrorCode::refused_by_configuration) << pruned.error().message;
  const auto there = store->get(core::ipam_config_key(), soon);
  ASSERT_TRUE(there && *there);
  const std::vector<Write> away = {{core::ipam_config_key(), std::nullopt, Condition::if_revision((*there)->revision)}};
  ASSERT_TRUE(store->commit(away, sample_token(2), soon));
  EXPECT_TRUE(create({true, false, 5, "", 0}));
}

INSTANTIATE_TEST_SUITE_P(RealKube, StoreConformance,
                         testing::Values(BackendCase{"kube-apiserver",
                                                     [] { return std::make_unique<RealBackend>(); }}));

}  // namespace
}  // namespace croft::store

int main(int argc, char** argv) {
  if (std::getenv("CROFT_TEST_KUBECONFIG") == nullptr) {
    std::puts("skipped: CROFT_TEST_KUBECONFIG names no API server (e2e/kube_store.py starts one)");
    return 77;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
