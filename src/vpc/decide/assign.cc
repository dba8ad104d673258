#include "vpc/decide/assign.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace croft::core::warm {
namespace {

/// Since when a pod could have had it.
WallTime idle_since(const StockAddress& address) {
  return address.cooling ? address.cooling->released_at.wall : address.since;
}

bool is_longer_idle(const StockAddress* a, const StockAddress* b) {
  const WallTime since_a = idle_since(*a), since_b = idle_since(*b);
  return since_a != since_b ? since_a < since_b : a->address < b->address;
}

bool is_pod_of(const StockAddress& address, const PodIdentity& pod) {
  const auto fits = [](const std::string& known, const std::string& said) {
    return said.empty() || known.empty() || known == said;
  };
  return fits(address.pod.name, pod.name) && fits(address.pod.namespace_name, pod.namespace_name) &&
         fits(address.pod.uid, pod.uid);
}

/// Whether a DEL means it.
bool is_meant(const StockAddress& address, const Release& release) {
  if (address.state != StockAddressState::held) return false;
  if (release.address && *release.address != address.address) return false;
  if (!is_pod_of(address, release.pod)) return false;
  if (release.owner.container_id.empty()) return release.address.has_value();
  if (!address.owner.container_id.empty()) return is_holder(address, release.owner);
  return !release.pod.name.empty() && address.pod.name == release.pod.name &&
         address.pod.namespace_name == release.pod.namespace_name;
}

/// As it is after a DEL. An address that was taken in from a pod's own status (reconcile.h) may be any sandbox's of
/// that pod, and the DEL a late one of a dead sandbox: it is unsure until pods and host were looked at.
StockAddress let_go_by(const StockAddress& address, const Release& release, const Instant& now) {
  StockAddress after = let_go(address, release.cooldown, now);
  const bool is_of_any_sandbox = address.owner.container_id.empty() && !release.owner.container_id.empty();
  if (!is_of_any_sandbox || after.state == StockAddressState::quarantined) return after;
  std::erase(after.doubts, StockDoubt::used_by_pod);
  after.doubts.push_back(StockDoubt::used_by_pod);
  return after;
}

/// Whether this request may have it.
bool is_for(const StockAddress& address, const Request& request, const Stock& stock, const Instant& now) {
  const bool is_ours = stock.node() == nullptr || stock.node()->node.empty() || address.mac == stock.node()->mac;
  return is_free_at(address, now) && address.verified && is_ours && is_of_subnet(address, request.subnet) &&
         !request.in_use.contains(address.address);
}

constexpr std::string_view kWaitsFor = "kept for pod ";

std::string holder_of(const StockAddress& held) {
  return fmt::format("{}/{}, container {}", held.pod.namespace_name, held.pod.name, held.owner.container_id);
}

}  // namespace

bool is_superseded(const StockAddress& address, const Request& request) {
  const bool is_same_pod = !request.pod.uid.empty() && address.pod.uid == request.pod.uid &&
                           address.pod.namespace_name == request.pod.namespace_name &&
                           address.pod.name == request.pod.name;
  const bool is_other_sandbox = address.owner.container_id != request.owner.container_id;
  return address.state == StockAddressState::held && is_same_pod && is_other_sandbox &&
         address.owner.interface_name == request.owner.interface_name && address.owner.network == request.owner.network;
}

