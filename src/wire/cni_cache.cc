#include "wire/cni_cache.h"

#include "wire/cni_json.h"

namespace croft::wire::cni {

Result<core::Owner> read_cache_entry(std::string_view bytes) {
  TRY(const JsonDocument document, parse_json(bytes));
  core::Owner owner;
  for (auto member = document.root().first_child(); member; member = member->next_sibling()) {
    if (member->kind() != JsonKind::string) continue;
    if (member->key() == "networkName") owner.network = member->text();
    if (member->key() == "containerId") owner.container_id = member->text();
    if (member->key() == "ifName") owner.interface_name = member->text();
  }
  if (owner.network.empty() || owner.container_id.empty() || owner.interface_name.empty()) {
    return fail(ErrorCode::invalid_argument, "it lacks networkName, containerId or ifName");
  }
  return owner;
}

}  // namespace croft::wire::cni
