#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "store/kube/api.h"
#include "store/kube/test_api.h"

namespace croft::wire::kube {

/// 32 bytes that are as good as a digest's where only names have to differ.
[[nodiscard]] inline std::string fake_digest(std::string_view text) {
  std::string digest;
  for (std::uint64_t part = 0; part < 4; ++part) {
    std::uint64_t sum = 0xcbf29ce484222325ULL ^ part;
    for (const char c : text) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    for (int shift = 0; shift < 64; shift += 8) digest += static_cast<char>(sum >> shift);
  }
  return digest;
}

}  // namespace croft::wire::kube

namespace croft::store::kube {

/// What a kube-apiserver does with custom resources, in memory: names, UIDs, resourceVersions, preconditions,
/// finalizers, selectors, pages, watches, and its Statuses. Several FakeApis share one; safe to use from several
/// threads. The real one is asked the same by e2e/kube_store.py.
class FakeCluster {
 public:
  using Json = nlohmann::json;

  std::atomic<bool> watches_are_forbidden = false;

  struct Event {
    std::uint64_t revision = 0;
    std::string type;
    std::string collection;
    Json object;
    Json before;  ///< null for one that is new
  };

  /// An answer: HTTP status and body.
  struct Reply {
    int code = 200;
    std::string body;
  };

  [[nodiscard]] Reply serve(Request::Method method, const std::string& path, const std::string& body) {
    const std::lock_guard lock(mutex_);
    const Asked asked = parse(path);
    if (!is_served(asked.collection))
      return status(404, "NotFound", "the server could not find the requested resource", "");
    switch (method) {
      case Request::Method::get:
        return asked.name.empty() ? list(asked) : get(asked);
      case Request::Method::post:
        return create(asked, Json::parse(body));
      case Request::Method::put:
        return update(asked, Json::parse(body));
      case Request::Method::delete_object:
        return remove(asked, body.empty() ? Json::object() : Json::parse(body));
      case Request::Method::patch:
        return patch(asked, Json::parse(body));
    }
    return status(405, "MethodNotAllowed", "no", "");
  }

  /// The first change after `revision` that a watch of this path tells of, as a line; waits until the deadline.
  [[nodiscard]] std::optional<std::string> event_after(const std::string& path, std::uint64_t& revision,
                                                       std::chrono::nanoseconds wait) {
    std::unique_lock lock(mutex_);
    const Asked asked = parse(path);
    const auto until = std::chrono::steady_clock::now() + wait;
    const std::uint64_t told = revision;
    for (;;) {
      if (revision < forgotten_) {
        const Json gone = {{"type", "ERROR"}, {"object", status_json(410, "Expired", "too old resource version", "")}};
        return gone.dump();
      }
      for (const Event& event : events_) {
        if (event.revision <= revision || event.collection != asked.collection) continue;
        revision = event.revision;
        const bool is_in = event.type != "DELETED" && selects(asked, event.object);
        const bool was_in = !event.before.is_null() && selects(asked, event.before);
        if (!is_in && !was_in) continue;
        const char* type = !is_in ? "DELETED" : was_in ? "MODIFIED" : "ADDED";
        return Json{{"type", type}, {"object", event.object}}.dump();
      }
      if (changed_.wait_until(lock, until) == std::cv_status::timeout) return bookmark(asked, told, revision);
    }
  }

