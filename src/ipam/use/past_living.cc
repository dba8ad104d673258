#include "ipam/use/past_living.h"

#include <utility>
#include <variant>

#include <fmt/format.h>

namespace croft::engine {
namespace {

/// "10.1.0.1 (device veth1)", or with "and 2 more" behind.
std::string text_of(const std::map<net::Address, std::string>& living) {
  const auto& [address, device] = *living.begin();
  const std::string more = living.size() > 1 ? fmt::format(" and {} more", living.size() - 1) : std::string();
  return fmt::format("{} (device {}){}", address.to_string(), device, more);
}

}  // namespace

core::Step<core::AssignAnswer> PastLiving::plan(const core::Snapshot& snapshot, const Instant& now) {
  for (;;) {
    auto step = core::plan_assign(snapshot, narrowed_ ? *narrowed_ : request_, now);
    auto* plan = std::get_if<core::Plan<core::AssignAnswer>>(&step);
    if (plan == nullptr) return step;
    if (auto* refusal = std::get_if<core::Refusal>(&plan->answer)) {
      if (narrowed_) *refusal = refusal_of(std::move(*refusal));
      return step;
    }
    if (!add_living(std::get<core::Assigned>(plan->answer))) {
      tell_once();
      return step;
    }
    if (narrowed_->living.size() > kLivingMax) {
      core::Refusal refusal;
      refusal.summary =
          fmt::format("no address for node {}: one decision passes over {} at most", request_.node.name, kLivingMax);
      return core::Plan<core::AssignAnswer>{refusal_of(std::move(refusal)), {}};
    }
  }
}

/// Whether some of what was assigned lives.
bool PastLiving::add_living(const core::Assigned& assigned) {
  if (living_ == nullptr || !living_->device_of) return false;
  bool is_any = false;
  for (const core::AssignedAddress& one : assigned.addresses) {
    if (one.held_before || is_deaf_) continue;
    const auto device = living_->device_of(one.address);
    if (!device) {
      is_deaf_ = true;
      living_->warn("the kernel of this node does not say who lives on it, and addresses are given without asking: " +
                    device.error().message);
    } else if (*device) {
      if (!narrowed_) narrowed_ = request_;
      narrowed_->living.emplace(one.address, **device);
      is_any = true;
    }
  }
  return is_any;
}

void PastLiving::tell_once() {
  if (!narrowed_ || std::exchange(has_told_, true)) return;
  living_->warn(fmt::format("passed over {}: the register has it as free, and somebody on this node lives with it",
                            text_of(narrowed_->living)));
}

core::Refusal PastLiving::refusal_of(core::Refusal refusal) const {
  refusal.code = ErrorCode::unavailable;
  refusal.cause = core::RefusalCause::other;
  refusal.summary = fmt::format(
      "{}; somebody on this node lives with {}, which the register has as free: its interface may be about to go, and "
      "the runtime asks again. If an older register was put back, follow docs/runbooks/restore-kubernetes-api.md",
      refusal.summary, text_of(narrowed_->living));
  return refusal;
}

}  // namespace croft::engine
