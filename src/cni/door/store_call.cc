#include "cni/door/store_call.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/quoted.h"
#include "cni/decision_log.h"
#include "os/files.h"

namespace croft::edge {
namespace {

/// How long an ADD waits while a tombstone of its owner is replayed, and what a call gives for the DELs of others.
constexpr std::chrono::seconds kLiftWaitMax{10};
constexpr std::chrono::seconds kMakeUpMax{1};

}  // namespace

NodeTurn::NodeTurn(const CniCall& call, const Clock& clock, std::string lock_file, Deadline deadline,
                   const std::function<void()>& before_waiting)
    : lock_(std::move(lock_file)) {
  const auto made = os::make_shared_directories(os::directory_of(lock_.path()));
  auto locked = made ? lock_.lock(clock, before_waiting ? Deadline{{}} : deadline) : Result<void>(fail(made.error()));
  if (!locked && before_waiting && locked.error().code == ErrorCode::deadline_exceeded) {
    before_waiting();
    locked = lock_.lock(clock, deadline);
  }
  if (!locked) call.warn("going on without the host-wide lock: " + locked.error().message);
}

Result<GivenBack> defer_release(const Tombstones& tombstones, wire::Tombstone tombstone, Tombstones::Sign sign,
                                const Error& why) {
  if (!can_be_made_up_for(why.code)) return fail(why);
  const auto left = tombstones.leave(std::move(tombstone), sign);
  if (left) {
    std::string words = " deferred=" + in_quotes(why.message);
    if (*left > 0) words += fmt::format(" dropped={}", *left);
    return GivenBack{{}, std::move(words)};
  }
  Error both = why;
  if (left.error().code != ErrorCode::refused_by_configuration) {
    both.message += "; nor could the release be left for later: " + left.error().message;
  }
  return fail(std::move(both));
}

Result<bool> lift_tombstone(const Tombstones& tombstones, const core::Owner& owner, const Clock& clock) {
  auto lifted = tombstones.lift(owner, Deadline::after(clock.now(), kLiftWaitMax));
  if (!lifted) return fail(lifted.error().in("an earlier DEL of this container waits to be made up for"));
  return lifted;
}

std::string lifted_text(bool was_lifted) { return was_lifted ? " tombstone=lifted" : ""; }

void make_up_for_some(const Tombstones& tombstones, const engine::Context& context, const std::string& store_url,
                      const CniCall::WriteLine& write) {
  Tombstones::Replay replay;
  replay.is_ours = [&](std::string_view url) { return url == store_url; };
  replay.log = [&](const std::string& line) {
    if (write) write(line);
  };
  const Deadline most = Deadline::after(context.clock.now(), kMakeUpMax);
  replay.deadline = {std::min(most.at_since_boot, context.not_after.at_since_boot)};
  static_cast<void>(tombstones.replay(context, replay));
}

}  // namespace croft::edge