  /// Objects as they are, by path; null where there is none.
  [[nodiscard]] Json object(const std::string& path) const {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(path);
    return found == objects_.end() ? Json() : found->second;
  }
  /// As somebody with kubectl create.
  void make(const std::string& path, Json object) {
    const std::lock_guard lock(mutex_);
    object["metadata"]["uid"] = fmt::format("00000000-0000-4000-8000-{:012}", ++uids_);
    store(path, "ADDED", std::move(object));
  }
  /// As somebody with kubectl edit: every change becomes a new version.
  template <class Edit>
  void edit(const std::string& path, Edit edit) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(path);
    if (found == objects_.end()) throw std::runtime_error(path + " is not there");
    Json after = found->second;
    edit(after);
    store(path, "MODIFIED", std::move(after));
  }
  /// The API has no such resources: their CRD is missing. `collection` as in
  /// "/apis/ipam.croft.dev/v1alpha1/croftpoolsets".
  void do_not_serve(const std::string& collection) {
    const std::lock_guard lock(mutex_);
    missing_.push_back(collection);
  }
  /// As a compaction: watches from before get 410.
  void forget_history() {
    const std::lock_guard lock(mutex_);
    forgotten_ = revision_;
    events_.clear();
    changed_.notify_all();
  }
  /// From now on what its servers have in memory (lists with resourceVersion=0) is as it is now, of objects that are
  /// not changed meanwhile.
  void stop_remembering() {
    const std::lock_guard lock(mutex_);
    remembered_ = revision_;
  }
  [[nodiscard]] std::map<std::string, Json> all() const {
    const std::lock_guard lock(mutex_);
    return objects_;
  }

  /// Its watches say how far they are, and more often than those of a real one.
  std::atomic<bool> gives_bookmarks = false;

 private:
  struct Asked {
    std::string collection, name;
    std::map<std::string, std::string> query;
  };

