#include "store/kube/node_addresses.h"

#include <cstddef>
#include <optional>

#include "base/net/lenient.h"
#include "store/kube/form.h"
#include "store/kube/object_list.h"

namespace croft::store::kube {
namespace {

/// Of one node; a node has a handful.
constexpr std::size_t kAddressesMax = 64;

void take_addresses(wire::JsonRef object, const std::string& node, std::vector<NodeAddress>& all) {
  const auto list = member_of(member_of(object, "status"), "addresses");
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
  std::vector<NodeAddress> all;
  ObjectUse use;
  use.what = "list nodes";
  use.deadline = deadline;
  use.begin = [&] { all.clear(); };
  use.take = [&](wire::JsonRef object, const wire::kube::ApiMeta& meta) -> Result<void> {
    take_addresses(object, meta.name, all);
    return {};
  };
  TRY_VOID(for_each_object(api, clock, {"/api/v1/nodes", list_of_nodes()}, use));
  return all;
}

}  // namespace croft::store::kube
