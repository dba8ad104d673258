#include "store/kube/wish_follower.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/net/echo.h"
#include "base/pauses.h"
#include "store/kube/form.h"
#include "store/kube/format/requests.h"
#include "store/kube/object_list.h"

namespace croft::store::kube {
namespace {

using namespace std::chrono_literals;
using Outcome = Answer::Outcome;
using wire::kube::ApiEvent;

/// More namespaces, or pods of one node, than there can be; others have to be asked for.
constexpr std::size_t kKnownMax = 100'000;
constexpr std::chrono::seconds kCallTime{15};
/// A connection that is dead and does not say so ends with it: after that the changes since are read.
constexpr std::chrono::minutes kWatchTime{5};
constexpr std::chrono::milliseconds kLook{500};
constexpr std::chrono::milliseconds kPauseMin{100};
constexpr std::chrono::seconds kPauseMax{10};
/// A watch that was open so long was one, and what was read with it is worth something. One that ends sooner, whatever
/// came over it, makes the next pause longer.
constexpr std::chrono::seconds kLasting{5};

}  // namespace

/// One kind of objects, and its thread.
class WishFollower::Feed {
 public:
  /// `node` is that of the pods; empty: objects of none.
  Feed(Api& api, Annotated kind, std::string node, std::string collection, wire::kube::ApiSelection select,
       const Clock& clock, std::size_t bytes_max)
      : api_(api),
        kind_(kind),
        node_(std::move(node)),
        collection_(std::move(collection)),
        select_(std::move(select)),
        clock_(clock),
        bytes_max_(bytes_max),
        thread_([this] { run(); }) {}
  ~Feed() {
    stop();
    thread_.join();
  }
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  void stop() {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    stopped_.notify_all();
  }

  /// `uid` empty: whoever has the name.
  [[nodiscard]] std::optional<Result<core::PodWishes>> find(const std::string& name, const std::string& uid) const {
    const std::lock_guard lock(mutex_);
    const auto found = is_current_ ? known_.find(name) : known_.end();
    const bool is_it = found != known_.end() && (uid.empty() || found->second.uid == uid);
    return is_it ? std::optional(found->second.wishes) : std::nullopt;
  }

  /// Why the API does not let it follow; empty: it does, or has not been asked, or what is in the way passes.
  [[nodiscard]] std::string refusal() const {
    const std::lock_guard lock(mutex_);
    return refusal_.empty() ? trouble_ : refusal_;
  }

 private:
  struct Known {
    std::string uid;
    Revision revision;
    Result<core::PodWishes> wishes;
  };
  using KnownByName = std::map<std::string, Known>;

  /// About what one takes of memory.
  [[nodiscard]] static std::size_t bytes_of(const std::string& name, const Known& known) {
    std::size_t bytes = sizeof(KnownByName::value_type) + 64 + name.capacity() + known.uid.capacity();
    if (!known.wishes) return bytes + known.wishes.error().message.capacity();
    bytes += known.wishes->addresses.capacity() * sizeof(net::Address);
    for (const net::Family family : net::kFamilies) {
      const auto& pools = known.wishes->pools[family];
      if (!pools) continue;
      for (const core::AskedPool& pool : *pools) bytes += sizeof pool + 16 + core::text_of(pool).size();
    }
    return bytes;
  }
  /// In the place of what was known by that name. What would be too much is not kept: it is asked for.
  void keep(KnownByName& all, std::size_t& bytes, const std::string& name, std::optional<Known> known) const {
    if (const auto before = all.find(name); before != all.end()) {
      bytes -= bytes_of(name, before->second);
      all.erase(before);
    }
    if (!known) return;
    const std::size_t more = bytes_of(name, *known);
    if (all.size() >= kKnownMax || more > bytes_max_ - bytes) return;
    bytes += more;
    all.emplace(name, *std::move(known));
  }