  /// Of what happened since `told` up to now nothing was for this watch.
  [[nodiscard]] std::optional<std::string> bookmark(const Asked& asked, std::uint64_t told,
                                                    std::uint64_t& revision) const {
    if (!gives_bookmarks || told == revision_) return std::nullopt;
    revision = revision_;
    const Json meta = {{"resourceVersion", std::to_string(revision)}};
    return Json{{"type", "BOOKMARK"}, {"object", {{"kind", kind_of(asked.collection)}, {"metadata", meta}}}}.dump();
  }
  [[nodiscard]] static std::string unescaped(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '%' && i + 2 < text.size()) {
        out += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
        i += 2;
      } else {
        out += text[i];
      }
    }
    return out;
  }

  [[nodiscard]] static Asked parse(const std::string& path) {
    Asked asked;
    const std::size_t mark = path.find('?');
    std::string plain = path.substr(0, mark);
    // /apis/GROUP/VERSION/PLURAL or /api/VERSION/PLURAL, of a group also with /namespaces/NAMESPACE before the plural
    const bool is_of_group = plain.starts_with("/apis/");
    const bool has_namespace = is_of_group && plain.find("/namespaces/") != plain.npos;
    const std::size_t parts = (is_of_group ? 4 : 3) + (has_namespace ? 2 : 0);
    std::size_t at = 0;
    for (std::size_t i = 0; i < parts && at != plain.npos; ++i) at = plain.find('/', at + 1);
    asked.collection = plain.substr(0, at);
    if (at != plain.npos) asked.name = unescaped(std::string_view(plain).substr(at + 1));
    std::string_view query = mark == path.npos ? std::string_view() : std::string_view(path).substr(mark + 1);
    while (!query.empty()) {
      const std::size_t end = std::min(query.find('&'), query.size());
      const std::string_view one = query.substr(0, end);
      const std::size_t equals = std::min(one.find('='), one.size());
      asked.query[unescaped(one.substr(0, equals))] = unescaped(one.substr(std::min(equals + 1, one.size())));
      query.remove_prefix(std::min(end + 1, query.size()));
    }
    return asked;
  }

  [[nodiscard]] bool is_served(const std::string& collection) const {
    return std::ranges::find(missing_, collection) == missing_.end();
  }

  [[nodiscard]] static Json status_json(int code, const std::string& reason, const std::string& message,
                                        const std::string& name) {
    Json details = Json::object();
    if (!name.empty()) details["name"] = name;
    return {{"kind", "Status"},   {"apiVersion", "v1"}, {"metadata", Json::object()}, {"status", "Failure"},
            {"message", message}, {"reason", reason},   {"details", details},         {"code", code}};
  }
  [[nodiscard]] static Reply status(int code, const std::string& reason, const std::string& message,
                                    const std::string& name) {
    return {code, status_json(code, reason, message, name).dump()};
  }

  /// "a=b,!c,d!=e", and of fields metadata.name, or of pods their address and phase.
  [[nodiscard]] static bool selects(const Asked& asked, const Json& object) {
    const Json& meta = object.at("metadata");
    if (const auto field = asked.query.find("fieldSelector"); field != asked.query.end()) {
      const Json state = object.value("status", Json::object());
      const std::string phase = state.value("phase", "");
      const bool is_live_pod =
          phase != "Succeeded" && phase != "Failed" &&
          field->second == "status.podIP=" + state.value("podIP", "") + ",status.phase!=Succeeded,status.phase!=Failed";
      if (!is_live_pod && field->second != "metadata.name=" + meta.at("name").get<std::string>()) return false;
    }
    const auto label = asked.query.find("labelSelector");
    std::string_view rest = label == asked.query.end() ? std::string_view() : std::string_view(label->second);
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(','), rest.size());
      const std::string one(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
      const Json labels = meta.value("labels", Json::object());
      if (one.starts_with('!')) {
        if (labels.contains(one.substr(1))) return false;
        continue;
      }
      const std::size_t equals = one.find('=');
      if (const std::size_t not_equals = one.find("!="); not_equals != one.npos) {
        if (labels.value(one.substr(0, not_equals), std::string("\x01")) == one.substr(not_equals + 2)) return false;
        continue;
      }
      if (labels.value(one.substr(0, equals), std::string("\x01")) != one.substr(equals + 1)) return false;
    }
    return true;
  }

  /// An API server has signed integers of 64 bits, and makes others floats.
  static void check_numbers(const Json& value) {
    if (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
      throw std::runtime_error("an integer of more than 63 bits: the API server makes a float of it");
    }
    if (value.is_structured()) {
      for (const auto& part : value) check_numbers(part);
    }
  }

  void store(const std::string& path, const std::string& type, Json object) {
    Json before = objects_.contains(path) ? objects_[path] : Json();
    object["metadata"]["resourceVersion"] = std::to_string(++revision_);
    const std::string collection = path.substr(0, path.rfind('/'));
    // As an API server does, whatever was left out.
    if (const std::string kind = kind_of(collection); kind != "Unknown") {
      if (!object.contains("kind")) object["kind"] = kind;
      if (!object.contains("apiVersion")) object["apiVersion"] = version_of(collection);
    }
    constexpr std::string_view kIn = "/namespaces/";
    if (const std::size_t at = collection.find(kIn); at != std::string::npos) {
      const std::size_t begin = at + kIn.size();
      object["metadata"]["namespace"] = collection.substr(begin, collection.find('/', begin) - begin);
    }
    events_.push_back({revision_, type, collection, object, std::move(before)});
    if (type == "DELETED") {
      objects_.erase(path);
    } else {
      objects_[path] = std::move(object);
    }
    changed_.notify_all();
  }

  [[nodiscard]] Reply get(const Asked& asked) const {
    const auto found = objects_.find(asked.collection + "/" + asked.name);
    if (found == objects_.end()) return status(404, "NotFound", asked.name + " not found", asked.name);
    return {200, found->second.dump()};
  }

  [[nodiscard]] Reply list(const Asked& asked) const {
    const auto text = [&](const char* name) {
      const auto found = asked.query.find(name);
      return found == asked.query.end() ? std::string() : found->second;
    };
    const std::size_t limit = text("limit").empty() ? SIZE_MAX : std::stoul(text("limit"));
    Json items = Json::array();
    std::string next;
    for (auto it = objects_.upper_bound(asked.collection + "/" + text("continue")); it != objects_.end(); ++it) {
      if (it->first.substr(0, it->first.rfind('/')) != asked.collection) {
        if (it->first > asked.collection + "0") break;
        continue;
      }
      if (!selects(asked, it->second)) continue;
      const bool is_from_memory = text("resourceVersion") == "0" && remembered_;
      if (is_from_memory && std::stoull(it->second["metadata"]["resourceVersion"].get<std::string>()) > *remembered_) {
        continue;
      }
      if (items.size() == limit) {
        next = items.back()["metadata"]["name"];
        break;
      }
      items.push_back(it->second);
    }
    Json meta = {{"resourceVersion", std::to_string(revision_)}};
    if (!next.empty()) meta["continue"] = next;
    return {200, Json{{"kind", kind_of(asked.collection) + "List"},
                      {"apiVersion", version_of(asked.collection)},
                      {"metadata", meta},
                      {"items", items}}
                     .dump()};
  }

  /// "crd.projectcalico.org/v1" of "/apis/crd.projectcalico.org/v1/ippools", "v1" of "/api/v1/nodes".
  [[nodiscard]] static std::string version_of(const std::string& collection) {
    const std::size_t begin = collection.starts_with("/apis/") ? 6 : 5;
    const std::size_t parts = collection.starts_with("/apis/") ? 2 : 1;
    std::size_t end = begin;
    for (std::size_t i = 0; i < parts; ++i) end = collection.find('/', end + (i > 0 ? 1 : 0));
    return collection.substr(begin, end - begin);
  }
  [[nodiscard]] static std::string kind_of(const std::string& collection) {
    static const std::map<std::string_view, std::string_view> kKinds = {
        {"ippools", "IPPool"},
        {"ipreservations", "IPReservation"},
        {"ipamconfigs", "IPAMConfig"},
        {"ipamconfigurations", "IPAMConfiguration"},
        {"ipamblocks", "IPAMBlock"},
        {"blockaffinities", "BlockAffinity"},
        {"ipamhandles", "IPAMHandle"},
        {"clusterinformations", "ClusterInformation"},
        {"croftpools", "CroftPool"},
        {"croftpoolsets", "CroftPoolSet"},
        {"croftnoderanges", "CroftNodeRange"},
        {"croftnoderangesets", "CroftNodeRangeSet"},
        {"croftremovednodes", "CroftRemovedNode"},
        {"crofthighwatermarks", "CroftHighWaterMark"},
        {"nodes", "Node"},
        {"namespaces", "Namespace"},
        {"pods", "Pod"},
        {"services", "Service"},
        {"servicecidrs", "ServiceCIDR"},
        {"leases", "Lease"},
        {"ipamds", "Ipamd"},
        {"vpcipclaims", "VpcIpClaim"},
    };
    const auto found = kKinds.find(std::string_view(collection).substr(collection.rfind('/') + 1));
    return std::string(found == kKinds.end() ? "Unknown" : found->second);
  }

  /// Of these kinds `status` is a subresource: writes of the object leave it, and its own leave the object.
  [[nodiscard]] static bool has_status(const std::string& collection) {
    return collection.ends_with("/croftpools") || collection.ends_with("/croftnoderangesets");
  }

  [[nodiscard]] Reply create(const Asked& asked, Json object) {
    if (has_status(asked.collection)) object.erase("status");
    const std::string name = object.at("metadata").at("name");
    const std::string path = asked.collection + "/" + name;
    if (objects_.contains(path)) return status(409, "AlreadyExists", name + " already exists", name);
    if (object["metadata"].contains("resourceVersion")) {
      return status(400, "BadRequest", "resourceVersion should not be set on objects to be created", name);
    }
    check_numbers(object);
    object["metadata"]["uid"] = fmt::format("00000000-0000-4000-8000-{:012}", ++uids_);
    object["metadata"]["creationTimestamp"] = "2026-01-15T10:00:00Z";
    object["metadata"]["generation"] = 1;
    object["metadata"]["managedFields"] = Json::array({{{"manager", "croft"}, {"operation", "Update"}}});
    store(path, "ADDED", std::move(object));
    return {201, objects_[path].dump()};
  }

  [[nodiscard]] static std::optional<Reply> unmet(const Json& wanted, const Json& meta, const std::string& name) {
    for (const char* member : {"uid", "resourceVersion"}) {
      if (!wanted.contains(member) || wanted[member] == meta[member]) continue;
      return status(409, "Conflict",
                    fmt::format("Operation cannot be fulfilled on {}: {} in precondition", name, member), name);
    }
    return std::nullopt;
  }

  [[nodiscard]] Reply update(const Asked& asked, Json object) {
    const std::string path = asked.collection + "/" + asked.name;
    const auto found = objects_.find(path);
    if (found == objects_.end()) return status(404, "NotFound", asked.name + " not found", asked.name);
    if (object.at("metadata").at("name") != asked.name) return status(400, "BadRequest", "the name does not match", "");
    if (!object["metadata"].contains("resourceVersion")) {
      return status(422, "Invalid", "metadata.resourceVersion: must be specified for an update", asked.name);
    }
    Json& before = found->second["metadata"];
    if (auto conflict = unmet(object["metadata"], before, asked.name)) return *std::move(conflict);
    check_numbers(object);
    for (const char* member : {"uid", "creationTimestamp", "generation", "managedFields", "deletionTimestamp"}) {
      object["metadata"].erase(member);
      if (before.contains(member)) object["metadata"][member] = before[member];
    }
    if (has_status(asked.collection)) {
      object.erase("status");
      if (found->second.contains("status")) object["status"] = found->second["status"];
    }
    const bool ends = object["metadata"].contains("deletionTimestamp") &&
                      object["metadata"].value("finalizers", Json::array()).empty();
    const Json answer = object;
    store(path, ends ? "DELETED" : "MODIFIED", std::move(object));
    return {200, ends ? answer.dump() : objects_[path].dump()};
  }

  /// Merges members; of a node's ranges as the API server does it, once and for all.
  [[nodiscard]] Reply patch(const Asked& whole, const Json& all_changes) {
    constexpr std::string_view kStatus = "/status";
    Asked asked = whole;
    Json changes = all_changes;
    const bool is_of_status = has_status(asked.collection) && asked.name.ends_with(kStatus);
    if (is_of_status) asked.name.resize(asked.name.size() - kStatus.size());
    const std::string path = asked.collection + "/" + asked.name;
    const auto found = objects_.find(path);
    if (found == objects_.end()) return status(404, "NotFound", asked.name + " not found", asked.name);
    Json wanted = changes.value("metadata", Json::object());
    // A UID does not change, which is another error than a conflict.
    if (!is_of_status) wanted.erase("uid");
    if (auto conflict = unmet(wanted, found->second["metadata"], asked.name)) return *std::move(conflict);
    if (is_of_status) {
      changes = Json{{"status", changes.value("status", Json::object())}};
    } else if (has_status(asked.collection)) {
      changes.erase("status");
    }
    Json object = found->second;
    object.merge_patch(changes);
    const Json none = Json::object();
    const Json before = found->second.value("spec", none), after = object.value("spec", none);
    const bool changes_ranges = before.contains("podCIDR") && before["podCIDR"] != after["podCIDR"];
    if (changes_ranges) {
      return status(422, "Invalid", "node updates may not change podCIDR except from \"\" to valid", asked.name);
    }
    store(path, "MODIFIED", std::move(object));
    return {200, objects_[path].dump()};
  }

  [[nodiscard]] Reply remove(const Asked& asked, const Json& options) {
    const std::string path = asked.collection + "/" + asked.name;
    const auto found = objects_.find(path);
    if (found == objects_.end()) return status(404, "NotFound", asked.name + " not found", asked.name);
    const Json wanted = options.value("preconditions", Json::object());
    if (auto conflict = unmet(wanted, found->second["metadata"], asked.name)) return *std::move(conflict);
    Json object = found->second;
    if (!object["metadata"].value("finalizers", Json::array()).empty()) {
      object["metadata"]["deletionTimestamp"] = "2026-01-15T10:00:01Z";
      store(path, "MODIFIED", std::move(object));
      return {200, objects_[path].dump()};
    }
    store(path, "DELETED", std::move(object));
    return {200, R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"})"};
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Json> objects_;  ///< by path
  std::deque<Event> events_;
  std::vector<std::string> missing_;
  std::uint64_t revision_ = 1000;
  std::uint64_t forgotten_ = 0;
  std::optional<std::uint64_t> remembered_;
  std::uint64_t uids_ = 0;
};

