#include "store/kube/objects.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"

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

/// The condition does not hold, as far as the API can tell.
[[nodiscard]] bool is_conflict(const Answer& answer) {
  return answer.outcome == Outcome::refused && answer.error.code == ErrorCode::conflict;
}
[[nodiscard]] bool is_there_already(const Answer& answer) {
  return answer.outcome == Outcome::refused && answer.error.code == ErrorCode::already_exists;
}

[[nodiscard]] Request request_of(Request::Method method, std::string path, std::string body = {}) {
  Request request;
  request.method = method;
  request.path = std::move(path);
  request.body = std::move(body);
  return request;
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

Error conflict_on(const Key& key) {
  return {ErrorCode::conflict,
          fmt::format("{} {} was changed by somebody else; read again", name_of(key.kind), key.name),
          {}};
}

Objects::Objects(Api& api, std::vector<std::unique_ptr<Form>> forms, const Clock& clock)
    : api_(api),
      forms_(std::move(forms)),
      keeps_own_(std::ranges::any_of(forms_, [](const auto& form) { return form->has(Kind::pool_set); })),
      clock_(clock) {}

bool Objects::keeps(Kind kind) const {
  if (kind == Kind::block_beside || core::is_hint(kind)) return false;
  if (kind == Kind::range_allocation || kind == Kind::foreign_service) return false;
  return keeps_own_ || wire::kube::own_kind_of(kind) == nullptr;
}

Result<const Form*> Objects::form_of(Kind kind) const {
  for (const auto& form : forms_) {
    if (form->has(kind)) return form.get();
  }
  return fail(ErrorCode::invalid_argument,
              fmt::format("{} records are not kept in a Kubernetes API", core::name_of(kind)));
}

Error Objects::error_of(const Answer& answer, Kind kind, std::string_view name) const {
  const auto form = form_of(kind);
  const auto resource = form ? (*form)->resource_of(kind) : wire::kube::ApiResource{};
  if (is_unknown(answer)) {
    return {ErrorCode::refused_by_configuration,
            fmt::format("the Kubernetes API has no {}.{} of version {}: their CustomResourceDefinition is missing, or "
                        "not served; install it (docs/runbooks/kubernetes-crds.md)",
                        resource.resource, resource.group, resource.version),
            {}};
  }
  Error error = Error(answer.error).in(fmt::format("{} {}", core::name_of(kind), name));
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
  TRY(const Form* form, form_of(kind));
  ListAsked asked{.collection = {}, .of = form->list_of(kind), .page_objects = 1};
  TRY(asked.collection, wire::kube::collection_path(form->resource_of(kind)));
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

Result<std::optional<Stored>> Objects::found_in(const Form& form, const Key& key, const Answer& answer) {
  const bool is_none = is_absent(answer) || (is_unknown(answer) && form.about(key.kind).may_be_unknown);
  if (is_none) return std::optional<Stored>();
  if (answer.outcome != Outcome::done) return fail(error_of(answer, key.kind, key.name));
  TRY(auto object, wire::kube::decode_object(answer.body));
  TRY(Stored stored, form.decode(key.kind, &key, object.value, object.meta));
  remember(key, object);
  return std::optional(std::move(stored));
}

Result<std::optional<Stored>> Objects::look(const Key& key, Deadline deadline) {
  TRY(const Form* form, form_of(key.kind));
  TRY(std::string path, form->path_of(key));
  return found_in(*form, key, api_.call(request_of(Request::Method::get, std::move(path)), deadline));
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
  TRY(const Form* form, form_of(listing.kind));
  const FormKind about = form->about(listing.kind);
  ListAsked asked{.collection = {}, .of = form->list_of(listing.kind), .may_be_unknown = about.may_be_unknown};
  TRY(asked.collection, wire::kube::collection_path(about.resource));
  asked.of.may_be_metadata = only_names && form->key_of_name(listing.kind, {});
  for (const wire::kube::ApiSelection& select : form->selections(listing)) {
    Part& part = parts.emplace_back(Part{&listing, form, asked});
    part.asked.select = select;
    // A node's own claims are looked at by each ADD. A server that has to ask its etcd goes through the affinities of
    // the whole cluster; its memory is as good. An agent that is told of a claim reads the block, and one that is not
    // told of the last meets its block before it makes another (ipam/decide/claim.h).
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
    TRY(const Form* form, form_of(key.kind));
    auto path = form->path_of(key);
    if (path) {
      requests.push_back(request_of(Request::Method::get, *std::move(path)));
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
  for (const core::Listing& listing : wanted.keys) {
    TRY_VOID(ask(parts_of(listing, wanted.claims_may_lag, true), nullptr, &together.keys[listing]));
  }
  for (const OtherLengths& others : wanted.other_lengths) {
    TRY(auto some, parts_of(others.listing, false, true));
    for (Part& part : some) {
      const auto select = part.form->but_length(others.listing.kind, others.length);
      if (!select) continue;
      part.asked.select = *select;
      part.asked.resource_version = kAsRemembered;
    }
    TRY_VOID(ask(std::move(some), nullptr, &together.other_lengths[others]));
  }
  if (wanted.beside) requests.push_back(*wanted.beside);

  auto answers = api_.call_all(requests, deadline);
  auto answer = answers.begin();
  for (const std::size_t i : asked) {
    const Key& key = wanted.records[i];
    TRY(const Form* form, form_of(key.kind));
    TRY(auto found, found_in(*form, key, *answer++));
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
  for (auto& [listing, keys] : together.keys) put_in_order(keys, std::identity());
  for (auto& [others, keys] : together.other_lengths) put_in_order(keys, std::identity());
  if (wanted.beside) together.beside = std::move(*answer);
  return together;
}

Result<void> Objects::for_each(const core::Listing& listing, std::size_t page_max,
                               const std::function<Deadline()>& until,
                               const std::function<Result<void>(Record&)>& take) {
  TRY(std::vector<Part> parts, parts_of(listing, false, false));
  // An object that a later selection finds again was labelled in between.
  std::set<std::string> seen;
  for (Part& part : parts) {
    part.asked.page_objects = std::min(part.asked.page_objects, static_cast<std::int64_t>(page_max));
    TRY_VOID(read_part(
        part, {}, [] {}, until,
        [&](Record& record) -> Result<void> {
          if (parts.size() > 1 && !seen.insert(record.key.name).second) return {};
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
      stored.record.key = part.form->key_of_name(listing.kind, object.meta.name).value();
    } else {
      TRY(stored, part.form->decode(listing.kind, nullptr, object.value, object.meta));
    }
    if (stored.is_deleted || !stored.record.key.name.starts_with(listing.name_prefix)) return {};
    return take(stored.record);
  };
  TRY_VOID(read_list(api_, part.asked, use, std::move(first)));
  return {};
}

// ---------------------------------------------------------------- writing

Result<Revision> Objects::written(const Form& form, const Write& put, const Answer& answer) {
  const Key& key = put.key;
  const auto object = wire::kube::decode_object(answer.body);
  if (!object) {
    // An answer to something else says nothing of what was sent.
    return fail(ErrorCode::unknown_outcome, fmt::format("{} {} may or may not have been written: {}",
                                                        core::name_of(key.kind), key.name, object.error().message));
  }
  remember(key, *object);
  if (wire::calico::has_crd(key.kind)) {
    // An admission webhook or policy may change anything on its way: who was told of an address must have it.
    TRY(const Stored stored, form.decode(key.kind, &key, object->value, object->meta));
    if (!stored.record.value || !is_kept(*put.value, *stored.record.value)) {
      return fail(ErrorCode::refused_by_configuration,
                  fmt::format("{} {} was written, but what the API has kept is not what was sent: either its "
                              "CustomResourceDefinition is of a version that lacks a member (look at it, and upgrade "
                              "Calico's definitions), or an admission webhook or policy changes it (exempt {}.{})",
                              core::name_of(key.kind), key.name, form.resource_of(key.kind).resource,
                              form.resource_of(key.kind).group));
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
  TRY(const Form* form, form_of(key.kind));
  TRY_VOID(form->check_write(write));
  if (!is_new && revision.value == 0) return fail(conflict_on(key));  // no record has it
  TRY(std::string path, form->path_of(key));
  if (is_new) {
    TRY(path, wire::kube::collection_path(form->resource_of(key.kind)));
    return request_of(Request::Method::post, std::move(path),
                      form->encode(key, *write.value, token, std::nullopt, clock_.now().wall));
  }
  const Basis basis{uid_of(key), resource_version_of(revision)};
  if (write.value) {
    return request_of(Request::Method::put, std::move(path),
                      form->encode(key, *write.value, token, basis, clock_.now().wall));
  }
  return request_of(Request::Method::delete_object, std::move(path),
                    wire::kube::encode_delete_options({basis.uid, basis.resource_version}));
}

std::optional<Result<Revision>> Objects::settled_by(const Write& write, const Answer& answer) {
  const Key& key = write.key;
  const bool is_change = write.condition.kind == Condition::Kind::revision;
  if (!is_change && is_there_already(answer)) return std::nullopt;
  if (is_change && (is_absent(answer) || is_conflict(answer))) return fail(conflict_on(key));
  if (answer.outcome != Outcome::done) return fail(error_of(answer, key.kind, key.name));
  if (!write.value) return Revision(write.condition.revision.value + 1);
  const auto form = form_of(key.kind);
  return form ? written(**form, write, answer) : fail(form.error());
}

Result<Revision> Objects::write(const Write& write, const WriteToken& token, Deadline deadline) {
  TRY(const auto request, first_request(write, token));
  CROFT_ASSERT(request);
  int absences = 0;
  for (int tries = 0; tries < kCreateTries; ++tries) {
    if (auto settled = settled_by(write, api_.call(*request, deadline))) return *std::move(settled);
    // An object that is there may be marked as deleted, and only wait for somebody to finish that.
    TRY(const auto found, look(write.key, deadline));
    if (found && !found->is_deleted) break;
    if (found) {
      finish_deletion(write.key, found->basis, deadline);
    } else if (++absences == 2) {
      break;  // it went just now; a second time, and it is the server that contradicts itself
    }
  }
  return fail(conflict_on(write.key));
}

void Objects::finish_deletion(const Key& key, const Basis& basis, Deadline deadline) {
  const auto form = form_of(key.kind);
  auto path = form ? (*form)->path_of(key) : Result<std::string>(fail(form.error()));
  if (!path) return;
  static_cast<void>(api_.call(request_of(Request::Method::delete_object, *std::move(path),
                                         wire::kube::encode_delete_options({basis.uid, basis.resource_version})),
                              deadline));
}

}  // namespace croft::store::kube