  [[nodiscard]] bool is_stopping() const {
    const std::lock_guard lock(mutex_);
    return stopping_;
  }
  void sleep(std::chrono::nanoseconds span) {
    std::unique_lock lock(mutex_);
    stopped_.wait_for(lock, span, [this] { return stopping_; });
  }
  void set_current(bool is_current) {
    const std::lock_guard lock(mutex_);
    is_current_ = is_current;
  }
  /// Always false.
  bool note_refusal(const Answer& answer) {
    const std::lock_guard lock(mutex_);
    refusal_ = answer.error.code == ErrorCode::permission_denied ? answer.error.message : std::string();
    return false;
  }
  /// What the API says is not understood: told until a watch lasts again. Always false.
  bool note_trouble(std::string trouble) {
    const std::lock_guard lock(mutex_);
    trouble_ = std::move(trouble);
    return false;
  }
  [[nodiscard]] Deadline in(std::chrono::nanoseconds span) const { return Deadline::after(clock_.now(), span); }

  void run() {
    Pauses pauses(kPauseMin, kPauseMax, static_cast<std::uint64_t>(clock_.now().since_boot.count()));
    while (!is_stopping()) {
      static_cast<void>(read_all());
      while (!is_stopping() && !position_.empty()) {
        const auto since = clock_.now().since_boot;
        const bool goes_on = follow();
        if (!goes_on) break;
        // What is remembered is as of the last watch: that is not asked for while the next one is not open for long.
        const bool lasted = clock_.now().since_boot - since >= kLasting;
        lasted ? pauses.reset() : set_current(false);
        if (lasted) note_trouble({});
        sleep(pauses.next());
      }
      set_current(false);
      sleep(pauses.next());
    }
  }

  [[nodiscard]] static std::string name_of(const wire::kube::ApiMeta& meta) {
    return meta.name_space.empty() ? meta.name : fmt::format("{}/{}", meta.name_space, meta.name);
  }
  [[nodiscard]] Known known(wire::JsonRef object, const wire::kube::ApiMeta& meta, Revision revision) const {
    return {meta.uid, revision, wishes_in(kind_, object, net::echo(name_of(meta)))};
  }
  [[nodiscard]] wire::kube::ApiListOf list_of() const {
    const bool is_of_pods = kind_ == Annotated::pod;
    return {"v1", is_of_pods ? "Pod" : "Namespace", is_of_pods};
  }

  /// Everything anew; false when it could not be.
  [[nodiscard]] bool read_all() {
    position_.clear();
    KnownByName all;
    std::size_t bytes = 0;
    {
      // What was remembered counts no more; both at once would be too much.
      const std::lock_guard lock(mutex_);
      known_.clear();
      known_bytes_ = 0;
    }
    ListAsked asked{collection_, list_of(), select_};
    ListUse use;
    use.begin = [&] {
      all.clear();
      bytes = 0;
    };
    use.until = [&] { return in(kCallTime); };
    bool is_refused = false;
    use.error_of = [&](const Answer& answer) {
      is_refused = true;
      note_refusal(answer);
      return answer.error;
    };
    use.take = [&](const wire::kube::ApiListPage& page) -> Result<bool> {
      for (const std::string_view text : page.items) {
        TRY(const auto item, wire::kube::decode_item(text, asked.of));
        TRY(const auto revision, revision_of(item.meta.resource_version));
        keep(all, bytes, name_of(item.meta), known(item.value, item.meta, revision));
      }
      return !is_stopping();
    };
    const auto read = read_list(api_, asked, use);
    if (!read) return is_refused ? false : note_trouble(read.error().message);
    if (is_stopping()) return false;
    position_ = *read;
    const std::lock_guard lock(mutex_);
    known_ = std::move(all);
    known_bytes_ = bytes;
    return true;
  }

