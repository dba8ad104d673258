#include "store/kube/events.h"

#include <utility>

#include <fmt/format.h>

#include "store/kube/format/requests.h"

namespace croft::store::kube {
namespace {

constexpr wire::kube::ApiResource kEvents{"", "v1", "events"};
constexpr std::size_t kWaitingMax = 256;
constexpr std::size_t kToldMax = 4096;
/// An Event's name is a DNS subdomain: what it is about, a dot, and 16 digits.
constexpr std::size_t kNameInNameMax = 200;

}  // namespace

Events::Events(std::unique_ptr<Api> api, const Clock& clock, Random& random, Options options)
    : api_(std::move(api)), clock_(clock), random_(random), options_(std::move(options)), thread_([this] { run(); }) {}

Events::~Events() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Events::tell(wire::kube::Regarding about, Told told) {
  if (about.name.empty()) return;
  const Instant now = clock_.now();
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(told_since_boot_, [&](const auto& one) { return now.since_boot - one.second >= options_.interval; });
    const bool is_full = waiting_.size() >= kWaitingMax || told_since_boot_.size() >= kToldMax;
    const std::string name = fmt::format("{} {}/{} {}", about.kind, about.name_space, about.name,
                                         options_.each_reason ? told.reason : std::string());
    if (is_full || !told_since_boot_.emplace(name, now.since_boot).second) {
      ++counts_.dropped;
      return;
    }
    waiting_.push_back({std::move(about), std::move(told), now.wall});
  }
  wake_.notify_all();
}

Events::Counts Events::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void Events::run() {
  for (;;) {
    Waiting next;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
      if (stopping_) return;
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
    send(next);
  }
}

void Events::send(const Waiting& waiting) {
  const auto path = wire::kube::collection_path(kEvents, wire::kube::namespace_of_event(waiting.about));
  std::string trouble;
  if (!path) trouble = path.error().message;
  if (path) {
    wire::kube::Event event;
    event.name = fmt::format("{}.{:016x}", waiting.about.name.substr(0, kNameInNameMax), random_.next());
    event.regarding = waiting.about;
    event.type = waiting.told.type;
    event.reason = waiting.told.reason;
    event.action = waiting.told.action;
    event.message = waiting.told.message;
    event.component = options_.component;
    event.host = options_.node;
    event.at = waiting.at;
    Request request;
    request.method = Request::Method::post;
    request.path = *path;
    request.body = wire::kube::encode_event(event);
    const Answer answer = api_->call(request, Deadline::after(clock_.now(), options_.time_limit));
    if (answer.outcome != Answer::Outcome::done) trouble = answer.error.message;
  }
  const std::lock_guard lock(mutex_);
  ++(trouble.empty() ? counts_.sent : counts_.dropped);
  counts_.trouble = std::move(trouble);
}

}  // namespace croft::store::kube
