#include "cni/door/living_addresses.h"

#include <algorithm>
#include <map>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ipam/decide/quarantine.h"
#include "ipam/use/assign.h"
#include "ipam/use/quarantine.h"
#include "ipam/use/release.h"

namespace croft::edge {
namespace {

using core::AssignedAddress;

constexpr std::chrono::milliseconds kBetweenLooks{50};
/// Once one has turned out to live, and not to have been let go a moment ago, others will.
constexpr std::chrono::milliseconds kNextLookTime{100};
constexpr const char* kRemedy =
    "an older register may have been put back: docs/runbooks/restore-kubernetes-api.md has what to do";

class Attempt {
 public:
  explicit Attempt(const LivingAdd& add) : add_(add) {}

  [[nodiscard]] Result<core::Assigned> run() {
    for (;;) {
      auto once = add_.assign();
      if (!once) {
        if (once.error().code == ErrorCode::exhausted && give_back_quarantined()) continue;
        return fail(failure_of(once.error()));
      }
      core::Assigned& assigned = once->assigned;
      note_fresh(*once);
      for (AssignedAddress& one : assigned.addresses) {
        if (alive_.contains(one.address)) return end(still_held(one));
        // Of this call, though another try of it held it before.
        if (fresh_.contains(one.address)) one.held_before = false;
      }
      std::vector<core::FoundAlive> found = look(assigned);
      if (found.empty()) return std::move(assigned);
      TRY_VOID(quarantine(found));
      if (const auto* one = wanted_among(found)) {
        return end(fmt::format("requested address {} cannot be assigned: {}", one->assigned.address.to_string(),
                               text_of(one->assigned.address)));
      }
      if (alive_.size() >= kLivingMax) {
        return end(fmt::format("{} addresses that the register had as free live on this node, {} among them: {}",
                               alive_.size(), found.back().assigned.address.to_string(),
                               text_of(found.back().assigned.address)));
      }
    }
  }

 private:
  [[nodiscard]] std::string text_of(const net::Address& address) const {
    return fmt::format("the kernel of this node leads to it over device {}, and it is in quarantine; {}",
                       alive_.at(address), kRemedy);
  }

  void note_fresh(const AssignedOnce& once) {
    for (const AssignedAddress& one : once.assigned.addresses) {
      // What this call held before its last try was held anew, under another number.
      const bool is_fresh = !one.held_before || once.may_be_of_this_call || fresh_.contains(one.address);
      if (is_fresh) fresh_.insert_or_assign(one.address, one);
    }
  }

  /// Those of the fresh addresses that live. Who is let go while this looks did not.
  [[nodiscard]] std::vector<core::FoundAlive> look(const core::Assigned& assigned) {
    std::vector<core::FoundAlive> found;
    for (const AssignedAddress& one : assigned.addresses) {
      if (!fresh_.contains(one.address) || cleared_.contains(one.address)) continue;
      auto device = ask(one.address);
      const auto look_time = alive_.empty() && found.empty() ? kLivingLookTime : kNextLookTime;
      for (auto looked = 0 * kBetweenLooks; device && looked < look_time; looked += kBetweenLooks) {
        pause();
        device = ask(one.address);
      }
      if (device) {
        found.push_back({one, *std::move(device)});
      } else {
        cleared_.insert(one.address);
      }
    }
    return found;
  }

  void pause() const {
    if (add_.probe.pause_by) return add_.probe.pause_by(kBetweenLooks);
    std::this_thread::sleep_for(kBetweenLooks);
  }

  [[nodiscard]] std::optional<std::string> ask(const net::Address& address) {
    if (!add_.probe.device_of || is_deaf_) return {};
    auto device = add_.probe.device_of(address);
    if (device) return *std::move(device);
    is_deaf_ = true;
    add_.warn("whether somebody on this node lives with what was assigned is not known: " + device.error().message);
    return {};
  }