  /// One watch, until it ends; false when everything has to be read anew, or it could not be opened.
  [[nodiscard]] bool follow() {
    wire::kube::ApiWatchQuery query;
    query.select = select_;
    query.resource_version = position_;
    query.timeout = kWatchTime;
    const WatchAnswer opened = api_.watch(wire::kube::watch_path(collection_, query), in(kCallTime));
    if (!opened.stream) return note_refusal(opened.answer);
    note_refusal({});
    set_current(true);
    const Deadline end = in(kWatchTime + kCallTime);
    while (!is_stopping() && !end.passed(clock_.now())) {
      const auto event = opened.stream->next(in(kLook));
      // Servers end every watch after some time, and this goes on from where it was.
      if (!event && event.error().code == ErrorCode::corrupt) return note_trouble(event.error().message);
      if (!event) return event.error().code == ErrorCode::unavailable;
      if (!*event) continue;
      if ((*event)->type == ApiEvent::Type::error) return false;
      if (const auto is_it = wire::kube::check_event(**event, list_of()); !is_it) {
        // Whoever tells of something else may have left out what was asked for.
        const std::lock_guard lock(mutex_);
        refusal_ = is_it.error().message;
        return false;
      }
      const auto revision = revision_of((*event)->object->meta.resource_version);
      if (!revision) return note_trouble(revision.error().message);
      take(**event, *revision);
    }
    return true;
  }

  void take(const ApiEvent& event, Revision revision) {
    const wire::kube::ApiMeta& meta = event.object->meta;
    position_ = meta.resource_version;
    if (event.type == ApiEvent::Type::bookmark) return;
    const bool is_gone = event.type == ApiEvent::Type::deleted;
    auto now = is_gone ? std::nullopt : std::optional(known(event.object->value, meta, revision));
    const std::lock_guard lock(mutex_);
    keep(known_, known_bytes_, name_of(meta), std::move(now));
  }

  Api& api_;
  const Annotated kind_;
  const std::string node_;
  const std::string collection_;
  const wire::kube::ApiSelection select_;
  const Clock& clock_;
  const std::size_t bytes_max_;
  std::string position_;      ///< of the thread; empty: everything has to be read
  mutable std::mutex mutex_;  ///< guards all below
  std::string refusal_, trouble_;
  std::condition_variable stopped_;
  bool stopping_ = false;
  bool is_current_ = false;  ///< a watch is open
  KnownByName known_;
  std::size_t known_bytes_ = 0;
  std::thread thread_;  ///< the last: it uses all of the above
};

WishFollower::WishFollower(std::unique_ptr<Api> api, std::string node, const Clock& clock, std::size_t bytes_max)
    : api_(std::move(api)), node_(std::move(node)), clock_(clock), bytes_max_(bytes_max) {}

std::string WishFollower::refusal() {
  const std::lock_guard lock(mutex_);
  const std::string of_pods = pods_ != nullptr ? pods_->refusal() : std::string();
  return !of_pods.empty() || namespaces_ == nullptr ? of_pods : namespaces_->refusal();
}

WishFollower::~WishFollower() {
  for (Feed* feed : {pods_.get(), namespaces_.get()}) {
    if (feed != nullptr) feed->stop();
  }
}

std::optional<Result<core::AnnotatedWishes>> WishFollower::remembered(const core::PodIdentity& pod) {
  {
    const std::lock_guard lock(mutex_);
    if (pods_ == nullptr) {
      // Those that have ended get no address; thousands may lie about.
      const std::string of_node = fmt::format("spec.nodeName={},status.phase!=Succeeded,status.phase!=Failed", node_);
      pods_ = std::make_unique<Feed>(*api_, Annotated::pod, node_, "/api/v1/pods",
                                     wire::kube::ApiSelection{{}, of_node}, clock_, bytes_max_);
      namespaces_ = std::make_unique<Feed>(*api_, Annotated::name_space, std::string(), "/api/v1/namespaces",
                                           wire::kube::ApiSelection{}, clock_, bytes_max_);
    }
  }
  if (pod.uid.empty()) return std::nullopt;
  auto of_pod = pods_->find(fmt::format("{}/{}", pod.namespace_name, pod.name), pod.uid);
  auto of_namespace = namespaces_->find(pod.namespace_name, {});
  if (!of_pod || !of_namespace) return std::nullopt;
  if (!*of_pod) return Result<core::AnnotatedWishes>(fail(of_pod->error()));
  if (!*of_namespace) return Result<core::AnnotatedWishes>(fail(of_namespace->error()));
  return Result<core::AnnotatedWishes>(core::AnnotatedWishes{**std::move(of_pod), **std::move(of_namespace)});
}

}  // namespace croft::store::kube
