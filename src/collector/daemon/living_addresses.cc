#include "collector/daemon/living_addresses.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/net/echo.h"
#include "base/net/ordinal.h"
#include "collector/decide/facts.h"
#include "ipam/use/register.h"
#include "os/files.h"
#include "register/block.h"
#include "store/kube/pod_list.h"

namespace croft::app {
namespace {

constexpr std::size_t kFilesMax = 100'000;
constexpr std::size_t kNamedMax = 5;

[[nodiscard]] std::string damaged(const std::string& name) { return fmt::format("{} can't be read", net::echo(name)); }

}  // namespace

Result<std::vector<LivingAddress>> addresses_in_directory(const std::string& path) {
  std::vector<LivingAddress> all;
  const auto names = os::list_directory(path, kFilesMax);
  if (!names && names.error().code == ErrorCode::not_found) return all;
  if (!names) return fail(Error(names.error()).in("what host-local has given"));
  for (const std::string& name : *names) {
    const auto address = net::Address::parse(name);
    if (address) all.push_back({*address, fmt::format("{}/{}", path, name)});
  }
  return all;
}

Result<std::vector<LivingAddress>> addresses_of_pods(store::kube::Api& api, const Clock& clock, const std::string& node,
                                                     Deadline deadline) {
  std::vector<LivingAddress> all;
  const auto take = [&](const core::collect::PodFact& pod) {
    const bool has_ended = pod.phase == "Succeeded" || pod.phase == "Failed";
    if (has_ended || pod.has_no_sandbox || pod.is_in_node_network) return;
    for (const net::Address& address : pod.addresses) {
      all.push_back({address, fmt::format("pod {}/{}", pod.namespace_name, pod.name)});
    }
  };
  TRY_VOID(store::kube::for_each_pod_of_node(
      api, clock, node, deadline, [&] { all.clear(); }, take));
  return all;
}

Result<std::vector<LivingAddress>> not_held(const engine::Context& context, const std::vector<core::Pool>& pools,
                                            std::vector<LivingAddress> living) {
  const auto block_of = [&](const LivingAddress& one) -> std::optional<net::Prefix> {
    const auto pool =
        std::ranges::find_if(pools, [&](const core::Pool& each) { return each.cidr.contains(one.address); });
    if (pool == pools.end()) return std::nullopt;
    return net::Prefix::containing(one.address, pool->block_length);
  };
  std::erase_if(living, [&](const LivingAddress& one) { return !block_of(one); });
  if (living.empty()) return living;
  core::Missing wanted;
  for (const LivingAddress& one : living) wanted.records.insert(core::block_key(*block_of(one)));
  TRY(const auto found, engine::read_register(context, wanted));
  if (!found.unreadable.empty()) return fail(ErrorCode::corrupt, damaged(found.unreadable.front().key.name));
  std::erase_if(living, [&](const LivingAddress& one) {
    const auto* const value = found.snapshot.find(core::block_key(*block_of(one)));
    const auto* const block = value != nullptr && *value ? std::get_if<core::Block>(&**value) : nullptr;
    if (block == nullptr || block->deleted) return false;
    const auto ordinal = net::ordinal_of(block->cidr, one.address);
    if (!ordinal || ordinal->value >= block->allocations.size()) return false;
    const auto& attribute = block->allocations[ordinal->value];
    // What rests is given again once it has rested.
    return attribute && *attribute < block->attributes.size() && block->attributes[*attribute].handle_id.has_value();
  });
  return living;
}

namespace {

using TakeHeld = std::function<void(const net::Address& address, const core::Attribute& holder)>;

/// What somebody holds; what rests is nobody's.
[[nodiscard]] Result<void> for_each_held(const engine::Context& context, const TakeHeld& take_held) {
  const auto take = [&](const store::Record& record) -> Result<void> {
    const auto* const block = std::get_if<core::Block>(&record.value);
    if (block == nullptr) return fail(ErrorCode::corrupt, damaged(record.key.name));
    if (block->deleted) return {};
    for (std::uint32_t ordinal = 0; ordinal < block->allocations.size(); ++ordinal) {
      const auto& attribute = block->allocations[ordinal];
      if (!attribute || *attribute >= block->attributes.size()) continue;
      const core::Attribute& holder = block->attributes[*attribute];
      if (holder.handle_id) take_held(net::address_at(block->cidr, net::Ordinal{ordinal}), holder);
    }
    return {};
  };
  const auto until = [&] { return Deadline::after(context.clock.now(), context.time_limit); };
  return context.store.for_each({core::Kind::block, "", ""}, until, take);
}

[[nodiscard]] std::string said_of(const core::Attribute& holder, const char* name) {
  const auto found = holder.secondary.get().find(name);
  return found == holder.secondary.get().end() ? std::string() : found->second;
}

}  // namespace

Result<std::optional<net::Address>> held_in(const engine::Context& context,
                                            const std::optional<std::vector<net::Prefix>>& ranges) {
  std::optional<net::Address> found;
  TRY_VOID(for_each_held(context, [&](const net::Address& address, const core::Attribute&) {
    const bool is_in = !ranges || std::ranges::any_of(*ranges, [&](const auto& one) { return one.contains(address); });
    if (is_in && !found) found = address;
  }));
  return found;
}

Result<std::vector<LivingAddress>> held_on_node(const engine::Context& context, const std::string& node) {
  std::vector<LivingAddress> all;
  TRY_VOID(for_each_held(context, [&](const net::Address& address, const core::Attribute& holder) {
    const std::string theirs = said_of(holder, "node");
    if (!node.empty() && !theirs.empty() && theirs != node) return;
    const std::string pod = said_of(holder, "pod");
    all.push_back({address, pod.empty() ? "held in the register before"
                                        : fmt::format("pod {}/{}", said_of(holder, "namespace"), pod)});
  }));
  return all;
}

std::string text_of(const std::vector<LivingAddress>& living) {
  std::string text;
  for (std::size_t i = 0; i < std::min(living.size(), kNamedMax); ++i) {
    text += fmt::format("{}{} ({})", i == 0 ? "" : ", ", living[i].address.to_string(), living[i].whose);
  }
  if (living.size() > kNamedMax) text += fmt::format(" and {} more", living.size() - kNamedMax);
  return text;
}

}  // namespace croft::app