  [[nodiscard]] Result<void> quarantine(const std::vector<core::FoundAlive>& found) {
    const auto done = [&]() -> Result<void> {
      TRY(const auto store, add_.open_store());
      TRY_VOID(engine::quarantine({*store, add_.clock, add_.random}, add_.owner, add_.node, found));
      return {};
    }();
    for (const core::FoundAlive& one : found) {
      const std::string text = fmt::format(
          "{} was assigned, and the kernel of this node leads to somebody alive with it "
          "over device {}",
          one.assigned.address.to_string(), one.device);
      if (!done) {
        return fail(ErrorCode::unavailable,
                    fmt::format("{}; it could not be put in quarantine: {}; {}", text, done.error().message, kRemedy));
      }
      add_.warn(text + ": it is in quarantine from now on");
      alive_.emplace(one.assigned.address, one.device);
      fresh_.erase(one.assigned.address);
    }
    return {};
  }

  [[nodiscard]] const core::FoundAlive* wanted_among(const std::vector<core::FoundAlive>& found) const {
    const auto is_wanted = [&](const core::FoundAlive& one) {
      return std::ranges::find(add_.wanted, one.assigned.address) != add_.wanted.end();
    };
    const auto one = std::ranges::find_if(found, is_wanted);
    return one == found.end() ? nullptr : &*one;
  }

  /// Whether something was.
  [[nodiscard]] bool give_back_quarantined() {
    if (has_looked_ || !add_.probe.device_of || add_.has_agent()) return false;
    has_looked_ = true;
    const auto store = add_.open_store();
    if (!store) return false;
    const engine::Context context{**store, add_.clock, add_.random};
    auto all = engine::quarantined_by(context, {core::AffinityOwner::Type::host, add_.node});
    if (!all) return false;
    const WallTime now = add_.clock.now().wall;
    std::erase_if(*all, [&](const auto& one) { return !one.since || now - *one.since < engine::kQuarantineHold; });
    for (auto looked = 0 * kBetweenLooks; !all->empty() && looked < kLivingLookTime; looked += kBetweenLooks) {
      if (looked > 0 * kBetweenLooks) pause();
      std::erase_if(*all, [&](const auto& one) { return ask(one.named.address).has_value(); });
      if (is_deaf_) return false;
    }
    std::vector<core::AddressToRelease> over;
    for (const core::InQuarantine& one : *all) over.push_back(one.named);
    if (over.empty()) return false;
    const auto done = engine::release_addresses(context, over);
    if (!done) return false;
    for (const net::Address& address : done->released) {
      add_.warn(address.to_string() + " was in quarantine, and nobody lives with it any more: it is given back");
    }
    return !done->released.empty();
  }

  [[nodiscard]] std::string still_held(const AssignedAddress& one) const {
    return fmt::format(
        "{} is assigned, though the kernel of this node leads to somebody alive with it over device {}: "
        "somebody else works for this container; {}",
        one.address.to_string(), alive_.at(one.address), kRemedy);
  }

  /// What a refusal after a quarantine means: it may be for want of what lives.
  [[nodiscard]] Error failure_of(const Error& error) {
    if (alive_.empty()) return error;
    const auto& [address, device] = *alive_.begin();
    Error told{ErrorCode::unavailable,
               fmt::format("{} lives on this node: {}; and no other was assigned: {}", address.to_string(),
                           text_of(address), error.message),
               error.details};
    give_back();
    return told;
  }

  [[nodiscard]] tl::unexpected<Error> end(std::string message) {
    give_back();
    return fail(ErrorCode::unavailable, std::move(message));
  }

  /// As far as possible: the container's DEL does the rest.
  void give_back() {
    std::vector<core::AddressToRelease> addresses;
    for (const auto& [address, one] : fresh_) {
      addresses.push_back({address, core::handle_of(add_.owner), one.sequence_number, one.block});
    }
    if (addresses.empty()) return;
    const auto store = add_.open_store();
    if (store) static_cast<void>(engine::release_addresses({**store, add_.clock, add_.random}, addresses));
  }

  const LivingAdd& add_;
  std::map<net::Address, AssignedAddress> fresh_;  ///< of this call, and not in quarantine
  std::set<net::Address> cleared_;                 ///< nobody lives with them
  std::map<net::Address, std::string> alive_;      ///< in quarantine, with the device
  bool has_looked_ = false;                        ///< at what is in quarantine
  bool is_deaf_ = false;                           ///< the kernel can't be asked
};

}  // namespace

Result<core::Assigned> assign_past_living(const LivingAdd& add) { return Attempt(add).run(); }

}  // namespace croft::edge
