#include "store/kube/wish_follower.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "base/net/echo.h"
#include "store/kube/form.h"
#include "store/kube/format/requests.h"
#include "store/kube/informer.h"
#include "store/kube/object_list.h"

namespace croft::store::kube {
namespace {

using wire::kube::ApiEvent;

/// More namespaces, or pods of one node, than there can be; others have to be asked for.
constexpr std::size_t kKnownMax = 100'000;
constexpr std::chrono::seconds kCallTime{15};
constexpr std::chrono::minutes kWatchTime{5};

}  // namespace

/// One kind of objects.
class WishFollower::Feed final : private Informer::User {
 public:
  Feed(Api& api, Annotated kind, ListAsked asked, const Clock& clock, std::size_t bytes_max)
      : api_(api),
        kind_(kind),
        asked_(std::move(asked)),
        clock_(clock),
        bytes_max_(bytes_max),
        informer_(api, clock, {asked_.collection, asked_.of, asked_.select, {}, kWatchTime}, *this) {}
  void stop() { informer_.stop(); }

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

  void set_current(bool is_current) {
    const std::lock_guard lock(mutex_);
    is_current_ = is_current;
  }
  /// Of a right that is missing; of what else is in the way nothing.
  void note_refusal(const Error& error) {
    const std::lock_guard lock(mutex_);
    refusal_ = error.code == ErrorCode::permission_denied ? error.message : std::string();
  }
  /// What the API says is not understood: told until a watch lasts again.
  void note_trouble(std::string trouble) {
    const std::lock_guard lock(mutex_);
    trouble_ = std::move(trouble);
  }

  [[nodiscard]] static std::string name_of(const wire::kube::ApiMeta& meta) {
    return meta.name_space.empty() ? meta.name : fmt::format("{}/{}", meta.name_space, meta.name);
  }
  [[nodiscard]] Known known(wire::JsonRef object, const wire::kube::ApiMeta& meta) const {
    return {meta.uid, wishes_in(kind_, object, net::echo(name_of(meta)))};
  }
  /// Everything anew.
  [[nodiscard]] std::optional<std::string> begin() override {
    KnownByName all;
    std::size_t bytes = 0;
    {
      // What was remembered counts no more; both at once would be too much.
      const std::lock_guard lock(mutex_);
      known_.clear();
      known_bytes_ = 0;
    }
    ListUse use;
    use.begin = [&] {
      all.clear();
      bytes = 0;
    };
    use.until = [&] { return Deadline::after(clock_.now(), kCallTime); };
    use.error_of = [](const Answer& answer) { return answer.error; };
    use.take = [&](const wire::kube::ApiListPage& page) -> Result<bool> {
      for (const std::string_view text : page.items) {
        TRY(const auto item, wire::kube::decode_item(text, asked_.of));
        keep(all, bytes, name_of(item.meta), known(item.value, item.meta));
      }
      return true;
    };
    auto read = read_list(api_, asked_, use);
    if (!read) {
      note_refusal(read.error());
      if (read.error().code == ErrorCode::corrupt) note_trouble(read.error().message);
      return std::nullopt;
    }
    const std::lock_guard lock(mutex_);
    known_ = std::move(all);
    known_bytes_ = bytes;
    return *std::move(read);
  }

  void opened() override {
    note_refusal({ErrorCode::unavailable, {}, {}});
    set_current(true);
  }

  [[nodiscard]] Informer::Next ended(const Error& why, bool lasted) override {
    // Servers end every watch after some time, and this goes on from where it was. What is remembered is as of the last
    // watch: that is not asked for while the next one is not open for long.
    if (!lasted) set_current(false);
    if (lasted) note_trouble({});
    if (why.code == ErrorCode::corrupt) note_trouble(why.message);
    if (why.code == ErrorCode::permission_denied) note_refusal(why);
    const bool goes_on = why.code == ErrorCode::unavailable;
    if (!goes_on) set_current(false);
    return goes_on ? Informer::Next::again : Informer::Next::anew;
  }

  [[nodiscard]] Result<void> take(const ApiEvent& event, Revision /*revision*/) override {
    if (event.type == ApiEvent::Type::bookmark) return {};
    const wire::kube::ApiMeta& meta = event.object->meta;
    const bool is_gone = event.type == ApiEvent::Type::deleted;
    auto now = is_gone ? std::nullopt : std::optional(known(event.object->value, meta));
    const std::lock_guard lock(mutex_);
    keep(known_, known_bytes_, name_of(meta), std::move(now));
    return {};
  }

  Api& api_;
  const Annotated kind_;
  const ListAsked asked_;
  const Clock& clock_;
  const std::size_t bytes_max_;
  mutable std::mutex mutex_;  ///< guards all below
  std::string refusal_, trouble_;
  bool is_current_ = false;  ///< a watch is open
  KnownByName known_;
  std::size_t known_bytes_ = 0;
  Informer informer_;  ///< the last: it uses all of the above
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
      pods_ = std::make_unique<Feed>(*api_, Annotated::pod,
                                     ListAsked{"/api/v1/pods", {"v1", "Pod", true}, {{}, of_node}}, clock_, bytes_max_);
      namespaces_ = std::make_unique<Feed>(*api_, Annotated::name_space,
                                           ListAsked{"/api/v1/namespaces", {"v1", "Namespace"}}, clock_, bytes_max_);
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
