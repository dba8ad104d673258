#include "store/kube/pod_wishes.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/printable.h"
#include "cni/format/config.h"
#include "store/kube/format/api.h"

namespace croft::store::kube {
namespace {

[[nodiscard]] Result<core::PodWishes> wishes_of(Annotated kind, const Answer& answer, const std::string& name) {
  if (is_absent(answer)) return core::PodWishes{};
  if (answer.outcome == Answer::Outcome::done) {
    TRY(const auto object, wire::kube::decode_object(answer.body));
    return wishes_in(kind, object.value, name);
  }
  return fail(
      error_in(answer, "annotations of " + name,
               "allow to get pods and namespaces (deploy/kubernetes/annotations.yaml), or leave ipam.annotations out"));
}

[[nodiscard]] bool is_small(const Result<core::PodWishes>& wishes) {
  if (!wishes) return true;
  std::size_t names = wishes->addresses.size();
  for (const net::Family family : net::kFamilies) {
    if (const auto& pools = wishes->pools[family]) names += pools->size();
  }
  return names <= WishFollower::kNamesMax;
}

}  // namespace

Result<core::PodWishes> wishes_in(Annotated kind, wire::JsonRef object, const std::string& name) {
  core::PodWishes wishes;
  const auto annotations = member_of(member_of(object, "metadata"), "annotations");
  if (!annotations || annotations->is_null()) return wishes;
  const auto read = kind == Annotated::pod ? wire::cni::read_pod_annotations : wire::cni::read_namespace_annotations;
  const auto fault = read(wire::JsonAt{*annotations, nullptr, {}, {}}, wishes);
  if (!fault) return wishes;
  return fail(invalid_argument(
      fmt::format("annotations of {} {}: {}", kind == Annotated::pod ? "pod" : "namespace", name, fault->to_string())));
}

Result<core::AnnotatedWishes> ask_for_wishes(Api& api, const core::PodIdentity& pod, Deadline deadline) {
  std::array<Request, 2> requests;
  TRY(requests[0].path, wire::kube::object_path({"", "v1", "pods"}, pod.namespace_name, pod.name));
  TRY(requests[1].path, wire::kube::object_path({"", "v1", "namespaces"}, {}, pod.namespace_name));
  const auto answers = api.call_all(requests, deadline);
  core::AnnotatedWishes wishes;
  TRY(wishes.pod, wishes_of(Annotated::pod, answers[0], echo(fmt::format("{}/{}", pod.namespace_name, pod.name))));
  TRY(wishes.name_space, wishes_of(Annotated::name_space, answers[1], echo(pod.namespace_name)));
  return wishes;
}

// ---------------------------------------------------------------- following

WishFollower::WishFollower(std::unique_ptr<Api> api, std::string node, const Clock& clock)
    : api_(std::move(api)), node_(std::move(node)), clock_(clock) {}

WishFollower::~WishFollower() {
  for (Feed* feed : {&pods_, &namespaces_}) {
    if (feed->informer != nullptr) feed->informer->stop();
  }
}

std::string WishFollower::refusal() {
  const std::lock_guard lock(mutex_);
  if (pods_.informer == nullptr) return {};
  const std::string of_pods = pods_.informer->trouble();
  return of_pods.empty() ? namespaces_.informer->trouble() : of_pods;
}

void WishFollower::follow(Feed& feed, Annotated kind, ListAsked asked) {
  Followed followed;
  followed.asked = std::move(asked);
  followed.remedy = "allow to list and watch pods and namespaces (deploy/kubernetes/annotations.yaml)";
  followed.begin = [this, &feed] {
    const std::lock_guard lock(mutex_);
    feed.known.clear();
  };
  followed.take = [this, &feed, kind](const wire::kube::ApiObject& object, bool is_gone, Revision) -> Result<void> {
    const wire::kube::ApiMeta& meta = object.meta;
    const std::string name = meta.name_space.empty() ? meta.name : fmt::format("{}/{}", meta.name_space, meta.name);
    Known known{meta.uid, wishes_in(kind, object.value, echo(name))};
    const std::lock_guard lock(mutex_);
    if (is_gone || !is_small(known.wishes)) {
      feed.known.erase(name);
    } else {
      feed.known.insert_or_assign(name, std::move(known));
    }
    return {};
  };
  feed.informer = std::make_unique<Informer>(*api_, clock_, std::move(followed));
}

const WishFollower::Known* WishFollower::find(const Feed& feed, const std::string& name, const std::string& uid) {
  if (!feed.informer->is_current()) return nullptr;
  const auto found = feed.known.find(name);
  return found != feed.known.end() && (uid.empty() || found->second.uid == uid) ? &found->second : nullptr;
}

std::optional<Result<core::AnnotatedWishes>> WishFollower::remembered(const core::PodIdentity& pod) {
  const std::lock_guard lock(mutex_);
  if (pods_.informer == nullptr) {
    // Those that have ended get no address; thousands may lie about.
    const std::string of_node = fmt::format("spec.nodeName={},status.phase!=Succeeded,status.phase!=Failed", node_);
    follow(pods_, Annotated::pod, {"/api/v1/pods", {"v1", "Pod"}, {{}, of_node}});
    follow(namespaces_, Annotated::name_space, {"/api/v1/namespaces", {"v1", "Namespace"}});
  }
  if (pod.uid.empty()) return std::nullopt;
  const Known* const of_pod = find(pods_, fmt::format("{}/{}", pod.namespace_name, pod.name), pod.uid);
  const Known* const of_namespace = find(namespaces_, pod.namespace_name, {});
  if (of_pod == nullptr || of_namespace == nullptr) return std::nullopt;
  for (const Known* known : {of_pod, of_namespace}) {
    if (!known->wishes) return Result<core::AnnotatedWishes>(fail(known->wishes.error()));
  }
  return Result<core::AnnotatedWishes>(core::AnnotatedWishes{*of_pod->wishes, *of_namespace->wishes});
}

}  // namespace croft::store::kube
