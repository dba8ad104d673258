#include "ipam/decide/pool_choice.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/planted.h"
#include "register/selector.h"

namespace croft::core {
namespace {

bool selects_all(const std::string& selector) { return selector.empty() || selector == "all()"; }

[[nodiscard]] Result<bool> selects(const Pool& pool, const char* field, const std::string& text, const Labels& labels) {
  if (selects_all(text)) return true;
  const auto selector = Selector::parse(text);
  if (!selector) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} of pool {} does not parse: {}", field, pool.name, selector.error().message));
  }
  return selector->matches(labels);
}

std::string verdict_on_selector(const Result<bool>& selected, const std::string& otherwise) {
  return selected ? otherwise : selected.error().message;
}

/// Why a pool that was not asked for by name does not serve; nothing when it does.
std::optional<std::string> rejection_of(const Pool& pool, const PoolRequest& request) {
  if (pool.disabled && !is_planted("disabled_ignored")) return "disabled";
  if (!pool.unallocatable.empty()) return "not allocatable: " + pool.unallocatable;
  if (pool.assignment_mode == AssignmentMode::manual && !request.by.for_some_pod) {
    return "serves only requests that name it (assignmentMode Manual)";
  }
  if (request.node_damage != nullptr && !selects_all(pool.node_selector)) return request.node_damage->message;
  if (const auto selected = selects_node(pool, request.node_labels); !selected || !*selected) {
    return verdict_on_selector(
        selected, fmt::format("nodeSelector {} does not select node {}", pool.node_selector, request.by.node.name));
  }
  const auto selected = selects_namespace(pool, request.namespace_labels);
  if (!selected || (!*selected && !request.by.for_some_pod)) {
    return verdict_on_selector(
        selected, fmt::format("namespaceSelector {} does not select the namespace", pool.namespace_selector));
  }
  return {};
}

/// By PoolUse.
constexpr std::string_view kUses[] = {"workloads", "tunnels", "load balancers"};

Refusal refusal_of_asked(const PoolTable& pools, const PoolRequest& request, const AskedPool& asked, const Pool* pool) {
  std::vector<PoolVerdict> considered;
  for (const Pool* p : pools.pools()) {
    considered.push_back({p->name, p->cidr,
                          p != pool         ? "not the one asked for"
                          : p->disabled     ? "disabled"
                          : !is_enabled(*p) ? "not allocatable: " + p->unallocatable
                                            : "of the other family"});
  }
  if (const auto& damage = pools.damaged_pool(); damage && pool == nullptr) {
    return {damage->code,
            fmt::format("the given pool ({}) does not exist, or can't be read: {}", text_of(asked), damage->message),
            std::move(considered), RefusalCause::pool_not_usable};
  }
  const std::string fault = pool == nullptr      ? "does not exist; `croft pool list` names those that do"
                            : !is_enabled(*pool) ? "is not enabled"
                                                 : fmt::format("is not {}", net::name_of(request.family));
  return {ErrorCode::refused_by_configuration, fmt::format("the given pool ({}) {}", text_of(asked), fault),
          std::move(considered), RefusalCause::pool_not_usable};
}

/// The pools asked for by name or CIDR, each once.
void take_asked(const PoolTable& pools, const PoolRequest& request, PoolChoice& choice) {
  for (const AskedPool& asked : request.asked()) {
    const auto it =
        std::ranges::find_if(pools.pools(), [&](const Pool* p) { return is_pool_asked_for(asked, p->name, p->cidr); });
    const Pool* pool = it == pools.pools().end() ? nullptr : *it;
    if (pool == nullptr || pool->cidr.family() != request.family || !is_enabled(*pool)) {
      choice.refusal = refusal_of_asked(pools, request, asked, pool);
      return;
    }
    if (std::find(choice.usable.begin(), choice.usable.end(), pool) == choice.usable.end()) {
      choice.usable.push_back(pool);
    }
  }
}

void take_serving(const PoolTable& pools, const PoolRequest& request, PoolChoice& choice) {
  for (const Pool* pool : pools.pools()) {
    if (pool->cidr.family() != request.family) continue;
    if (auto reason = rejection_of(*pool, request)) {
      choice.rejected.push_back({pool->name, pool->cidr, *std::move(reason)});
    } else {
      choice.usable.push_back(pool);
    }
  }
  std::ranges::stable_sort(choice.usable, std::ranges::greater{}, &Pool::priority);
}

