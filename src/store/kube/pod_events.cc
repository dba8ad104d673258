#include "store/kube/pod_events.h"

#include <utility>

#include <fmt/format.h>

#include "wire/kube/event.h"
#include "wire/kube/requests.h"

namespace croft::store::kube {
namespace {

constexpr wire::kube::ApiResource kEvents{"", "v1", "events"};
constexpr std::size_t kWaitingMax = 256;
constexpr std::size_t kToldMax = 4096;
/// An Event's name is a DNS subdomain: the pod's, a dot, and 16 digits.
constexpr std::size_t kPodInNameMax = 200;

}  // namespace

PodEvents::PodEvents(std::unique_ptr<Api> api, const Clock& clock, Random& random, Options options)
    : api_(std::move(api)), clock_(clock), random_(random), options_(std::move(options)), thread_([this] { run(); }) {}

PodEvents::~PodEvents() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void PodEvents::tell(const core::PodIdentity& pod, const std::string& reason, const std::string& message) {
  if (pod.name.empty() || pod.namespace_name.empty()) return;
  const Instant now = clock_.now();
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(told_since_boot_,
                  [&](const auto& told) { return now.since_boot - told.second >= options_.interval; });
    const bool is_full = waiting_.size() >= kWaitingMax || told_since_boot_.size() >= kToldMax;
    const std::string name = fmt::format("{}/{}", pod.namespace_name, pod.name);
    if (is_full || !told_since_boot_.emplace(name, now.since_boot).second) {
      ++counts_.dropped;
      return;
    }
    waiting_.push_back({pod, reason, message, now.wall});
  }
  wake_.notify_all();
}

PodEvents::Counts PodEvents::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void PodEvents::run() {
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

void PodEvents::send(const Waiting& waiting) {
  const auto path = wire::kube::collection_path(kEvents, waiting.pod.namespace_name);
  std::string trouble;
  if (!path) trouble = path.error().message;
  if (path) {
    wire::kube::PodEvent event;
    event.name = fmt::format("{}.{:016x}", waiting.pod.name.substr(0, kPodInNameMax), random_.next());
    event.name_space = waiting.pod.namespace_name;
    event.pod = waiting.pod.name;
    event.uid = waiting.pod.uid;
    event.reason = waiting.reason;
    event.message = waiting.message;
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
