// How a StockKeeper brings an address that is promised to a pod by name to this node, and gives it to the pod.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/warm/promised.h"
#include "engine/stock_keeper_parts.h"

namespace croft::engine {
namespace {

namespace warm = core::warm;

/// The cloud's word that this very address is on the interface now.
[[nodiscard]] Result<cloud::CloudAddress> bring_here(cloud::Provider& cloud, const cloud::Interface& interface,
                                                     const std::string& subnet, const net::Address& address,
                                                     Deadline deadline) {
  TRY(auto there, cloud.describe_this(interface.vpc, subnet, address, deadline));
  if (!there) return cloud.allocate_this(interface, subnet, address, deadline);
  if (there->mac != interface.mac) {
    TRY_VOID(cloud.move(*there, interface.mac, deadline));
    there->mac = interface.mac;
    there->object = interface.object;
  }
  return *std::move(there);
}

}  // namespace

std::optional<bool> StockKeeper::is_known_as_fixed(const core::PodIdentity& pod) {
  if (pod.uid.empty()) return std::nullopt;
  const auto view = view_stock(context());
  if (!view) return std::nullopt;
  const auto found = std::ranges::find_if(view->addresses, [&](const core::WarmAddress& one) {
    // What was taken in from the pod's own status has no container, and tells nothing of it.
    return one.state == core::WarmState::held && one.pod == pod && !one.owner.container_id.empty();
  });
  if (found == view->addresses.end()) return std::nullopt;
  if (found->extra.contains(warm::kPromisedKey)) return true;
  // A plugin that worked alone asked nobody: its record says nothing of it.
  return found->extra.contains(warm::kKeepsNoneKey) ? std::optional(false) : std::nullopt;
}

std::optional<net::Address> StockKeeper::kept_for(const core::PodIdentity& pod) {
  const auto view = view_stock(context());
  if (!view) return std::nullopt;
  const auto found = std::ranges::find_if(view->addresses, [&](const core::WarmAddress& one) {
    const auto promise = one.extra.find(warm::kPromisedKey);
    return warm::is_waiting_for(one, pod) || (promise != one.extra.end() && promise->second == warm::promise_of(pod));
  });
  return found == view->addresses.end() ? std::nullopt : std::optional(found->address);
}

Result<warm::Assigned> StockKeeper::give_promised(const net::Address& address, const warm::Request& request,
                                                  Deadline deadline) {
  const auto interface = this->interface();
  if (!interface) return fail(trouble().value_or(Error{ErrorCode::unavailable, "the agent is still starting", {}}));
  {
    TRY(const auto view, view_stock(context()));
    const auto known = std::ranges::find(view.addresses, address, &core::WarmAddress::address);
    if (known != view.addresses.end() && warm::is_holder(*known, request.owner)) {
      return warm::Assigned{*known, true, {}};
    }
  }
  const warm::Ground ground = this->ground(deadline);
  const auto unfit = [&](const warm::Given& given) -> std::optional<Error> {
    const auto why = warm::why_unfit(given, ground);
    if (!why) return std::nullopt;
    return Error{ErrorCode::refused_for_safety,
                 fmt::format("{} is promised to pod {}, and no pod may have it: {}", address.to_string(),
                             warm::promise_of(request.pod), *why),
                 {}};
  };
  warm::Given asked;
  asked.address = address;
  if (auto why = unfit(asked)) return fail(*std::move(why));
  core::WarmIntent intent = new_intent(core::WarmIntent::What::allocate, 1);
  intent.address = address;
  const InFlight in_flight(*this, intent.id);
  TRY_VOID(
      decide<bool>([&](const core::Snapshot& snapshot, const Instant&) { return warm::plan_begin(snapshot, intent); }));
  const auto drop = [&] {
    return decide<bool>(
        [&](const core::Snapshot& snapshot, const Instant&) { return warm::plan_drop_intent(snapshot, intent.id); });
  };
  const auto here = bring_here(world_.cloud, *interface, intent.subnet, address, deadline);
  if (!here) {
    // What may have come is asked for again with the next ADD, which begins by asking where it is.
    if (here.error().code != ErrorCode::unknown_outcome) TRY_VOID(drop());
    return fail(Error(here.error())
                    .in(fmt::format("{}, promised to pod {}", address.to_string(), warm::promise_of(request.pod))));
  }
  if (world_.probe != nullptr) {
    const auto answers = world_.probe->probe({address}, deadline);
    const bool is_known = answers && answers->size() == 1;
    const bool is_used = is_known && answers->front().other;
    if (!is_known || is_used) {
      TRY_VOID(drop());
      if (!is_known) return fail(answers ? Error{ErrorCode::internal, "no answer of the wire", {}} : answers.error());
      return fail(ErrorCode::refused_for_safety,
                  fmt::format("{} is promised to pod {}, and {} answers for it on the wire", address.to_string(),
                              warm::promise_of(request.pod), answers->front().other->to_string()));
    }
  }
  const warm::Given given = given_of(*here, true, "");
  if (auto why = unfit(given)) {
    TRY_VOID(drop());
    return fail(*std::move(why));
  }
  auto assigned = decide<warm::Assigned>([&](const core::Snapshot& snapshot, const Instant& now) {
    return warm::plan_give_promised(snapshot, intent.id, given, request, now);
  });
  if (!assigned) {
    TRY_VOID(drop());
    return fail(assigned.error());
  }
  if (world_.probe != nullptr) world_.probe->announce({address});
  log(fmt::format("{} is given to pod {}, to which it is promised", address.to_string(),
                  warm::promise_of(request.pod)));
  return assigned;
}

}  // namespace croft::engine
