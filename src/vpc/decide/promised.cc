#include "vpc/decide/promised.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "vpc/decide/stock.h"

namespace croft::core::warm {
namespace {

constexpr std::string_view kWaitsFor = "kept for pod ";

std::string holder_of(const StockAddress& held) {
  return fmt::format("{}/{}, container {}", held.pod.namespace_name, held.pod.name, held.owner.container_id);
}

}  // namespace

std::string promised_pod_name(const PodIdentity& pod) { return pod.namespace_name + "/" + pod.name; }
std::string waits_for(const std::string& promise) { return std::string(kWaitsFor) + promise; }

std::string promised_pod_name(const StockIntent& intent) {
  return intent.what == StockIntent::What::allocate ? intent.peer : std::string();
}

Given kept_for(Given given, const std::string& promise) {
  given.unfit = waits_for(promise);
  return given;
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
    if (request.owner.container_id.empty()) return fail(invalid_argument("the container ID is empty"));
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
    after = entered(std::move(after), StockAddressState::held, now);
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