/// One client of it.
class FakeApi : public Api {
 public:
  explicit FakeApi(std::shared_ptr<FakeCluster> cluster, const Clock& clock)
      : cluster_(std::move(cluster)), clock_(clock) {}

  [[nodiscard]] Answer call(const Request& request, Deadline deadline) override {
    ++calls;
    if (deadline.passed(clock_.now())) {
      return {Answer::Outcome::not_done, 0, {}, {}, {ErrorCode::deadline_exceeded, "no time was left to ask", {}}};
    }
    const Lost lost = request.is_read() ? Lost::nothing : next_write.exchange(Lost::nothing);
    if (lost == Lost::request) return unknown();
    if (repeats && !request.is_read()) static_cast<void>(cluster_->serve(request.method, request.path, request.body));
    const auto reply = cluster_->serve(request.method, request.path, request.body);
    if (lost == Lost::reply) return unknown();
    if (reply.code < 300) return {Answer::Outcome::done, reply.code, reply.body, {}, {}};
    const auto status = wire::kube::decode_status(reply.body).value();
    return {Answer::Outcome::refused, reply.code, {}, status, {code_of(status), status.message, {}}};
  }

  [[nodiscard]] WatchAnswer watch(const std::string& path, Deadline /*deadline*/) override {
    if (cluster_->watches_are_forbidden) {
      return {refused(403, ErrorCode::permission_denied, "cannot watch"), nullptr};
    }
    const std::size_t at = path.find("resourceVersion=");
    const std::uint64_t from = at == path.npos ? 0 : std::stoull(path.substr(at + 16));
    return {answered(), std::make_unique<Stream>(*this, path, from)};
  }

