#include "ipam/use/audit.h"

#include <algorithm>
#include <utility>

#include "ipam/use/transact.h"

namespace croft::engine {

namespace {

/// The records read for a look at the register that decides nothing.
struct Register {
  core::Snapshot snapshot;
  std::map<core::Key, store::Revision> revisions;
  std::vector<core::audit::Unreadable> unreadable;
};

/// The kinds of a register that may be left unread where this account may not read them, each as a whole
/// (core::audit::Unreadable without a name, permission_denied).
using MayLack = std::set<core::Kind>;

/// Reads everything wanted (records and lists with values), as of one moment where the store can give so much at once
/// and all of it may be read. Errors: those of the store, but permission_denied of what it may lack.
class RegisterReader {
 public:
  RegisterReader(const Context& context, const MayLack& may_lack)
      : store_(context.store),
        deadline_(Deadline::after(context.clock.now(), context.time_limit)),
        may_lack_(may_lack) {
    result_.snapshot.foreign_writers = store_.capabilities().foreign_writers;
  }

  [[nodiscard]] Result<Register> read(const core::Missing& wanted) {
    auto answer = store_.read(wanted, deadline_);
    if (answer) {
      take(wanted, *std::move(answer));
      return std::move(result_);
    }
    // Some of it may not be read, or all is more than one moment brings: an etcd of half a million addresses.
    const ErrorCode code = answer.error().code;
    if (code != ErrorCode::corrupt && code != ErrorCode::permission_denied) return fail(answer.error());
    for (const core::Listing& listing : wanted.lists) {
      if (const auto read = read_list(listing); !read) TRY_VOID(pass_over(listing.kind, read.error()));
    }
    for (const core::Key& key : wanted.records) {
      const auto record = store_.get(key, deadline_);
      if (!record) TRY_VOID(pass_over(key.kind, record.error()));
      remember(key, record ? *record : std::nullopt);
    }
    return std::move(result_);
  }

 private:
  void take(const core::Missing& wanted, store::ReadAnswer answer) {
    auto list = answer.lists.begin();
    for (const core::Listing& listing : wanted.lists) remember(listing, *list++);
    auto record = answer.records.begin();
    for (const core::Key& key : wanted.records) remember(key, *record++);
  }

  /// Passes over records that this account may not read, and that can be done without.
  [[nodiscard]] Result<void> pass_over(core::Kind kind, const Error& error) {
    if (error.code != ErrorCode::permission_denied || !may_lack_.contains(kind)) return fail(error);
    result_.unreadable.push_back({{kind, ""}, error});
    return {};
  }

  [[nodiscard]] Result<void> read_list(const core::Listing& listing) {
    result_.snapshot.set_list(listing, {});
    std::vector<store::Record> records;
    TRY_VOID(store_.for_each(
        {listing.kind, listing.name_prefix, kPage, false, true}, [&] { return deadline_; },
        [&](store::Record& record) -> Result<void> {
          records.push_back(std::move(record));
          return {};
        }));
    remember(listing, records);
    return {};
  }

  void remember(const core::Key& key, const std::optional<store::Record>& record) {
    if (!record) return result_.snapshot.set(key, std::nullopt);
    if (!record->value) {
      result_.unreadable.push_back({key, record->value.error(), record->calicos != nullptr});
      return result_.snapshot.set(key, std::nullopt);
    }
    result_.snapshot.set(key, *record->value);
    result_.revisions[key] = record->revision;
  }

  void remember(const core::Listing& listing, std::vector<store::Record>& records) {
    std::vector<core::KeyedValue> values;
    values.reserve(records.size());
    for (store::Record& record : records) {
      remember(record.key, record);
      if (record.value) values.emplace_back(record.key, *std::move(record.value));
    }
    result_.snapshot.set_list(listing, std::move(values));
  }

  static constexpr std::size_t kPage = 100;