Step<Answer> plan_assign(const Snapshot& snapshot, const Request& request, const Instant& now) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<Answer>> {
    TRY(const Stock stock, Stock::read(reader));
    const StockAddress* chosen = nullptr;
    Assigned answer;
    std::vector<StockAddress> freed;  // of older sandboxes, as they are now
    for (const StockAddress* address : stock.addresses()) {
      if (is_holder(*address, request.owner)) return Plan<Answer>{Assigned{*address, true}, {}};
      if (is_superseded(*address, request)) {
        freed.push_back(let_go(*address, request.cooldown, now));
        continue;
      }
      if (!is_for(*address, request, stock, now)) continue;
      if (chosen == nullptr || is_longer_idle(address, chosen)) chosen = address;
    }
    // The address of the pod's old sandbox comes last, and only where it need not rest.
    for (const StockAddress& address : freed) {
      if (chosen == nullptr && is_for(address, request, stock, now)) chosen = &address;
    }
    std::vector<PlannedWrite> writes;
    for (const StockAddress& address : freed) {
      if (&address != chosen) writes.push_back(put_of(address));
    }
    const auto is_probing = [](const StockAddress* address) { return address->state == StockAddressState::probing; };
    if (chosen == nullptr) {
      return Plan<Answer>{Empty{std::ranges::any_of(stock.addresses(), is_probing)}, std::move(writes)};
    }
    answer.address = with_state(*chosen, StockAddressState::held, now);
    answer.address.owner = request.owner;
    answer.address.pod = request.pod;
    answer.address.netns = request.netns;
    answer.address.extra = request.extra;
    writes.push_back(put_of(answer.address));
    return Plan<Answer>{std::move(answer), std::move(writes)};
  });
}

Step<Changed> plan_release(const Snapshot& snapshot, const Release& release, const Instant& now) {
  return change_each(snapshot, [&](Plan<Changed>& plan, const StockAddress& known) {
    if (is_meant(known, release)) add(plan, let_go_by(known, release, now));
  });
}

Step<Changed> plan_forget(const Snapshot& snapshot, const Release& release) {
  return change_each(snapshot, [&](Plan<Changed>& plan, const StockAddress& known) {
    if (is_meant(known, release)) add_gone(plan, known);
  });
}

Step<StockAddress> plan_record(const Snapshot& snapshot, const StockAddress& told, const Instant& now) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<StockAddress>> {
    if (told.owner.container_id.empty()) return fail(invalid_argument("SandboxID is empty"));
    reader.ask(warm_address_key(told.address));
    TRY(const Stock stock, Stock::read(reader));
    const StockAddress* known = stock.find(told.address);
    if (stock.is_damaged(told.address)) {
      return fail(ErrorCode::corrupt, fmt::format("the record of {} is damaged", told.address.to_string()));
    }
    StockAddress after = known != nullptr ? *known : told;
    if (known == nullptr) {
      after.created = now.wall;
      after.verified = now.wall;                  // the client probed it before it told
      after.doubts = {StockDoubt::not_in_cloud};  // until the cloud's list has it
    } else if (known->state != StockAddressState::quarantined && !is_holder(*known, told.owner)) {
      const std::string who =
          known->state == StockAddressState::held ? "held by " + holder_of(*known) : "in the stock and nobody's";
      return fail(ErrorCode::already_exists, fmt::format("{} is {}", told.address.to_string(), who));
    }
    const bool is_new = known == nullptr || known->state != StockAddressState::held;
    after = is_new ? with_state(std::move(after), StockAddressState::held, now) : std::move(after);
    after.owner = is_new ? told.owner : after.owner;
    const auto fill = [](std::string& into, const std::string& from) {
      if (into.empty()) into = from;
    };
    fill(after.pod.name, told.pod.name);
    fill(after.pod.namespace_name, told.pod.namespace_name);
    fill(after.pod.uid, told.pod.uid);
    fill(after.netns, told.netns);
    for (const auto& [name, text] : told.extra) after.extra.insert_or_assign(name, text);
    if (known != nullptr && *known == after) return Plan<StockAddress>{std::move(after), {}};
    return Plan<StockAddress>{after, {put_of(after)}};
  });
}

Step<Changed> plan_mark_clocks(const Snapshot& snapshot, const Instant& now) {
  return change_each(snapshot, [&](Plan<Changed>& plan, const StockAddress& known) {
    if (known.state != StockAddressState::cooling || plan.answer.size() == kChangesMax) return;
    StockAddress marked = known;
    marked.cooling = with_clock_mark(*std::move(marked.cooling), now);
    if (marked != known) add(plan, std::move(marked));
  });
}

// ---------------------------------------------------------------- by name

std::string promised_pod_name(const PodIdentity& pod) { return pod.namespace_name + "/" + pod.name; }
std::string waits_for(const std::string& promise) { return std::string(kWaitsFor) + promise; }

