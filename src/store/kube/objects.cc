#include "store/kube/objects.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "base/net/echo.h"
#include "base/printable.h"
#include "register/stored_size.h"

namespace croft::store::kube {
namespace {

using wire::kube::ApiListPage;
using Outcome = Answer::Outcome;

/// The resourceVersion of a list that may be as old as what the server has in memory.
constexpr const char* kAsRemembered = "0";
constexpr int kCreateTries = 8;
constexpr std::size_t kSeenMax = 20'000;
/// Who holds an ordinal, as far as it decides whether another may: the handle, whether it cools, and the second owner
/// of a virtual machine's, by which the collector knows that it is one.
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

/// Whose content decides something that has been answered by then: who holds what, and what people set. Of the others
/// an API server that keeps less is no harm.
[[nodiscard]] bool must_be_kept(Kind kind) {
  switch (kind) {
    case Kind::ipam_config:
    case Kind::pool:
    case Kind::reservation:
    case Kind::block:
    case Kind::handle:
    case Kind::affinity:
      return true;
    default:
      return false;
  }
}

/// Whether what an API has kept says what was sent, as far as something is decided by it. Of what people set that is
/// all of it: an API server drops what its schema does not know. Older definitions of blocks lack members that decide
/// nothing.
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

[[nodiscard]] Request request_of(Request::Method method, std::string path, std::string body = {}) {
  Request request;
  request.method = method;
  request.path = std::move(path);
  request.body = std::move(body);
  return request;
}

}  // namespace

Error conflict_on(const Key& key) {
  return {ErrorCode::conflict,
          fmt::format("{} {} was changed by somebody else; read again", name_of(key.kind), key.name),
          {}};
}

Objects::Objects(Api& api, std::vector<std::unique_ptr<Form>> forms, const Clock& clock, bool finishes_deletions)
    : api_(api),
      forms_(std::move(forms)),
      keeps_own_(std::ranges::any_of(forms_, [](const auto& form) { return form->has(Kind::pool_set); })),
      finishes_deletions_(finishes_deletions),
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

Result<std::string> Objects::path_of(const Form& form, const Key& key) const {
  TRY(const std::string name, form.object_name(key));
  return wire::kube::object_path(form.resource_of(key.kind), form.object_namespace(key), name);
}

std::optional<Record> Objects::cannot_be(const Form& form, const Key& key) {
  if (key.kind != Kind::handle) return std::nullopt;
  const auto name = form.object_name(key);
  if (name || name.error().code != ErrorCode::invalid_argument) return std::nullopt;
  Record none;
  none.key = key;
  none.value = core::Damaged{key.kind, name.error(), {}};
  return none;
}

Result<std::string> Objects::path_of(const Form& form, Kind kind) const {
  return wire::kube::collection_path(form.resource_of(kind));
}

void Objects::remember(const Key& key, const wire::kube::ApiObject& object) {
  const auto revision = revision_of(object.meta.resource_version);
  const auto finalizers = member_of(member_of(object.value, "metadata"), "finalizers");
  const bool has_finalizers = object.meta.deletion_timestamp || (finalizers && finalizers->first_child());
  const std::lock_guard lock(mutex_);
  if (seen_.size() >= kSeenMax) seen_.clear();
  seen_.insert_or_assign(fmt::format("{} {}", static_cast<int>(key.kind), key.name),
                         Seen{object.meta.uid, revision.value_or(Revision()), has_finalizers});
}

namespace {

/// The condition does not hold, as far as the API can tell.
[[nodiscard]] bool is_conflict(const Answer& answer) {
  return answer.outcome == Outcome::refused && answer.error.code == ErrorCode::conflict;
}

}  // namespace

Result<Revision> Objects::position(Deadline deadline) {
  // Of either there are few.
  const Kind kind = keeps_own_ ? Kind::pool_set : Kind::pool;
  TRY(const Form* form, form_of(kind));
  TRY(const std::string path, path_of(*form, kind));
  wire::kube::ApiListQuery query;
  query.limit = 1;
  const Answer answer = api_.call(request_of(Request::Method::get, wire::kube::list_path(path, query)), deadline);
  if (answer.outcome != Outcome::done) return fail(error_of(answer, kind, "list"));
  TRY(const ApiListPage page, wire::kube::decode_list(answer.body, form->list_of(kind)));
  return revision_of(page.resource_version);
}

Objects::Seen Objects::seen(const Key& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = seen_.find(fmt::format("{} {}", static_cast<int>(key.kind), key.name));
  return found == seen_.end() ? Seen() : found->second;
}

// ---------------------------------------------------------------- reading

Result<std::optional<Objects::Found>> Objects::found_in(const Form& form, const Key& key, const Answer& answer) {
  if (is_absent(answer)) return std::optional<Found>();
  if (is_unknown(answer) && form.may_be_unknown(key.kind)) return std::optional<Found>();
  if (answer.outcome != Outcome::done) return fail(error_of(answer, key.kind, key.name));
  TRY(const wire::kube::ApiObjectOf of, form.object_of(key));
  TRY(auto object, wire::kube::decode_object(answer.body, of));
  TRY(Stored stored, form.decode(key.kind, &key, object.value, object.meta));
  remember(key, object);
  return std::optional(Found{std::move(stored), std::move(object)});
}

Result<std::optional<Objects::Found>> Objects::look(const Key& key, Deadline deadline) {
  if (!keeps(key.kind)) return std::optional<Found>();
  TRY(const Form* form, form_of(key.kind));
  TRY(std::string path, path_of(*form, key));
  return found_in(*form, key, api_.call(request_of(Request::Method::get, std::move(path)), deadline));
}

Result<std::optional<Record>> Objects::get(const Key& key, Deadline deadline) {
  if (keeps(key.kind)) {
    TRY(const Form* form, form_of(key.kind));
    if (auto none = cannot_be(*form, key)) return none;
  }
  TRY(auto found, look(key, deadline));
  if (!found) return std::optional<Record>();
  if (found->stored.is_deleted) {
    if (finishes_deletions_) finish_deletion(key, found->stored.basis, deadline);
    return std::optional<Record>();
  }
  return std::optional(std::move(found->stored.record));
}

Result<std::vector<Objects::Part>> Objects::parts_of(const core::Listing& listing, bool only_names,
                                                     bool claims_may_lag) const {
  std::vector<Part> parts;
  if (!keeps(listing.kind)) return parts;
  TRY(const Form* form, form_of(listing.kind));
  TRY(const std::string path, path_of(*form, listing.kind));
  ListAsked asked{path, form->list_of(listing.kind)};
  asked.of.may_be_metadata = only_names && form->tells_keys_by_name(listing.kind);
  asked.may_be_unknown = form->may_be_unknown(listing.kind);
  for (const wire::kube::ApiSelection& select : form->selections(listing)) {
    Part& part = parts.emplace_back(Part{&listing, form, asked});
    part.asked.select = select;
    // A node's own claims are looked at by each ADD. A server that has to ask its etcd goes through those of the whole
    // cluster; what it remembers is as good: who is told of a claim reads the block, and who is not told of the last
    // one meets its block before it makes another (ipam/decide/claim.h).
    if (listing.kind == Kind::affinity && claims_may_lag && !select.label_selector.empty()) {
      part.asked.resource_version = kAsRemembered;
    }
  }
  return parts;
}

Result<std::vector<Objects::Part>> Objects::parts_of(const OtherLengths& others) const {
  TRY(std::vector<Part> parts, parts_of(others.listing, true, false));
  if (parts.empty()) return parts;
  const Part whole = parts.front();
  const auto selections = whole.form->selections_but_length(others.listing, others.length);
  if (selections.empty()) return parts;
  parts.clear();
  for (const wire::kube::ApiSelection& select : selections) {
    Part& part = parts.emplace_back(whole);
    part.asked.select = select;
    part.asked.resource_version = kAsRemembered;
  }
  return parts;
}

Result<Objects::Together> Objects::read(const Wanted& wanted, Deadline deadline) {
  std::vector<Request> requests;
  for (const Key& key : wanted.records) {
    if (!keeps(key.kind)) continue;
    TRY(const Form* form, form_of(key.kind));
    if (cannot_be(*form, key)) continue;
    TRY(std::string path, path_of(*form, key));
    requests.push_back(request_of(Request::Method::get, std::move(path)));
  }
  std::vector<Part> lists, keys, other_lengths;
  const auto ask = [&](const std::set<core::Listing>& listings, bool only_names,
                       std::vector<Part>& parts) -> Result<void> {
    for (const core::Listing& listing : listings) {
      TRY(std::vector<Part> some, parts_of(listing, only_names, wanted.claims_may_lag));
      for (Part& part : some) {
        requests.push_back(first_page(part.asked));
        parts.push_back(std::move(part));
      }
    }
    return {};
  };
  TRY_VOID(ask(wanted.lists, false, lists));
  TRY_VOID(ask(wanted.keys, true, keys));
  for (const OtherLengths& others : wanted.other_lengths) {
    TRY(std::vector<Part> some, parts_of(others));
    for (Part& part : some) {
      part.other_lengths = &others;
      requests.push_back(first_page(part.asked));
      other_lengths.push_back(std::move(part));
    }
  }
  if (wanted.beside) requests.push_back(*wanted.beside);

  const auto answers = api_.call_all(requests, deadline);
  Together together;
  auto answer = answers.begin();
  for (const Key& key : wanted.records) {
    std::optional<Found> found;
    if (keeps(key.kind)) {
      TRY(const Form* form, form_of(key.kind));
      if (auto none = cannot_be(*form, key)) {
        together.records.push_back(std::move(none));
        continue;
      }
      TRY(found, found_in(*form, key, *answer++));
    }
    if (found && found->stored.is_deleted) {
      if (finishes_deletions_) finish_deletion(key, found->stored.basis, deadline);
      found.reset();
    }
    together.records.push_back(found ? std::optional(std::move(found->stored.record)) : std::nullopt);
  }
  for (const core::Listing& listing : wanted.lists) together.lists[listing];
  for (const core::Listing& listing : wanted.keys) together.keys[listing];
  for (const OtherLengths& others : wanted.other_lengths) together.other_lengths[others];
  for (Part& part : lists) {
    TRY_VOID(take_records(part, *answer++, deadline, together.lists[*part.listing]));
  }
  for (auto& [listing, records] : together.lists) put_in_order(records);
  for (Part& part : keys) {
    TRY(const std::vector<Key> seen, take_keys(part, *answer++, deadline));
    auto& all = together.keys[*part.listing];
    all.insert(all.end(), seen.begin(), seen.end());
  }
  for (auto& [listing, all] : together.keys) {
    std::ranges::sort(all);
    const auto again = std::ranges::unique(all);
    all.erase(again.begin(), again.end());
  }
  for (Part& part : other_lengths) {
    TRY(const std::vector<Key> seen, take_keys(part, *answer++, deadline));
    auto& all = together.other_lengths[*part.other_lengths];
    all.insert(all.end(), seen.begin(), seen.end());
  }
  for (auto& [asked, all] : together.other_lengths) std::ranges::sort(all);
  if (wanted.beside) together.beside = *answer++;
  return together;
}

Result<void> Objects::for_each(const core::Listing& listing, std::size_t page_max,
                               const std::function<Deadline()>& until,
                               const std::function<Result<void>(Record&)>& take) {
  TRY(std::vector<Part> parts, parts_of(listing, false, false));
  // What a selection after the first finds again was labelled in between.
  std::set<std::string> seen;
  for (Part& part : parts) {
    part.asked.page_objects = std::min(part.asked.page_objects, static_cast<std::int64_t>(page_max));
    ListUse use;
    use.begin = [] {};
    use.until = until;
    use.take = [&](const wire::kube::ApiObject& object) -> Result<void> {
      TRY(Stored stored, part.form->decode(listing.kind, nullptr, object.value, object.meta));
      if (stored.is_deleted || !stored.record.key.name.starts_with(listing.name_prefix)) return {};
      if (parts.size() > 1 && !seen.insert(stored.record.key.name).second) return {};
      return take(stored.record);
    };
    TRY_VOID(read_part(part, std::move(use), {}));
  }
  return {};
}

/// Ascending by name. Of one that two selections found the later look counts.
void Objects::put_in_order(std::vector<Record>& records) {
  const auto key_of = [](const Record& record) -> const Key& { return record.key; };
  std::ranges::stable_sort(records, {}, key_of);
  std::ranges::reverse(records);
  const auto again = std::ranges::unique(records, {}, key_of);
  records.erase(again.begin(), again.end());
  std::ranges::reverse(records);
}

Result<void> Objects::read_part(const Part& part, ListUse use, std::optional<Answer> first) {
  use.error_of = [&](const Answer& answer) { return error_of(answer, part.listing->kind, "list"); };
  TRY_VOID(read_list(api_, part.asked, use, std::move(first)));
  return {};
}

Result<void> Objects::take_records(const Part& part, std::optional<Answer> first, Deadline deadline,
                                   std::vector<Record>& records) {
  const std::size_t before = records.size();
  ListUse use;
  use.begin = [&] { records.resize(before); };
  use.until = [&] { return deadline; };
  use.take = [&](const wire::kube::ApiObject& object) -> Result<void> {
    TRY(Stored stored, part.form->decode(part.listing->kind, nullptr, object.value, object.meta));
    const bool is_in = !stored.is_deleted && stored.record.key.name.starts_with(part.listing->name_prefix);
    if (is_in) records.push_back(std::move(stored.record));
    return {};
  };
  return read_part(part, std::move(use), std::move(first));
}

Result<std::vector<Key>> Objects::take_keys(const Part& part, Answer first, Deadline deadline) {
  std::vector<Key> seen;
  const Kind kind = part.listing->kind;
  const bool by_name = part.asked.of.may_be_metadata;
  bool is_unclear = false;
  ListUse use;
  use.begin = [&] { seen.clear(); };
  use.until = [&] { return deadline; };
  use.take = [&](const wire::kube::ApiObject& object) -> Result<void> {
    std::optional<Key> key;
    if (by_name) {
      key = part.form->key_of_name(kind, object.meta.name);
      is_unclear = is_unclear || !key;
    } else {
      TRY(const Stored stored, part.form->decode(kind, nullptr, object.value, object.meta));
      if (!stored.is_deleted) key = stored.record.key;
    }
    if (key && key->name.starts_with(part.listing->name_prefix)) seen.push_back(*std::move(key));
    return {};
  };
  TRY_VOID(read_part(part, std::move(use), std::move(first)));
  if (!is_unclear) return seen;
  // Somebody made an object of a name that no record has: what it is, it says itself.
  Part whole = part;
  whole.asked.of.may_be_metadata = false;
  std::vector<Record> records;
  TRY_VOID(take_records(whole, {}, deadline, records));
  seen.clear();
  for (const Record& record : records) seen.push_back(record.key);
  return seen;
}

// ---------------------------------------------------------------- writing

Result<Revision> Objects::written(const Form& form, const Key& key, const Value* value, const Answer& answer) {
  const auto object = wire::kube::decode_object(answer.body);
  // It is written; only what the answer says of it is not understood.
  if (!object) return fail(Error(object.error()).in("written, but"));
  TRY(const wire::kube::ApiObjectOf of, form.object_of(key));
  if (const auto is_it = wire::kube::check_object(*object, of); !is_it) {
    // The answer to something else says nothing of what was sent.
    return fail(ErrorCode::unknown_outcome, fmt::format("{} {} may or may not have been written: {}",
                                                        core::name_of(key.kind), key.name, is_it.error().message));
  }
  remember(key, *object);
  if (value != nullptr && must_be_kept(key.kind)) {
    // An admission webhook or policy may change anything on its way: who was told of an address must have it.
    TRY(const Stored stored, form.decode(key.kind, &key, object->value, object->meta));
    if (!is_kept(*value, stored.record.value)) {
      return fail(ErrorCode::refused_by_configuration,
                  fmt::format("{} {} was written, but what the API has kept is not what was sent: either its "
                              "CustomResourceDefinition is of a version that lacks a member (look at it, and upgrade "
                              "Calico's definitions), or an admission webhook or policy changes it (exempt {}.{})",
                              core::name_of(key.kind), key.name, form.resource_of(key.kind).resource,
                              form.resource_of(key.kind).group));
    }
  }
  auto revision = revision_of(object->meta.resource_version);
  return revision;
}

Result<std::optional<Objects::Found>> Objects::look_whose(const Key& key, Deadline deadline) {
  auto found = look(key, deadline);
  if (found) return found;
  return fail(ErrorCode::unknown_outcome,
              fmt::format("{} {} is another than was read, and whether that is what was just written is not known: {}",
                          core::name_of(key.kind), key.name, found.error().message));
}

bool Objects::is_of(const Found& found, const Value* value, const WriteToken& token) {
  const Record& record = found.stored.record;
  if (token == WriteToken() || record.token != token) return false;
  // A foreign writer may have changed it since and kept the annotations.
  if (value == nullptr) return true;
  return must_be_kept(record.key.kind) ? is_kept(*value, record.value) : record.value.index() == value->index();
}

Result<Revision> Objects::done_as(const Found& found) { return found.stored.record.revision; }

Result<Revision> Objects::create(const Key& key, const Value& value, const WriteToken& token, Deadline deadline) {
  TRY(const Form* form, form_of(key.kind));
  TRY(const std::string path, path_of(*form, key.kind));
  TRY_VOID(form->object_name(key));
  const std::string body = form->encode(key, value, token, std::nullopt, clock_.now().wall);
  int absences = 0;
  for (int tries = 0; tries < kCreateTries; ++tries) {
    const Answer answer = api_.call(request_of(Request::Method::post, path, body), deadline);
    if (answer.outcome == Outcome::done) return written(*form, key, &value, answer);
    const bool is_there = answer.outcome == Outcome::refused && answer.error.code == ErrorCode::already_exists;
    if (!is_there) return fail(error_of(answer, key.kind, key.name));
    // What is there may be marked as deleted, and only wait for somebody to finish that.
    TRY(const auto found, look_whose(key, deadline));
    if (!found) {
      // It went just now. A second time, and it is the server that contradicts itself.
      if (++absences == 2) break;
      continue;
    }
    if (!found->stored.is_deleted) return is_of(*found, &value, token) ? done_as(*found) : fail(conflict_on(key));
    finish_deletion(key, found->stored.basis, deadline);
  }
  return fail(conflict_on(key));
}

Result<Request> Objects::update_of(const Key& key, const Value& value, Revision revision,
                                   const WriteToken& token) const {
  if (revision.value == 0) return fail(conflict_on(key));  // no record has it
  TRY(const Form* form, form_of(key.kind));
  TRY(std::string path, path_of(*form, key));
  const Seen known = seen(key);
  const Basis basis{known.uid, resource_version_of(revision)};
  return request_of(Request::Method::put, std::move(path), form->encode(key, value, token, basis, clock_.now().wall));
}

Result<Revision> Objects::updated(const Key& key, const Value& value, const WriteToken& token, const Answer& answer,
                                  Deadline deadline) {
  TRY(const Form* form, form_of(key.kind));
  if (answer.outcome == Outcome::done) {
    return written(*form, key, &value, answer);
  }
  if (is_absent(answer)) return fail(conflict_on(key));
  if (!is_conflict(answer)) return fail(error_of(answer, key.kind, key.name));
  TRY(const auto found, look_whose(key, deadline));
  const bool is_own = found && !found->stored.is_deleted && is_of(*found, &value, token);
  return is_own ? done_as(*found) : fail(conflict_on(key));
}

Result<Revision> Objects::update(const Key& key, const Value& value, Revision revision, const WriteToken& token,
                                 Deadline deadline) {
  TRY(const Request request, update_of(key, value, revision, token));
  return updated(key, value, token, api_.call(request, deadline), deadline);
}

Result<std::optional<Request>> Objects::removal_of(const Key& key, Revision revision) const {
  if (revision.value == 0) return fail(conflict_on(key));
  TRY(const Form* form, form_of(key.kind));
  TRY(std::string path, path_of(*form, key));
  // Nobody has changed it since, so what did not keep it then does not keep it now: it is gone at once.
  const Seen known = seen(key);
  const bool goes_at_once = known.revision == revision && !known.has_finalizers;
  if (!goes_at_once && form->marks_deleted(key.kind)) return std::optional<Request>();
  const wire::kube::ApiPreconditions only_if{known.uid, resource_version_of(revision)};
  return request_of(Request::Method::delete_object, std::move(path), wire::kube::encode_delete_options(only_if));
}

Result<Revision> Objects::removed(const Key& key, Revision revision, const Answer& answer) const {
  if (answer.outcome == Outcome::done) return Revision(revision.value + 1);
  // What is gone says nobody's token; who wanted it gone has what he wants (ipam/use/ordered_commit.cc).
  if (is_absent(answer) || is_conflict(answer)) return fail(conflict_on(key));
  return fail(error_of(answer, key.kind, key.name));
}

Result<std::optional<Request>> Objects::first_request(const Write& write, const WriteToken& token) const {
  if (!keeps(write.key.kind)) return std::optional<Request>();
  const bool is_new = write.condition.kind == Condition::Kind::absent && write.value;
  if (is_new) {
    TRY(const Form* form, form_of(write.key.kind));
    TRY(std::string path, path_of(*form, write.key.kind));
    TRY_VOID(form->object_name(write.key));
    return request_of(Request::Method::post, std::move(path),
                      form->encode(write.key, *write.value, token, std::nullopt, clock_.now().wall));
  }
  if (write.condition.kind != Condition::Kind::revision) return std::optional<Request>();
  if (!write.value) return removal_of(write.key, write.condition.revision);
  TRY(Request request, update_of(write.key, *write.value, write.condition.revision, token));
  return std::optional(std::move(request));
}

std::optional<Result<Revision>> Objects::settled_by(const Write& write, const WriteToken& token, const Answer& answer,
                                                    Deadline deadline) {
  if (write.condition.kind == Condition::Kind::revision) {
    return write.value ? updated(write.key, *write.value, token, answer, deadline)
                       : removed(write.key, write.condition.revision, answer);
  }
  const bool is_there = answer.outcome == Outcome::refused && answer.error.code == ErrorCode::already_exists;
  if (is_there) return std::nullopt;
  const auto form = form_of(write.key.kind);
  if (!form) return fail(form.error());
  if (answer.outcome == Outcome::done) return written(**form, write.key, &*write.value, answer);
  return fail(error_of(answer, write.key.kind, write.key.name));
}

Result<Revision> Objects::remove(const Key& key, Revision revision, const WriteToken& token, Deadline deadline) {
  TRY(const auto request, removal_of(key, revision));
  if (request) return removed(key, revision, api_.call(*request, deadline));
  TRY(const Form* form, form_of(key.kind));
  TRY(const std::string path, path_of(*form, key));
  // The mark decides; what follows only clears away.
  TRY(const auto found, look(key, deadline));
  if (!found || found->stored.is_deleted || found->stored.record.revision != revision) return fail(conflict_on(key));
  TRY(std::string body, form->marked_deleted(key.kind, found->object.value, token));
  const Answer answer = api_.call(request_of(Request::Method::put, path, std::move(body)), deadline);
  Revision marked;
  if (is_conflict(answer)) {
    TRY(const auto now, look_whose(key, deadline));
    if (!now || !now->stored.is_deleted || !is_of(*now, nullptr, token)) return fail(conflict_on(key));
    TRY(marked, done_as(*now));
  } else if (answer.outcome == Outcome::done) {
    TRY(marked, written(*form, key, nullptr, answer));
  } else {
    return fail(is_absent(answer) ? conflict_on(key) : error_of(answer, key.kind, key.name));
  }
  finish_deletion(key, {found->stored.basis.uid, resource_version_of(marked)}, deadline);
  return marked;
}

void Objects::finish_deletion(const Key& key, const Basis& basis, Deadline deadline) {
  const auto form = form_of(key.kind);
  const auto path = form ? path_of(**form, key) : Result<std::string>(fail(form.error()));
  if (!path) return;
  static_cast<void>(api_.call(request_of(Request::Method::delete_object, *path,
                                         wire::kube::encode_delete_options({basis.uid, basis.resource_version})),
                              deadline));
}

}  // namespace croft::store::kube
