#include "store/kube/objects.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/hex.h"
#include "base/json/writer.h"
#include "base/net/u128.h"
#include "base/texts.h"
#include "store/format/pause.h"
#include "store/kube/format/api.h"
#include "store/kube/format/croft_kinds.h"

namespace croft::store::kube {
namespace {

using wire::kube::ApiListPage;
using Outcome = Answer::Outcome;

/// The resourceVersion of a list that may be as old as what the server has in memory.
constexpr const char* kAsRemembered = "0";
constexpr int kCreateTries = 8;
constexpr std::size_t kSeenMax = 20'000;
/// Compares the holder of an ordinal, as far as it decides whether another may hold it. That is the handle, whether it
/// cools, and the second owner of a virtual machine's, by which the collector knows that it is one.
[[nodiscard]] bool is_held_alike(const core::Block& sent, const core::Block& kept, std::size_t ordinal) {
  const auto& before = sent.allocations[ordinal];
  const auto& after = kept.allocations[ordinal];
  if (!before || !after) return !before && !after;
  if (*before >= sent.attributes.size() || *after >= kept.attributes.size()) return false;
  const core::Attribute& one = sent.attributes[*before];
  const core::Attribute& other = kept.attributes[*after];
  return one.handle_id == other.handle_id && one.cooling.has_value() == other.cooling.has_value() &&
         one.alternate_owner == other.alternate_owner;
}

/// Whether what an API has kept says what was sent, as far as something is decided by it. Members that people set are
/// part of that as a whole: an API server drops those that its schema does not know. Older definitions of blocks lack
/// members that decide nothing.
[[nodiscard]] bool is_kept(const Value& sent, const Value& kept) {
  if (kept.index() != sent.index()) return false;  // it can't be understood
  const auto* block = std::get_if<core::Block>(&sent);
  if (block == nullptr) return core::without_rest(kept) == core::without_rest(sent);
  const auto& is = std::get<core::Block>(kept);
  if (is.cidr != block->cidr || is.affinity != block->affinity || is.deleted != block->deleted) return false;
  if (is.allocations.size() != block->allocations.size()) return false;
  for (std::size_t i = 0; i < is.allocations.size(); ++i) {
    if (!is_held_alike(*block, is, i)) return false;
  }
  return true;
}

/// Ascending by name. For an object that two selections found, the later look counts.
template <class Kept, class KeyOf>
void put_in_order(std::vector<Kept>& all, KeyOf key_of) {
  std::ranges::stable_sort(all, {}, key_of);
  std::ranges::reverse(all);
  const auto again = std::ranges::unique(all, {}, key_of);
  all.erase(again.begin(), again.end());
  std::ranges::reverse(all);
}

}  // namespace

Objects::Objects(Api& api, std::vector<std::unique_ptr<ObjectMapping>> mappings, const Clock& clock)
    : api_(api),
      mappings_(std::move(mappings)),
      keeps_own_(std::ranges::any_of(mappings_, [](const auto& mapping) { return mapping->has(Kind::pool_set); })),
      clock_(clock) {}

bool Objects::keeps(Kind kind) const {
  if (core::is_hint(kind) || kind == Kind::range_allocation || kind == Kind::foreign_service) return false;
  return keeps_own_ || wire::kube::croft_kind_of(kind) == nullptr;
}

Result<const ObjectMapping*> Objects::mapping_of(Kind kind) const {
  for (const auto& mapping : mappings_) {
    if (mapping->has(kind)) return mapping.get();
  }
  return fail(ErrorCode::invalid_argument, "{} records are not kept in a Kubernetes API", core::name_of(kind));
}

Error Objects::error_of(const Answer& answer, Kind kind, std::string_view name) const {
  const auto mapping = mapping_of(kind);
  const auto resource = mapping ? (*mapping)->resource_of(kind) : wire::kube::ApiResource{};
  if (is_unknown(answer)) {
    return make_error(
        ErrorCode::refused_by_configuration,
        "the Kubernetes API has no {}.{} of version {}, in which a register of pools and blocks is kept: "
        "their CustomResourceDefinition is missing, or not served; a cluster with neither Calico's IPAM nor "
        "Croft has nothing to look at. To have Croft there, apply crds-croft.yaml of a release or of "
        "deploy/kubernetes, without Calico crds-calico.yaml too (docs/runbooks/kubernetes-crds.md); a "
        "register in another place is named with --store",
        resource.resource, resource.group, resource.version);
  }
  Error error = answer.error.in(fmt::format("{} {}", core::name_of(kind), name));
  // It is not the caller who is wrong: the server has sent more than there can be of that.
  if (answer.outcome == Outcome::not_done && error.code == ErrorCode::invalid_argument) error.code = ErrorCode::corrupt;
  return error;
}

void Objects::remember(const Key& key, const wire::kube::ApiObject& object) {
  const std::lock_guard lock(mutex_);
  if (uids_.size() >= kSeenMax) uids_.clear();
  uids_.insert_or_assign(key, object.meta.uid);
}

Result<Revision> Objects::position(Deadline deadline) {
  // Both kinds are few.
  const Kind kind = keeps_own_ ? Kind::pool_set : Kind::pool;
  TRY(const ObjectMapping* mapping, mapping_of(kind));
  ListAsked asked{.collection = {}, .of = mapping->list_of(kind), .page_objects = 1};
  TRY(asked.collection, wire::kube::collection_path(mapping->resource_of(kind)));
  const Answer answer = api_.call(first_page(asked), deadline);
  if (answer.outcome != Outcome::done) return fail(error_of(answer, kind, "list"));
  TRY(const ApiListPage page, wire::kube::decode_list(answer.body, asked.of));
  return revision_of(page.resource_version);
}

std::string Objects::uid_of(const Key& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = uids_.find(key);
  return found == uids_.end() ? std::string() : found->second;
}

// ---------------------------------------------------------------- reading

Result<std::optional<Stored>> Objects::found_in(const ObjectMapping& mapping, const Key& key, const Answer& answer) {
  const bool is_none = is_absent(answer) || (is_unknown(answer) && mapping.about(key.kind).may_be_unknown);
  if (is_none) return std::optional<Stored>();
  if (answer.outcome != Outcome::done) return fail(error_of(answer, key.kind, key.name));
  TRY(auto object, wire::kube::decode_object(answer.body));
  TRY(Stored stored, mapping.decode(key.kind, &key, object.value, object.meta));
  remember(key, object);
  return std::optional(std::move(stored));
}

Result<std::optional<Stored>> Objects::look(const Key& key, Deadline deadline) {
  TRY(const ObjectMapping* mapping, mapping_of(key.kind));
  TRY(std::string path, mapping->path_of(key));
  return found_in(*mapping, key, api_.get(std::move(path), deadline));
}

Result<std::optional<Record>> Objects::get(const Key& key, Deadline deadline) {
  Wanted wanted;
  wanted.records = {key};
  TRY(Together together, read(wanted, deadline));
  return std::move(together.records.front());
}

Result<std::vector<Objects::Part>> Objects::parts_of(const core::Listing& listing, bool claims_may_lag,
                                                     bool only_names) const {
  std::vector<Part> parts;
  if (!keeps(listing.kind)) return parts;
  TRY(const ObjectMapping* mapping, mapping_of(listing.kind));
  const MappedKind about = mapping->about(listing.kind);
  ListAsked asked{.collection = {}, .of = mapping->list_of(listing.kind), .may_be_unknown = about.may_be_unknown};
  TRY(asked.collection, wire::kube::collection_path(about.resource));
  asked.of.may_be_metadata = only_names && mapping->key_of_name(listing.kind, {});
  for (const wire::kube::ApiSelection& select : mapping->selections(listing)) {
    Part& part = parts.emplace_back(Part{&listing, mapping, asked});
    part.asked.select = select;
    // A node's own claims are looked at by each ADD. A server that has to ask its etcd goes through the affinities of
    // the whole cluster; its memory is as good. An agent that is told of a claim reads the block, and one that is not
    // told of the last meets its block before it makes another (ipam/decide/claim_choice.h).
    if (listing.kind == Kind::affinity && claims_may_lag && !select.label_selector.empty()) {
      part.asked.resource_version = kAsRemembered;
    }
  }
  return parts;
}

Result<Objects::Together> Objects::read(const Wanted& wanted, Deadline deadline) {
  Together together;
  std::vector<Request> requests;
  std::vector<std::size_t> asked;
  together.records.resize(wanted.records.size());
  for (std::size_t i = 0; i < wanted.records.size(); ++i) {
    const Key& key = wanted.records[i];
    if (!keeps(key.kind)) continue;
    TRY(const ObjectMapping* mapping, mapping_of(key.kind));
    auto path = mapping->path_of(key);
    if (path) {
      requests.push_back(Request{Request::Method::get, *std::move(path), {}});
      asked.push_back(i);
      continue;
    }
    // A handle that can have no object, because of its name, is in none: nobody can hold anything by it.
    if (key.kind != Kind::handle) return fail(path.error());
  }
  std::vector<Part> parts;
  const auto ask = [&](Result<std::vector<Part>> some, std::vector<Record>* records,
                       std::vector<Key>* keys) -> Result<void> {
    if (!some) return fail(some.error());
    for (Part& part : *some) {
      part.records = records;
      part.keys = keys;
      requests.push_back(first_page(part.asked));
      parts.push_back(std::move(part));
    }
    return {};
  };
  for (const core::Listing& listing : wanted.lists) {
    TRY_VOID(ask(parts_of(listing, wanted.claims_may_lag, false), &together.lists[listing], nullptr));
  }
  for (const Keys& keys : wanted.keys) {
    TRY(auto some, parts_of(keys.listing, wanted.claims_may_lag, true));
    for (Part& part : some) {
      if (!keys.but_length) continue;
      const auto select = part.mapping->but_length(keys.listing.kind, *keys.but_length);
      if (!select) continue;
      part.asked.select = *select;
      part.asked.resource_version = kAsRemembered;
    }
    TRY_VOID(ask(std::move(some), nullptr, &together.keys[keys]));
  }
  if (wanted.beside) requests.push_back(*wanted.beside);

  auto answers = api_.call_all(requests, deadline);
  auto answer = answers.begin();
  for (const std::size_t i : asked) {
    const Key& key = wanted.records[i];
    TRY(const ObjectMapping* mapping, mapping_of(key.kind));
    TRY(auto found, found_in(*mapping, key, *answer++));
    if (found && !found->is_deleted) together.records[i] = std::move(found->record);
  }
  for (const Part& part : parts) {
    const std::size_t records = part.records != nullptr ? part.records->size() : 0;
    const std::size_t keys = part.keys != nullptr ? part.keys->size() : 0;
    const auto begin = [&] {
      if (part.records != nullptr) part.records->resize(records);
      if (part.keys != nullptr) part.keys->resize(keys);
    };
    TRY_VOID(read_part(
        part, std::move(*answer++), begin, [&] { return deadline; },
        [&](Record& record) -> Result<void> {
          if (part.keys != nullptr) part.keys->push_back(std::move(record.key));
          if (part.records != nullptr) part.records->push_back(std::move(record));
          return {};
        }));
  }
  for (auto& [listing, records] : together.lists) put_in_order(records, &Record::key);
  for (auto& [asked_for, keys] : together.keys) put_in_order(keys, std::identity());
  if (wanted.beside) together.beside = std::move(*answer);
  return together;
}

Result<void> Objects::for_each(const core::Listing& listing, std::size_t page_max,
                               const std::function<Deadline()>& until,
                               const std::function<Result<void>(Record&)>& take) {
  TRY(std::vector<Part> parts, parts_of(listing, false, false));
  // A later selection finds again what was labelled in between, and a list whose rest was lost begins anew. Hashes of
  // 128 bits have a third of the names' memory: 32 MB for half a million handles.
  std::set<net::U128> seen;
  for (Part& part : parts) {
    part.asked.page_objects = std::min(part.asked.page_objects, static_cast<std::int64_t>(page_max));
    TRY_VOID(read_part(
        part, {}, [] {}, until,
        [&](Record& record) -> Result<void> {
          const std::string& name = record.key.name;
          if (!seen.emplace(hash_of_name(name), std::hash<std::string>()(name)).second) return {};
          return take(record);
        }));
  }
  return {};
}

Result<void> Objects::read_part(const Part& part, std::optional<Answer> first, const std::function<void()>& begin,
                                const std::function<Deadline()>& until,
                                const std::function<Result<void>(Record&)>& take) {
  const core::Listing& listing = *part.listing;
  ListUse use;
  use.begin = begin;
  use.until = until;
  use.error_of = [&](const Answer& answer) { return error_of(answer, listing.kind, "list"); };
  use.take = [&](const wire::kube::ApiObject& object) -> Result<void> {
    Stored stored;
    if (part.asked.of.may_be_metadata) {
      stored.record.key = part.mapping->key_of_name(listing.kind, object.meta.name).value();
    } else {
      TRY(stored, part.mapping->decode(listing.kind, nullptr, object.value, object.meta));
    }
    if (stored.is_deleted || !stored.record.key.name.starts_with(listing.name_prefix)) return {};
    return take(stored.record);
  };
  TRY_VOID(read_list(api_, part.asked, use, std::move(first)));
  return {};
}

// ---------------------------------------------------------------- writing

Result<Revision> Objects::written(const ObjectMapping& mapping, const Write& put, const Answer& answer) {
  const Key& key = put.key;
  const auto object = wire::kube::decode_object(answer.body);
  if (!object) {
    // An answer to something else says nothing of what was sent.
    return fail(ErrorCode::unknown_outcome, "{} {} may or may not have been written: {}", core::name_of(key.kind),
                key.name, object.error().message);
  }
  remember(key, *object);
  if (wire::calico::has_crd(key.kind)) {
    // An admission webhook or policy may change anything on its way: who was told of an address must have it.
    TRY(const Stored stored, mapping.decode(key.kind, &key, object->value, object->meta));
    if (!stored.record.value || !is_kept(*put.value, *stored.record.value)) {
      return fail(ErrorCode::refused_by_configuration,
                  "{} {} was written, but what the API has kept is not what was sent: either its "
                  "CustomResourceDefinition is of a version that lacks a member (look at it, and upgrade "
                  "Calico's definitions), or an admission webhook or policy changes it (exempt {}.{})",
                  core::name_of(key.kind), key.name, mapping.resource_of(key.kind).resource,
                  mapping.resource_of(key.kind).group);
    }
  }
  return revision_of(object->meta.resource_version);
}

Result<std::optional<Request>> Objects::first_request(const Write& write, const WriteToken& token) const {
  const Key& key = write.key;
  const Revision revision = write.condition.revision;
  const bool is_new = write.condition.kind == Condition::Kind::absent && write.value;
  const bool is_known = is_new || write.condition.kind == Condition::Kind::revision;
  if (write.only_check || !keeps(key.kind) || !is_known) return std::optional<Request>();
  TRY(const ObjectMapping* mapping, mapping_of(key.kind));
  TRY_VOID(mapping->check_write(write));
  if (!is_new && revision.value == 0) return fail(conflict_on(key));  // no record has it
  TRY(std::string path, mapping->path_of(key));
  if (is_new) {
    TRY(path, wire::kube::collection_path(mapping->resource_of(key.kind)));
    return Request{Request::Method::post, std::move(path),
                   mapping->encode(key, *write.value, token, std::nullopt, clock_.now().wall)};
  }
  const Basis basis{uid_of(key), resource_version_of(revision)};
  if (write.value) {
    return Request{Request::Method::put, std::move(path),
                   mapping->encode(key, *write.value, token, basis, clock_.now().wall)};
  }
  return Request{Request::Method::delete_object, std::move(path),
                 wire::kube::encode_delete_options({basis.uid, basis.resource_version})};
}

std::optional<Result<Revision>> Objects::settled_by(const Write& write, const Answer& answer) {
  const Key& key = write.key;
  const bool is_change = write.condition.kind == Condition::Kind::revision;
  const auto is_refused = [&](ErrorCode code) {
    return answer.outcome == Outcome::refused && answer.error.code == code;
  };
  if (!is_change && is_refused(ErrorCode::already_exists)) return std::nullopt;
  if (is_change && (is_absent(answer) || is_refused(ErrorCode::conflict))) return fail(conflict_on(key));
  if (answer.outcome != Outcome::done) return fail(error_of(answer, key.kind, key.name));
  if (!write.value) return Revision(write.condition.revision.value + 1);
  const auto mapping = mapping_of(key.kind);
  return mapping ? written(**mapping, write, answer) : fail(mapping.error());
}

Result<Revision> Objects::write(const Write& write, const WriteToken& token, Deadline deadline) {
  TRY(const auto request, first_request(write, token));
  CROFT_ASSERT(request);
  int absences = 0;
  for (int tries = 0; tries < kCreateTries; ++tries) {
    if (auto settled = settled_by(write, api_.call(*request, deadline))) return *std::move(settled);
    // An object that is there may be marked as deleted by Calico, and only wait for somebody to finish that. A failure
    // of it is left to the next caller.
    TRY(const auto found, look(write.key, deadline));
    if (found && !found->is_deleted) break;
    if (found) {
      const Write rest{write.key, std::nullopt, Condition::if_revision(found->record.revision)};
      TRY(const auto removal, first_request(rest, token));
      static_cast<void>(api_.call(*removal, deadline));
    } else if (++absences == 2) {
      break;  // it went just now; a second time, and it is the server that contradicts itself
    }
  }
  return fail(conflict_on(write.key));
}

namespace {

using wire::calico::ApiGroup;

constexpr std::string_view kPauseAnnotation = "ipam.croft.dev/pause";
constexpr std::string_view kInformation = "ClusterInformation default";

/// In the group that is used here, or in the newer one.
[[nodiscard]] wire::kube::ApiResource informations(const Objects& objects, bool of_newer_group = false) {
  const auto newer = wire::calico::crd_kind_of(Kind::block, ApiGroup::v3);
  wire::kube::ApiResource resource{newer.group, newer.version, {}};
  if (!of_newer_group) resource = objects.mapping_of(Kind::block).value()->resource_of(Kind::block);
  resource.resource = "clusterinformations";
  return resource;
}

[[nodiscard]] std::string path_of(const wire::kube::ApiResource& resource) {
  return wire::kube::object_path(resource, {}, "default").value();
}

/// There is no such object, or the kind is not served.
[[nodiscard]] bool is_not_found(const Answer& answer) { return is_absent(answer) || is_unknown(answer); }

/// The object's statement; without one, writes are open to all.
struct Said {
  bool is_ready = true;
  std::optional<core::Pause> pause;
  std::string resource_version;  ///< empty: there is no object
};

[[nodiscard]] Result<Said> said_in(const Answer& answer) {
  if (is_not_found(answer)) return Said{};
  if (answer.outcome != Answer::Outcome::done) return fail(answer.error.in(kInformation));
  const auto object = wire::kube::decode_object(answer.body);
  if (!object) return fail(ErrorCode::unavailable, object.error().in(kInformation).message);
  Said said;
  said.resource_version = object->meta.resource_version;
  const auto ready = member_of(member_of(object->value, "spec"), "datastoreReady");
  said.is_ready = !(ready && ready->kind() == wire::JsonKind::boolean && !ready->boolean());
  const auto annotations = member_of(member_of(object->value, "metadata"), "annotations");
  if (const auto text = member_of(annotations, kPauseAnnotation)) {
    auto pause = wire::decode_pause(text->text());
    if (!pause) return fail(pause.error().in(fmt::format("{}, {}", kInformation, kPauseAnnotation)));
    said.pause = *std::move(pause);
  }
  return said;
}

[[nodiscard]] Result<Said> look(Objects& objects, Deadline deadline) {
  return said_in(objects.api().get(path_of(informations(objects)), deadline));
}

[[nodiscard]] Result<void> note_newer(CalicoReadiness& readiness, const Answer& answer) {
  const bool is_there = answer.outcome == Answer::Outcome::done;
  if (!is_there && !is_not_found(answer) && !lacks_right(answer)) return fail(answer.error.in(kInformation));
  const std::lock_guard lock(readiness.mutex);
  // A moment later the older one may be there again.
  const auto absent_at = std::exchange(readiness.absent_at, std::nullopt);
  if (!is_there) {
    if (absent_at) readiness.ready_at = absent_at;
    return {};
  }
  return fail(
      ErrorCode::unavailable,
      "Calico's ClusterInformation default is gone from crd.projectcalico.org/v1 and is there in "
      "projectcalico.org/v3, as when the older group is deleted after a migration: nothing is written until its "
      "other kinds are gone too. Where both groups are to stay, make one in crd.projectcalico.org/v1");
}

}  // namespace

Result<ApiGroup> discover_calico_group(Api& api, Deadline deadline) {
  const Answer answer = api.get("/apis", deadline);
  // An account that may not ask takes what most clusters have. An answer that is not the API's must not choose the
  // register, nor must a server that has no time.
  if (lacks_right(answer) || is_not_found(answer)) return ApiGroup::crd_v1;
  if (answer.outcome != Answer::Outcome::done) return fail(answer.error);
  const auto document = wire::parse_json(answer.body, {.bytes_max = wire::kube::kApiAnswerBytesMax});
  const auto groups = document ? member_of(document->root(), "groups") : std::nullopt;
  if (!groups || groups->kind() != wire::JsonKind::array) {
    return fail(ErrorCode::unavailable,
                "what was answered as the API's groups (GET /apis) is none, so that nobody knows which of Calico's "
                "groups has the register: look at what answers for the API server (a proxy or cache before it)");
  }
  bool has_v3 = false, has_v1 = false;
  for (auto group = groups->first_child(); group; group = group->next_sibling()) {
    const auto name = member_of(group, "name");
    has_v3 |= name && name->text() == "projectcalico.org";
    has_v1 |= name && name->text() == "crd.projectcalico.org";
  }
  return has_v3 && !has_v1 ? ApiGroup::v3 : ApiGroup::crd_v1;
}

Result<bool> may_read_croft_kinds(Api& api, const OnOwnDenied& denied, Deadline deadline) {
  TRY(const std::string path, wire::kube::collection_path(wire::kube::croft_kind_of(Kind::pool_set)->resource()));
  wire::kube::ApiListQuery query;
  query.limit = 1;
  std::vector<Request> requests(2);
  requests[0].path = fmt::format("/apis/{}/{}", wire::kube::kOwnGroup, wire::kube::kOwnVersion);
  requests[1].path = wire::kube::list_path(path, query);
  const auto answers = api.call_all(requests, deadline);
  if (answers[0].outcome == Answer::Outcome::not_done) return fail(answers[0].error);
  if (is_not_found(answers[0])) return false;
  if (!lacks_right(answers[1])) return true;  // what else is wrong with them the first read says
  denied(answers[1].error);
  return false;
}

std::optional<ReadinessQuestion> readiness_question(const Objects& objects, CalicoReadiness& readiness,
                                                    std::chrono::nanoseconds age_max) {
  const std::chrono::nanoseconds now = objects.clock().now().since_boot;
  ReadinessQuestion question;
  {
    const std::lock_guard lock(readiness.mutex);
    if (readiness.is_filling) return {};
    if (readiness.ready_at && now - *readiness.ready_at < age_max) return {};
    // The older group's answer counts for as long as it would have counted had it said more.
    question.of_newer_group = readiness.absent_at && now - *readiness.absent_at < kReadyAskedAfter;
  }
  question.request.path = path_of(informations(objects, question.of_newer_group));
  return question;
}

Result<void> take_readiness(const Objects& objects, CalicoReadiness& readiness, const ReadinessQuestion& asked,
                            const Answer& answer) {
  if (asked.of_newer_group) return note_newer(readiness, answer);
  const auto resource = informations(objects);
  Said said;
  // A program that may not read it is told so by its first write.
  if (!lacks_right(answer)) {
    TRY(said, said_in(answer));
  }
  const std::chrono::nanoseconds now = objects.clock().now().since_boot;
  const std::lock_guard lock(readiness.mutex);
  readiness.absent_at.reset();
  readiness.ready_at.reset();
  if (said.pause) return fail(paused(*said.pause));
  if (!said.is_ready) {
    return fail(ErrorCode::unavailable,
                "Calico's ClusterInformation default says datastoreReady: false, as while Calico is upgraded or its "
                "data is moved; nothing is written until that is over. A migration to projectcalico.org/v3 leaves the "
                "older group so for good: name the new one then (CALICO_API_GROUP, or ?group=projectcalico.org/v3 in "
                "the store's URL)");
  }
  const bool is_older = resource.group == wire::calico::crd_kind_of(Kind::block, ApiGroup::crd_v1).group;
  (is_older && is_not_found(answer) ? readiness.absent_at : readiness.ready_at) = now;
  return {};
}

Result<void> check_calico_is_ready(Objects& objects, CalicoReadiness& readiness, Deadline deadline) {
  bool asked_newer = false;
  while (!asked_newer) {
    const auto question = readiness_question(objects, readiness, kReadyFor);
    if (!question) return {};
    TRY_VOID(take_readiness(objects, readiness, *question, objects.api().call(question->request, deadline)));
    asked_newer = question->of_newer_group;
    const std::lock_guard lock(readiness.mutex);
    if (!readiness.absent_at) return {};
  }
  return {};
}

Result<std::optional<StoredPause>> read_pause(Objects& objects, Deadline deadline) {
  TRY(Said said, look(objects, deadline));
  if (!said.pause) return std::optional<StoredPause>();
  TRY(const Revision revision, revision_of(said.resource_version));
  return std::optional(StoredPause{*std::move(said.pause), revision.value});
}

Result<void> change_pause(Objects& objects, const std::optional<StoredPause>& there,
                          const std::optional<core::Pause>& next, Deadline deadline) {
  TRY(const Said said, look(objects, deadline));
  const bool is_new = said.resource_version.empty();
  TRY(const Revision now, is_new ? Result<Revision>(Revision()) : revision_of(said.resource_version));
  const bool is_as_said = there ? said.pause && now.value == there->revision : !said.pause;
  if (!is_as_said) {
    return fail(ErrorCode::conflict, "the register's pause was changed by somebody else");
  }
  if (!there && !said.is_ready) {
    return fail(
        ErrorCode::unavailable,
        "Calico's ClusterInformation default says datastoreReady: false: somebody is upgrading Calico or moving "
        "its data; try again when that is over");
  }
  const auto resource = informations(objects);
  wire::JsonWriter text(wire::JsonWriter::Layout::compact);
  next ? text.text(wire::encode_pause(*next)) : text.null();
  Request request;
  request.method = is_new ? Request::Method::post : Request::Method::patch;
  if (!is_new) request.content_type = "application/merge-patch+json";
  TRY(request.path, is_new ? wire::kube::collection_path(resource) : path_of(resource));
  request.body = fmt::format(
      R"({{"apiVersion":"{}","kind":"ClusterInformation","metadata":{{"name":"default",{}"annotations":{{"{}":{}}}}},)"
      R"("spec":{{"datastoreReady":{}}}}})",
      resource.api_version(), is_new ? std::string() : fmt::format(R"("resourceVersion":"{}",)", said.resource_version),
      kPauseAnnotation, std::move(text).take(), !next);
  const Answer answer = objects.api().call(request, deadline);
  if (answer.outcome == Answer::Outcome::done) return {};
  Error error = answer.error.in(kInformation);
  if (error.code == ErrorCode::not_found) {
    return fail(
        ErrorCode::refused_by_configuration,
        error.message +
            ": the API does not know Calico's kinds; kubectl apply -f deploy/kubernetes/crds-calico.yaml makes them");
  }
  if (error.code == ErrorCode::already_exists) error.code = ErrorCode::conflict;
  return fail(std::move(error));
}

}  // namespace croft::store::kube
