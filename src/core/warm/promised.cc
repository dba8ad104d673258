#include "core/warm/promised.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/warm/stock.h"

namespace croft::core::warm {
namespace {

constexpr std::string_view kWaitsFor = "kept for pod ";

/// Why this record does not go to the pod now; nothing: it may.
std::optional<Error> obstacle(const WarmAddress& known, const Request& request) {
  const std::string address = known.address.to_string();
  if (is_superseded(known, request)) return std::nullopt;
  switch (known.state) {
    case WarmState::held:
      return Error{
          ErrorCode::conflict,
          fmt::format("{} is promised to pod {} and still held by {}/{}, container {}: its DEL has not come", address,
                      promise_of(request.pod), known.pod.namespace_name, known.pod.name, known.owner.container_id),
          {}};
    case WarmState::probing:
    case WarmState::releasing:
    case WarmState::lending:
      return Error{
          ErrorCode::conflict,
          fmt::format("{} is promised to pod {} and on its way elsewhere; try again", address, promise_of(request.pod)),
          {}};
    case WarmState::quarantined:
      if (known.other_mac) {
        return Error{ErrorCode::refused_for_safety,
                     fmt::format("{} is promised to pod {}, and {}", address, promise_of(request.pod), known.why),
                     {}};
      }
      return std::nullopt;
    case WarmState::free:
    case WarmState::cooling:
    case WarmState::lent:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::string promise_of(const PodIdentity& pod) { return pod.namespace_name + "/" + pod.name; }
std::string waits_for(const std::string& promise) { return std::string(kWaitsFor) + promise; }

bool is_waiting_for(const WarmAddress& address, const PodIdentity& pod) {
  return address.state == WarmState::quarantined && !address.other_mac && address.why == waits_for(promise_of(pod));
}

void promise_to_holder(WarmAddress& address) { address.extra[kPromisedKey] = promise_of(address.pod); }

bool has_stable_name(const PodIdentity& pod) { return !stateful_set_of(pod).empty(); }

std::string stateful_set_of(const PodIdentity& pod) {
  const std::size_t dash = pod.name.rfind('-');
  if (dash == std::string::npos || dash + 1 == pod.name.size()) return "";
  const bool is_number = std::all_of(pod.name.begin() + static_cast<std::ptrdiff_t>(dash) + 1, pod.name.end(),
                                     [](char c) { return c >= '0' && c <= '9'; });
  return is_number ? pod.name.substr(0, dash) : "";
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
    const WarmAddress* known = stock.find(given.address);
    if (known != nullptr && is_holder(*known, request.owner)) {
      plan.answer = {*known, true, {}};
      return plan;
    }
    if (known != nullptr) {
      if (auto why = obstacle(*known, request)) return fail(*std::move(why));
    }
    WarmAddress after = taken_in(given, now);
    if (known != nullptr) {
      after.created = known->created;
      after.recycled = known->recycled;
      after.recycled_at = known->recycled_at;
    }
    after = entered(std::move(after), WarmState::held, now);
    after.owner = request.owner;
    after.pod = request.pod;
    after.netns = request.netns;
    after.extra = request.extra;
    promise_to_holder(after);
    plan.answer.address = after;
    plan.writes.push_back(put_of(std::move(after)));
    plan.writes.push_back(put_generation(stock));
    return plan;
  });
}

}  // namespace croft::core::warm
