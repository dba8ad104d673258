#include "noderanges/commands/cluster_nodes.h"

#include <chrono>
#include <utility>
#include <vector>

#include "store/kube/node_objects.h"
#include "store/store_url.h"

namespace croft::app {
namespace {

/// For a page of a list: the server reads 500 nodes.
constexpr std::chrono::seconds kPageTime{15};

class ClusterNodes final : public engine::NodeCidrs {
 public:
  ClusterNodes(std::unique_ptr<store::kube::Api> api, const Clock& clock) : api_(std::move(api)), clock_(clock) {}
  [[nodiscard]] Result<std::vector<OfNode>> all() override {
    TRY(auto nodes, store::kube::list_nodes(*api_, clock_));
    std::vector<OfNode> all;
    for (auto& one : nodes) {
      all.push_back({std::move(one.name), std::move(one.cidrs), std::move(one.damage), one.being_deleted,
                     std::move(one.written_by)});
    }
    return all;
  }
  [[nodiscard]] Result<void> publish(const std::string& node, const std::vector<net::Prefix>& cidrs) override {
    return store::kube::say_node_cidrs(*api_, node, cidrs, Deadline::after(clock_.now(), kPageTime));
  }

 private:
  const std::unique_ptr<store::kube::Api> api_;
  const Clock& clock_;
};

}  // namespace

Result<std::unique_ptr<engine::NodeCidrs>> open_node_cidrs(const std::string& store_url, const Clock& clock,
                                                           const StoreParts& parts) {
  if (store::scheme_of(store_url) != store::Scheme::kube) return nullptr;
  TRY(auto api, open_kube_api(store_url, clock, parts, kPageTime));
  return std::make_unique<ClusterNodes>(std::move(api), clock);
}

}  // namespace croft::app
