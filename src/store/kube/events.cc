#include "store/kube/events.h"

#include <utility>

#include <fmt/format.h>

#include "base/json/writer.h"
#include "base/time_text.h"
#include "store/kube/format/api.h"

namespace croft::store::kube {
namespace {

constexpr std::size_t kWaitingMax = 256;
constexpr std::size_t kToldMax = 4096;
/// An Event's name is a DNS subdomain: what it is about, a dot, and 16 digits.
constexpr std::size_t kNameInNameMax = 200;
/// The bound of events.k8s.io's `note`; core/v1 takes more, and shows it in tables.
constexpr std::size_t kMessageMax = 1024;

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

void Events::tell(Regarding about, Told told) {
  if (about.name.empty()) return;
  const Instant now = clock_.now();
  const std::lock_guard lock(mutex_);
  std::erase_if(told_since_boot_, [&](const auto& one) { return now.since_boot - one.second >= options_.interval; });
  if (waiting_.size() >= kWaitingMax || told_since_boot_.size() >= kToldMax) return;
  const std::string name = fmt::format("{} {}/{} {}", about.kind, about.name_space, about.name, told.reason);
  if (!told_since_boot_.emplace(name, now.since_boot).second) return;
  waiting_.push_back({std::move(about), std::move(told), now.wall});
  wake_.notify_all();
}

void Events::tell_of_refusal(const core::PodIdentity& pod, const Error& why) {
  if (pod.name.empty() || pod.namespace_name.empty()) return;
  tell({"v1", "Pod", pod.namespace_name, pod.name, pod.uid},
       {Type::warning, "FailedAddressAssignment", "",
        why.details.empty() ? why.message : why.message + "\n" + why.details});
}

std::string Events::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

void Events::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    const Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    const auto sent = send(next);
    lock.lock();
    trouble_ = sent ? std::string() : sent.error().message;
  }
}

Result<void> Events::send(const Waiting& waiting) {
  const Regarding& about = waiting.about;
  const std::string name_space = about.name_space.empty() ? "default" : about.name_space;
  const std::string at = rfc3339_exact(std::chrono::floor<std::chrono::seconds>(waiting.at));
  TRY(std::string path, wire::kube::collection_path({"", "v1", "events"}, name_space));
  std::string message = waiting.told.message;
  if (message.size() > kMessageMax) {
    std::size_t end = kMessageMax - 3;
    while ((static_cast<unsigned char>(message[end]) & 0xC0U) == 0x80U) --end;  // between two characters
    message.replace(end, std::string::npos, "…");
  }
  wire::JsonWriter out(wire::JsonWriter::Layout::compact);
  const auto member = [&](std::string_view name, std::string_view text) {
    if (text.empty()) return;
    out.text(name, text);
  };
  out.begin_object();
  member("apiVersion", "v1");
  member("kind", "Event");
  out.begin_object("metadata");
  member("name", fmt::format("{}.{:016x}", about.name.substr(0, kNameInNameMax), random_.next()));
  member("namespace", name_space);
  out.end_object();
  out.begin_object("involvedObject");
  member("apiVersion", about.api_version);
  member("kind", about.kind);
  member("namespace", about.name_space);
  member("name", about.name);
  member("uid", about.uid);
  out.end_object();
  member("type", waiting.told.type == Type::normal ? "Normal" : "Warning");
  member("reason", waiting.told.reason);
  member("message", message);
  out.begin_object("source");
  member("component", options_.component);
  member("host", options_.node);
  out.end_object();
  member("firstTimestamp", at);
  member("lastTimestamp", at);
  out.integer("count", 1);
  member("action", waiting.told.action);
  member("reportingComponent", options_.component);
  member("reportingInstance", options_.node);
  out.end_object();
  const Answer answer = api_->call({Request::Method::post, std::move(path), std::move(out).take()},
                                   Deadline::after(clock_.now(), kRequestTime));
  if (answer.outcome != Answer::Outcome::done) return fail(answer.error);
  return {};
}

}  // namespace croft::store::kube