  enum class Lost { nothing, request, reply };
  std::atomic<Lost> next_write = Lost::nothing;  ///< what becomes of the next write, whose outcome is unknown then
  std::atomic<std::uint64_t> calls = 0;
  /// As a proxy does that repeats idempotent requests: the server gets every write twice, and its second answer is
  /// given.
  std::atomic<bool> repeats = false;

 private:
  [[nodiscard]] static ErrorCode code_of(const wire::kube::ApiStatus& status) {
    switch (status.code) {
      case 404:
        return ErrorCode::not_found;
      case 409:
        return status.reason == "AlreadyExists" ? ErrorCode::already_exists : ErrorCode::conflict;
      case 410:
        return ErrorCode::too_old;
      default:
        return ErrorCode::invalid_argument;
    }
  }
  [[nodiscard]] static Answer unknown() {
    return {Answer::Outcome::unknown, 0, {}, {}, {ErrorCode::unknown_outcome, "the reply was lost", {}}};
  }

  class Stream final : public WatchStream {
   public:
    Stream(FakeApi& api, std::string path, std::uint64_t revision)
        : api_(api), path_(std::move(path)), revision_(revision) {}
    [[nodiscard]] Result<std::optional<wire::kube::ApiEvent>> next(Deadline deadline) override {
      const auto left = deadline.at_since_boot - api_.clock_.now().since_boot;
      const auto line = api_.cluster_->event_after(path_, revision_, std::max(left, std::chrono::nanoseconds{0}));
      if (!line) return std::optional<wire::kube::ApiEvent>();
      TRY(auto event, wire::kube::decode_event(*line));
      return std::optional(std::move(event));
    }

   private:
    FakeApi& api_;
    const std::string path_;
    std::uint64_t revision_;
  };

  const std::shared_ptr<FakeCluster> cluster_;
  const Clock& clock_;
};

}  // namespace croft::store::kube
