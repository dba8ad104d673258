#include "store/kube/informer.h"

#include <condition_variable>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "base/pacing.h"

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
/// API servers send a bookmark each minute: a connection that says nothing for so long is dead.
constexpr std::chrono::minutes kSilence{5};

/// From where it was, the watch would end in the same way.
[[nodiscard]] bool is_end(ErrorCode code) {
  return code == ErrorCode::too_old || code == ErrorCode::permission_denied || code == ErrorCode::corrupt;
}

}  // namespace

Informer::Informer(Api& api, const Clock& clock, Followed followed)
    : api_(api), clock_(clock), followed_(std::move(followed)), thread_([this] { run(); }) {}

Informer::~Informer() {
  stop();
  thread_.join();
}

bool Informer::is_current() const {
  const std::lock_guard lock(mutex_);
  return is_current_;
}

std::string Informer::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

void Informer::note(bool is_current, std::optional<std::string> trouble) {
  const std::lock_guard lock(mutex_);
  is_current_ = is_current;
  if (trouble) trouble_ = *std::move(trouble);
}

void Informer::run() {
  Backoff pauses(kPauseMin, kPauseMax, static_cast<std::uint64_t>(clock_.now().since_boot.count()));
  std::string from = followed_.from;
  while (!is_stopping()) {
    bool lasted = false;
    const Error why = follow(from, lasted);
    if (is_stopping()) return;
    const bool is_over = is_end(why.code);
    if (is_over && !followed_.from.empty()) return followed_.ended(why);
    if (is_over) from.clear();
    // Servers end every watch after some time. The list that was taken counts while the next watch is opened.
    note(lasted && !is_over, is_over && why.code != ErrorCode::too_old ? std::optional(why.message) : std::nullopt);
    if (lasted) pauses.reset();
    std::unique_lock lock(mutex_);
    std::condition_variable_any().wait_for(lock, stop_.get_token(), pauses.next(), [] { return false; });
  }
}

Error Informer::follow(std::string& from, bool& lasted) {
  if (from.empty()) {
    if (const auto listed = list(from); !listed) return listed.error();
  }
  wire::kube::ApiWatchQuery query;
  query.select = followed_.asked.select;
  query.resource_version = from;
  const WatchAnswer opened = api_.watch(wire::kube::watch_path(followed_.asked.collection, query), in(kCallTime));
  if (!opened.stream) return opened.answer.error;
  note(true);
  const Deadline lasting = in(kLasting);
  Deadline silence = in(kSilence);
  while (!is_stopping() && !silence.passed(clock_.now())) {
    const auto event = opened.stream->next(in(kLook));
    if (is_stopping()) break;  // nothing is told behind stop()
    if (!lasted && lasting.passed(clock_.now())) {
      lasted = true;
      note(true, "");
    }
    if (!event) return event.error();
    if (!*event) continue;
    silence = in(kSilence);
    if ((*event)->type == ApiEvent::Type::error) {
      return {
          (*event)->is_too_old() ? ErrorCode::too_old : ErrorCode::unavailable, "the API server has ended a watch", {}};
    }
    if (const auto taken = take(**event, from); !taken) return {ErrorCode::corrupt, taken.error().message, {}};
  }
  return {ErrorCode::unavailable, "a watch is over", {}};
}

Result<void> Informer::list(std::string& from) {
  ListUse use;
  use.begin = followed_.begin;
  use.until = [this] { return in(kCallTime); };
  use.take = [this](const wire::kube::ApiObject& object) -> Result<void> {
    TRY(const Revision revision, revision_of(object.meta.resource_version));
    return followed_.take(object, false, revision);
  };
  use.error_of = [this](const Answer& answer) {
    Error error = answer.error;
    if (lacks_right(answer)) error.message += fmt::format("; {}", followed_.remedy);
    return error;
  };
  TRY(from, read_list(api_, followed_.asked, use));
  return {};
}

Result<void> Informer::take(const ApiEvent& event, std::string& from) {
  TRY(const Revision revision, revision_of(event.object->meta.resource_version));
  if (event.type != ApiEvent::Type::bookmark) {
    TRY_VOID(followed_.take(*event.object, event.type == ApiEvent::Type::deleted, revision));
  }
  from = event.object->meta.resource_version;
  if (followed_.passed) followed_.passed(revision);
  return {};
}

}  // namespace croft::store::kube
