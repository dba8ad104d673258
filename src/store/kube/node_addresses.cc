#include "store/kube/node_addresses.h"

#include <cstddef>
#include <optional>

#include <fmt/format.h>

#include "base/net/lenient.h"
#include "store/kube/form.h"
#include "store/kube/format/requests.h"
#include "store/kube/object_list.h"

namespace croft::store::kube {
namespace {

/// Of one node; a node has a handful.
constexpr std::size_t kAddressesMax = 64;
/// Of all nodes.
constexpr std::size_t kAllAddressesMax = 8 * kNodesMax;

void take_addresses(wire::JsonRef object, const std::string& node, std::vector<NodeAddress>& all) {
  const auto status = member_of(object, "status");
  const auto list = status ? member_of(*status, "addresses") : std::nullopt;
  std::size_t count = 0;
  for (auto one = list ? list->first_child() : std::nullopt; one && count < kAddressesMax; one = one->next_sibling()) {
    ++count;
    const auto type = member_of(*one, "type");
    const auto text = member_of(*one, "address");
    if (!type || !text || (type->text() != "InternalIP" && type->text() != "ExternalIP")) continue;
    if (const auto address = net::parse_address_leniently(text->text())) all.push_back({node, *address});
  }
}

}  // namespace

Result<std::vector<NodeAddress>> list_node_addresses(Api& api, const Clock& clock, Deadline deadline) {
  ListLimits limits;
  limits.deadline = deadline;
  limits.bounds.objects_max = kNodesMax;
  TRY(const std::string path, wire::kube::collection_path({"", "v1", "nodes"}));
  std::vector<NodeAddress> all;
  TRY_VOID(for_each_object(
      api, clock, path, {"v1", "Node"}, "list nodes", [&] { all.clear(); },
      [&](wire::JsonRef object, const wire::kube::ApiMeta& meta) -> Result<void> {
        take_addresses(object, meta.name, all);
        if (all.size() <= kAllAddressesMax) return {};
        return fail(ErrorCode::corrupt,
                    fmt::format("list nodes: the API server tells of more than {} addresses of nodes; "
                                "look at the server",
                                kAllAddressesMax));
      },
      limits));
  return all;
}

}  // namespace croft::store::kube