  store::Store& store_;
  const Deadline deadline_;
  const MayLack& may_lack_;
  Register result_;
};

/// Notes the revisions of those that are empty.
[[nodiscard]] Result<void> add_handles(const Context& context, core::audit::RegisterAudit& look,
                                       std::map<core::Key, store::Revision>& empty,
                                       std::map<core::Kind, Error>& not_allowed) {
  const auto done = for_each_in_any_order(
      context, {core::Kind::handle, "", store::kListLimitMax},
      [&](store::Record& record) {
        if (!record.value) {
          look.add_unreadable({record.key, record.value.error()});
        } else if (look.add_handle(record.key, std::get<core::Handle>(*record.value))) {
          empty[record.key] = record.revision;
        }
      },
      OnDamage::visit);
  if (!done && done.error().code == ErrorCode::permission_denied) {
    look.add_unreadable({{core::Kind::handle, ""}, done.error()});
    not_allowed.emplace(core::Kind::handle, done.error());
    return {};
  }
  return done;
}

}  // namespace

Result<void> wait_for_first_answer(const Context& context) {
  const auto limit = std::min<std::chrono::nanoseconds>(context.time_limit, kFirstAnswerMax);
  const auto there = context.store.position(Deadline::after(context.clock.now(), limit));
  if (there) return {};
  const ErrorCode code = there.error().code;
  if (code != ErrorCode::deadline_exceeded && code != ErrorCode::unavailable) return {};
  return fail(there.error().in("the store does not answer"));
}

Result<AuditReport> audit(const Context& context, core::audit::Runtime runtime, const RunningPods& pods) {
  const store::Capabilities can = context.store.capabilities();
  const bool has_own_services = can.services != core::System::kubernetes && !can.lacks.contains(core::Kind::service);
  core::Missing everything = core::audit::wanted_by_audit(has_own_services);
  if (can.lacks.contains(core::Kind::service_cidr)) {
    std::erase_if(everything.records, [](const core::Key& key) { return key.kind == core::Kind::range_allocation; });
  }
  // Where what is read is of no common moment anyhow, handles are looked at one by one.
  const bool are_handles_apart = !can.atomic_commit;
  if (are_handles_apart) everything.lists.erase({core::Kind::handle, ""});
  MayLack may_lack;
  for (const core::Listing& listing : everything.lists) may_lack.insert(listing.kind);
  for (const core::Key& key : everything.records) may_lack.insert(key.kind);
  may_lack.erase(core::Kind::pool);
  may_lack.erase(core::Kind::block);
  auto found = RegisterReader(context, may_lack).read(everything);
  if (!found) return fail(std::move(found).error());
  std::map<core::Kind, Error> not_allowed;
  for (const core::audit::Unreadable& one : found->unreadable) {
    // A node's user of a cluster's etcd never may read the ranges of Services (docs/runbooks/etcd-roles.md).
    const bool is_told = one.error.code == ErrorCode::permission_denied && one.key.kind != core::Kind::range_allocation;
    if (is_told) not_allowed.emplace(one.key.kind, one.error);
  }
  if (pods != nullptr) {
    TRY(runtime.pods, pods());
  }
  const Instant now = context.clock.now();
  core::audit::RegisterAudit look(found->snapshot, found->unreadable, runtime, now);
  if (are_handles_apart) {
    TRY_VOID(add_handles(context, look, found->revisions, not_allowed));
  } else if (const auto* handles = found->snapshot.list({core::Kind::handle, ""}); handles != nullptr) {
    for (const auto& [key, value] : *handles) look.add_handle(key, std::get<core::Handle>(value));
  }
  AuditReport report{look.report(), {}, std::move(not_allowed)};
  for (const auto& [key, id] : report.empty_handles) {
    const auto revision = found->revisions.find(key);
    if (revision != found->revisions.end()) report.leaked_handles.push_back({id, revision->second});
  }
  return report;
}

}  // namespace croft::engine