std::string promised_pod_name(const StockIntent& intent) {
  return intent.what == StockIntent::What::allocate ? intent.peer : std::string();
}

bool is_kept(const StockAddress& address) {
  return address.state == StockAddressState::quarantined && address.why.starts_with(kWaitsFor);
}

bool is_waiting_for(const StockAddress& address, const PodIdentity& pod) {
  return address.state == StockAddressState::quarantined && !address.other_mac &&
         address.why == waits_for(promised_pod_name(pod));
}

bool has_stable_name(const PodIdentity& pod) { return !stateful_set_of(pod).empty(); }

std::string stateful_set_of(const PodIdentity& pod) {
  const std::size_t dash = pod.name.rfind('-');
  if (dash == std::string::npos || dash + 1 == pod.name.size()) return "";
  const bool is_number = std::all_of(pod.name.begin() + static_cast<std::ptrdiff_t>(dash) + 1, pod.name.end(),
                                     [](char c) { return c >= '0' && c <= '9'; });
  return is_number ? pod.name.substr(0, dash) : "";
}

std::optional<Error> obstacle_of(const StockAddress& known, const Request& request) {
  const std::string promised =
      fmt::format("{} is promised to pod {}", known.address.to_string(), promised_pod_name(request.pod));
  const auto conflict = [&](const std::string& why) { return Error{ErrorCode::conflict, promised + why, {}}; };
  if (is_superseded(known, request)) return std::nullopt;
  switch (known.state) {
    case StockAddressState::held:
      return conflict(fmt::format(" and still held by {}: its DEL has not come", holder_of(known)));
    case StockAddressState::probing:
    case StockAddressState::releasing:
    case StockAddressState::lending:
      return conflict(" and on its way elsewhere; try again");
    case StockAddressState::quarantined:
      if (known.other_mac)
        return Error{ErrorCode::refused_for_safety, fmt::format("{}, and {}", promised, known.why), {}};
      if (is_kept(known) && !is_waiting_for(known, request.pod)) {
        return conflict(fmt::format(", and it is {}: two claims name it", known.why));
      }
      return std::nullopt;
    case StockAddressState::free:
    case StockAddressState::cooling:
      // The caller's own look finds what the host uses, and not what a pod says.
      if (std::ranges::find(known.doubts, StockDoubt::used_by_pod) != known.doubts.end()) {
        return conflict(", and another pod of this node says that it has it");
      }
      return std::nullopt;
    case StockAddressState::lent:
      return std::nullopt;
  }
  return std::nullopt;
}

Step<Assigned> plan_give_promised(const Snapshot& snapshot, const std::string& intent_id, const Given& given,
                                  const Request& request, const Instant& now) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<Assigned>> {
    reader.ask(warm_address_key(given.address));
    TRY(const Stock stock, Stock::read(reader));
    if (stock.is_damaged(given.address)) {
      return fail(ErrorCode::corrupt, fmt::format("the record of {} is damaged", given.address.to_string()));
    }
    Plan<Assigned> plan;
    if (stock.intent(intent_id) != nullptr) plan.writes.push_back(to_delete(warm_intent_key(intent_id)));
    const StockAddress* known = stock.find(given.address);
    if (known != nullptr && is_holder(*known, request.owner)) {
      plan.answer = {*known, true};
      return plan;
    }
    if (known != nullptr) {
      if (auto why = obstacle_of(*known, request)) return fail(*std::move(why));
    }
    StockAddress after = taken_in(given, now);
    if (known != nullptr) {
      after.created = known->created;
      after.recycled = known->recycled;
      after.recycled_at = known->recycled_at;
    }
    after = with_state(std::move(after), StockAddressState::held, now);
    after.owner = request.owner;
    after.pod = request.pod;
    after.netns = request.netns;
    after.extra = request.extra;
    after.extra[kPromisedKey] = promised_pod_name(after.pod);
    plan.answer.address = after;
    plan.writes.push_back(put_of(std::move(after)));
    return plan;
  });
}

}  // namespace croft::core::warm
