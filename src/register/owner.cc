#include "register/owner.h"

#include "base/assert.h"

namespace croft::core {
namespace {

const std::string* find_attribute(const std::map<std::string, std::string>& map, const char* key) {
  const auto it = map.find(key);
  return it == map.end() ? nullptr : &it->second;
}

}  // namespace

std::string handle_of(const Owner& owner) { return owner.network + "." + owner.container_id; }

bool matches(const Owner& owner, const std::string& handle_id, const std::map<std::string, std::string>& secondary) {
  if (handle_id != handle_of(owner)) return false;
  // Written by another system, which knows an owner by its handle alone.
  if (find_attribute(secondary, kInterfaceKey) == nullptr && find_attribute(secondary, kNetworkKey) == nullptr)
    return true;
  const std::optional<Owner> recorded = owner_of(handle_id, secondary);
  return recorded && recorded->network == owner.network && recorded->container_id == owner.container_id &&
         (recorded->interface_name.empty() || recorded->interface_name == owner.interface_name);
}

std::optional<Owner> owner_of(const std::string& handle_id, const std::map<std::string, std::string>& secondary) {
  const std::string* network = find_attribute(secondary, kNetworkKey);
  const std::size_t dot = network != nullptr ? network->size() : handle_id.find('.');
  if (dot == std::string::npos || dot == 0 || dot + 1 >= handle_id.size() || handle_id[dot] != '.') return {};
  if (network != nullptr && !handle_id.starts_with(*network)) return {};
  const std::string* interface_name = find_attribute(secondary, kInterfaceKey);
  // Croft names the network whenever it has a dot, and the interface always. In handles of others only one dot is
  // clear.
  const bool is_others = network == nullptr && interface_name == nullptr;
  if (is_others && handle_id.find('.', dot + 1) != std::string::npos) return {};
  return Owner{handle_id.substr(0, dot), handle_id.substr(dot + 1), interface_name != nullptr ? *interface_name : ""};
}

std::vector<HandleBlock> blocks_of(const Handle& handle) {
  std::vector<HandleBlock> blocks;
  blocks.reserve(handle.blocks.size());
  for (const auto& [name, count] : handle.blocks) {
    const auto cidr = net::Prefix::parse(name);
    CROFT_ASSERT(cidr.has_value());
    blocks.push_back({*cidr, count, name});
  }
  return blocks;
}

Result<void> check_block_names(const Handle& handle) {
  for (const auto& [name, count] : handle.blocks) {
    if (const auto cidr = net::Prefix::parse(name); !cidr) {
      return fail(ErrorCode::corrupt, "handle " + handle.id + ": " + cidr.error().message);
    }
  }
  return {};
}

}  // namespace croft::core
