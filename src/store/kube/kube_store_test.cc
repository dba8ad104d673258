#include "store/kube/kube_store.h"

#include <memory>

#include "store/conformance/conformance.h"
#include "store/kube/fake_api_fixture.h"
#include "wire/kube/fake_digest_fixture.h"

namespace croft::store {
namespace {

template <wire::calico::ApiGroup group>
class KubeBackend final : public ConformanceBackend {
 public:
  [[nodiscard]] std::unique_ptr<Store> open() override {
    return make_kube_store(
        std::make_unique<kube::FakeApi>(cluster_, clock_), [](kube::Api&, Deadline) { return forms(); }, clock_);
  }
  void damage(const Key& key) override {
    const auto all = forms();
    for (const auto& form : *all) {
      if (!form->has(key.kind)) continue;
      const auto path =
          wire::kube::object_path(form->resource_of(key.kind), {}, form->object_name(key).value()).value();
      cluster_->edit(path, [](auto& object) {
        object["spec"]["formatVersion"] = "odd";
        object["spec"]["blockSize"] = "odd";
        object["spec"]["allocations"] = "odd";
      });
    }
  }
  [[nodiscard]] bool writes(Kind kind) const override {
    return wire::kube::own_kind_of(kind) != nullptr || wire::calico::has_crd(kind);
  }
  [[nodiscard]] bool outlives_processes() const override { return false; }

 private:
  [[nodiscard]] static Result<std::vector<std::unique_ptr<kube::Form>>> forms() {
    std::vector<std::unique_ptr<kube::Form>> forms;
    forms.push_back(kube::make_own_form(wire::kube::fake_digest));
    forms.push_back(kube::make_calico_form(group, {wire::kube::fake_digest, wire::kube::fake_digest}));
    forms.push_back(kube::make_node_form());
    return forms;
  }

  os::SystemClock clock_;
  std::shared_ptr<kube::FakeCluster> cluster_ = std::make_shared<kube::FakeCluster>();
};

using wire::calico::ApiGroup;

INSTANTIATE_TEST_SUITE_P(Kube, StoreConformance,
                         testing::Values(BackendCase{"crd.projectcalico.org/v1",
                                                     [] { return std::make_unique<KubeBackend<ApiGroup::crd_v1>>(); }},
                                         BackendCase{"projectcalico.org/v3",
                                                     [] { return std::make_unique<KubeBackend<ApiGroup::v3>>(); }}));

}  // namespace
}  // namespace croft::store
