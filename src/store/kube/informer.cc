#include "store/kube/informer.h"

#include <cstdint>
#include <utility>

#include "base/pauses.h"
#include "store/kube/format/requests.h"

namespace croft::store::kube {
namespace {

using wire::kube::ApiEvent;

/// How long the thread sleeps on a watch before it looks whether it is still wanted.
constexpr std::chrono::milliseconds kLook{500};
constexpr std::chrono::seconds kCallTime{15};
constexpr std::chrono::milliseconds kPauseMin{100};
constexpr std::chrono::seconds kPauseMax{5};
/// A watch that was open so long was one. One that ends sooner, whatever came over it, makes the next pause longer,
/// else whatever stands before the API would be asked again and again without pause.
constexpr std::chrono::seconds kLasting{5};

}  // namespace

Informer::Informer(Api& api, const Clock& clock, Followed followed, User& user)
    : api_(api), clock_(clock), followed_(std::move(followed)), user_(user), thread_([this] { run(); }) {}

Informer::~Informer() {
  stop();
  thread_.join();
}

void Informer::stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  stopped_.notify_all();
}

bool Informer::is_stopping() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

bool Informer::sleeps(std::chrono::nanoseconds span) {
  std::unique_lock lock(mutex_);
  return !stopped_.wait_for(lock, span, [this] { return stopping_; });
}

void Informer::run() {
  Pauses pauses(kPauseMin, kPauseMax, static_cast<std::uint64_t>(clock_.now().since_boot.count()));
  std::optional<std::string> from;
  const auto goes_on = [&](Next next) {
    if (next == Next::anew) from.reset();
    return next != Next::end && !is_stopping();
  };
  while (!is_stopping()) {
    if (!from) from = user_.begin();
    if (from) {
      const auto since = clock_.now().since_boot;
      const Error why = follow(*from);
      if (is_stopping()) return;
      const bool lasted = clock_.now().since_boot - since >= kLasting;
      if (lasted) pauses.reset();
      if (!goes_on(user_.ended(why, lasted))) return;
    }
    if (!sleeps(pauses.next())) return;
  }
}

Error Informer::follow(std::string& from) {
  wire::kube::ApiWatchQuery query;
  query.select = followed_.select;
  query.resource_version = from;
  query.timeout = followed_.watch_time;
  const WatchAnswer opened = api_.watch(wire::kube::watch_path(followed_.collection, query), in(kCallTime));
  if (!opened.stream) return opened.answer.error;
  user_.opened();
  const Deadline end = followed_.watch_time.count() > 0 ? in(followed_.watch_time + kCallTime) : Deadline();
  while (!is_stopping() && !end.passed(clock_.now())) {
    const auto event = opened.stream->next(in(kLook));
    if (!event) return event.error();
    if (!*event) continue;
    if ((*event)->type == ApiEvent::Type::error) {
      return {
          (*event)->is_too_old() ? ErrorCode::too_old : ErrorCode::unavailable, "the API server has ended a watch", {}};
    }
    if (const auto taken = take(**event, from); !taken) return {ErrorCode::corrupt, taken.error().message, {}};
  }
  return {ErrorCode::unavailable, "a watch is over", {}};
}

Result<void> Informer::take(const ApiEvent& event, std::string& from) {
  TRY_VOID(wire::kube::check_event(event, followed_.of, followed_.name));
  TRY(const Revision revision, revision_of(event.object->meta.resource_version));
  TRY_VOID(user_.take(event, revision));
  from = event.object->meta.resource_version;
  return {};
}

}  // namespace croft::store::kube
