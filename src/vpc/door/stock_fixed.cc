// ADDs of pods that may keep their address by name, in threads of their own: others never wait for an API.

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "vpc/decide/promised.h"
#include "vpc/door/stock_answers.h"
#include "vpc/door/stock_service.h"

namespace croft::edge {
namespace {

namespace warm = core::warm;

/// How long the question is waited for that is asked for every pod whose name could be a StatefulSet's: an API server
/// that takes longer is away, and those behind are told so (vpc/daemon/guarded_api.h).
constexpr std::chrono::seconds kAskMax{3};

/// Who hears `unavailable` takes from the stock himself, and knows of no promise: that is for when the agent is gone.
Error told(Error error) {
  if (error.code == ErrorCode::unavailable) error.code = ErrorCode::exhausted;
  return error;
}

}  // namespace

/// Nothing where it is an ADD as any other: it has been queued. Whether the pod keeps its address is not guessed; what
/// is promised to it and cannot be had is an error, and never another address.
std::optional<os::GrpcAnswer> StockService::add_fixed(Moving moving) {
  auto& add = std::get<StockAdd>(moving.what);
  const Instant now = world_.clock.now();
  // For one whose caller is gone a DEL has come or will.
  if (moving.hung_up != nullptr && *moving.hung_up) {
    return failed(moving, Error{ErrorCode::conflict, "the caller is gone", {}});
  }
  if (moving.limit.passed(now)) {
    return failed(moving, Error{ErrorCode::exhausted, "others waited for the API server until it was too late", {}});
  }
  // What an older sandbox of the pod was needs no API.
  const std::optional<bool> known = world_.keeper.is_known_as_fixed(add.request.pod);
  if (known == false) return queue(std::move(moving));
  const Deadline patience{std::min(Deadline::after(now, kAskMax).at_since_boot, moving.limit.at_since_boot)};
  auto wish = world_.fixed->wish_of(add.request.pod, patience);
  // Whose name it is by now is not guessed either.
  if (!wish) {
    const ErrorCode code = wish.error().code;
    if (code == ErrorCode::conflict || code == ErrorCode::refused_by_configuration) {
      return failed(moving, wish.error());
    }
    if (!warm::has_stable_name(add.request.pod)) return queue(std::move(moving));
    return failed(moving, told(wish.error().in("whether this pod keeps its address by name is not known")));
  }
  if (add.request.pod.uid.empty()) add.request.pod.uid = wish->uid;
  if (!wish->is_fixed && !known) {
    add.request.extra[warm::kKeepsNoneKey] = "true";
    return queue(std::move(moving));
  }
  moving.fixed = *std::move(wish);
  const auto promise = world_.fixed->promise_to(add.request.pod, moving.limit);
  if (!promise) return failed(moving, told(promise.error()));
  const auto interface = world_.keeper.interface();
  if (*promise && interface && !(*promise)->subnet.empty()) {
    const std::string& here =
        world_.keeper.options().subnet.empty() ? interface->subnet : world_.keeper.options().subnet;
    if ((*promise)->subnet != here) {
      return failed(moving, Error{ErrorCode::refused_by_configuration,
                                  (*promise)->address.to_string() + " is promised to this pod in subnet " +
                                      (*promise)->subnet + ", and this node is in " + here +
                                      ": let the pod run on a node of that subnet, or delete its VpcIpClaim",
                                  {}});
    }
  }
  // One that was given before the promise was written is the one to promise.
  auto promised = *promise;
  if (!promised) {
    if (const auto kept = world_.keeper.kept_for(add.request.pod)) promised.emplace().address = *kept;
  }
  if (!promised) {
    add.request.extra[warm::kPromisedKey] = warm::promise_of(add.request.pod);
    return queue(std::move(moving));
  }
  if (moving.hung_up != nullptr && *moving.hung_up) {
    return failed(moving, Error{ErrorCode::conflict, "the caller is gone", {}});
  }
  auto given = world_.keeper.give_promised(*promised, add.request, moving.limit);
  if (!given) return failed(moving, told(given.error()));
  add.answer = *std::move(given);
  return attach(moving);
}

/// The agent ends: those that have not begun are told so.
void StockService::refuse_fixed() {
  std::vector<std::shared_ptr<Moving>> refused;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(fixed_.errands, [&](const Errand& errand) {
      if (errand.add != nullptr) refused.push_back(errand.add);
      return errand.add != nullptr;
    });
  }
  std::vector<os::GrpcAnswer> answers;
  answers.reserve(refused.size());
  for (const auto& one : refused) {
    answers.push_back(failed(*one, Error{ErrorCode::exhausted, "the agent ends", {}}));
  }
  if (!answers.empty()) sink_(std::move(answers));
}

/// The pod holds it; the answer goes out when the cluster says so too. What fails in between is the same pod's when it
/// asks again (StockKeeper::kept_for).
os::GrpcAnswer StockService::attach(Moving& moving) {
  const auto attached =
      world_.fixed->attach(std::get<StockAdd>(moving.what).answer.address, *moving.fixed, moving.limit);
  if (!attached) return failed(moving, told(attached.error()));
  return done(moving);
}

}  // namespace croft::edge