Refusal refusal_of_none(const PoolTable& pools, const PoolRequest& request, std::vector<PoolVerdict> considered) {
  bool any = false;
  bool any_enabled = false;
  bool has_others = false;
  for (const Pool* pool : pools.pools()) {
    const bool is_of_family = pool->cidr.family() == request.family;
    any = any || is_of_family;
    has_others = has_others || !is_of_family;
    any_enabled = any_enabled || (is_of_family && is_enabled(*pool));
  }
  const RefusalCause cause = any_enabled ? RefusalCause::no_pool_for_node : RefusalCause::no_pool_enabled;
  if (const auto& damage = pools.damaged_pool()) {
    return {damage->code,
            no_address(request.by, request.family, "no pool that can be read may be used: " + damage->message),
            std::move(considered), cause};
  }
  std::string why =
      any ? "no pool may be used" : "there is no pool of this family; create one with `croft pool create`";
  if (!any && has_others) {
    why += fmt::format(
        ", or where pods are to have {} alone, say so (assign_ipv4, assign_ipv6 of the network's ipam; croftd install "
        "--ipv6, --no-ipv4)",
        net::name_of(request.family == net::Family::v4 ? net::Family::v6 : net::Family::v4));
  }
  return {any ? ErrorCode::refused_by_configuration : ErrorCode::no_pool, no_address(request.by, request.family, why),
          std::move(considered), cause};
}

/// Pools of which a damaged reservation may keep any address.
void drop_unsure(const PoolTable& pools, const PoolRequest& request, PoolChoice& choice) {
  const Error* why = nullptr;
  std::vector<const Pool*> sure;
  for (const Pool* pool : choice.usable) {
    const Error* damage = pools.damaged_reservation(*pool);
    if (damage == nullptr) {
      sure.push_back(pool);
      continue;
    }
    why = damage;
    choice.rejected.push_back({pool->name, pool->cidr, damage->message});
  }
  choice.usable = std::move(sure);
  if (!choice.usable.empty() || why == nullptr) return;
  choice.refusal = Refusal{
      why->code, no_address(request.by, request.family, "which addresses are reserved is not known: " + why->message),
      choice.rejected};
}

}  // namespace

Result<bool> selects_node(const Pool& pool, const Labels& node_labels) {
  return selects(pool, "nodeSelector", pool.node_selector, node_labels);
}

Result<bool> selects_namespace(const Pool& pool, const Labels& namespace_labels) {
  return selects(pool, "namespaceSelector", pool.namespace_selector, namespace_labels);
}

bool is_for_all_nodes(const Pool& pool) { return selects_all(pool.node_selector); }

std::string no_address(const AssignRequest& request, net::Family family, std::string_view why) {
  return fmt::format("no {} address for node {}: {}", net::name_of(family), request.node.name, why);
}

Labels namespace_labels_of(Reader& reader, const PoolTable& pools, const PodIdentity& pod, const Labels& given) {
  const auto selects_some = [](const Pool* pool) { return !selects_all(pool->namespace_selector); };
  const bool asks = !reader.lacks(Kind::name_space) && !pod.namespace_name.empty() && given.empty() &&
                    std::any_of(pools.pools().begin(), pools.pools().end(), selects_some);
  if (!asks) return given;
  const Namespace* name_space = reader.get(namespace_key(pod.namespace_name));
  return name_space != nullptr ? name_space->labels : Labels();
}

PoolChoice choose_pools(const PoolTable& pools, const PoolRequest& request) {
  PoolChoice choice;
  if (request.asked().empty()) {
    take_serving(pools, request, choice);
  } else {
    take_asked(pools, request, choice);
  }
  if (choice.refusal) return choice;
  if (choice.usable.empty()) {
    choice.refusal = refusal_of_none(pools, request, choice.rejected);
    return choice;
  }
  const std::string_view use = kUses[static_cast<std::size_t>(request.by.use)];
  const auto unfit = std::stable_partition(choice.usable.begin(), choice.usable.end(),
                                           [&](const Pool* pool) { return allows(*pool, request.by.use); });
  for (auto it = unfit; it != choice.usable.end(); ++it) {
    choice.rejected.push_back({(*it)->name, (*it)->cidr, fmt::format("not for {} (allowedUses)", use)});
  }
  choice.usable.erase(unfit, choice.usable.end());
  if (choice.usable.empty()) {
    choice.refusal = Refusal{ErrorCode::refused_by_configuration,
                             no_address(request.by, request.family, fmt::format("no pool may be used for {}", use)),
                             choice.rejected, RefusalCause::no_pool_qualified};
    return choice;
  }
  drop_unsure(pools, request, choice);
  return choice;
}

bool keeps_affinity(Reader& reader, const PoolTable& pools, const Block& block) {
  if (!block.affinity || block.affinity->type != AffinityOwner::Type::host) return true;
  const Pool* pool = pools.containing(block.cidr.first());
  if (pool == nullptr || selects_all(pool->node_selector)) return true;
  const Node* node = reader.sound(node_key(block.affinity->name));
  if (node == nullptr) return true;  // or what it says of labels is damaged
  const auto selected = selects_node(*pool, node->labels);
  return !selected || *selected;
}

}  // namespace croft::core
