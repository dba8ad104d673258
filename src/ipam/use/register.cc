#include "ipam/use/register.h"

#include "base/assert.h"

namespace croft::engine {
namespace {

bool is_damage(const Error& error) {
  return error.code == ErrorCode::corrupt || error.code == ErrorCode::newer_version;
}

class RegisterReader {
 public:
  RegisterReader(const Context& context, const MayLack& may_lack)
      : store_(context.store),
        deadline_(Deadline::after(context.clock.now(), context.time_limit)),
        may_lack_(may_lack) {
    result_.snapshot.set_foreign_writers(store_.capabilities().foreign_writers);
  }

  [[nodiscard]] Result<Register> read(const core::Missing& wanted) {
    auto answer = store_.read(wanted, deadline_);
    if (answer) {
      take(wanted, *std::move(answer));
      return std::move(result_);
    }
    const bool is_refused = answer.error().code == ErrorCode::permission_denied && !may_lack_.empty();
    if (!is_damage(answer.error()) && !is_refused) return fail(answer.error());
    for (const core::Listing& listing : wanted.lists) {
      const auto read = read_list(listing);
      if (read) continue;
      TRY_VOID(pass_over(listing.kind, read.error()));
      result_.snapshot.set_list(listing, {});
    }
    for (const core::Key& key : wanted.records) {
      const auto record = read_one(key);
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

  /// What this account may not read, and can be done without.
  [[nodiscard]] Result<void> pass_over(core::Kind kind, const Error& error) {
    if (error.code != ErrorCode::permission_denied || !may_lack_.contains(kind)) return fail(error);
    result_.unreadable.push_back({{kind, ""}, error});
    return {};
  }

  void remember(const core::Key& key, const std::optional<store::Record>& record) {
    if (!record) return result_.snapshot.set(key, std::nullopt);
    if (!record->value) {
      result_.unreadable.push_back({key, record->value.error()});
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

  /// Nothing also for one that is damaged; that is noted.
  [[nodiscard]] Result<std::optional<store::Record>> read_one(const core::Key& key) {
    auto record = store_.get(key, deadline_);
    if (record) return *std::move(record);
    if (!is_damage(record.error())) return fail(record.error());
    result_.unreadable.push_back({key, record.error()});
    return std::optional<store::Record>();
  }

  [[nodiscard]] Result<void> read_list(const core::Listing& listing) {
    std::vector<store::Record> records;
    store::ListRequest request{listing.kind, listing.name_prefix, "", kPage};
    for (bool more = true; more;) {
      auto page = store_.list(request, deadline_);
      if (page) {
        more = page->more && !page->records.empty();
        if (more) request.after = page->records.back().key.name;
        std::move(page->records.begin(), page->records.end(), std::back_inserter(records));
      } else if (is_damage(page.error())) {
        TRY(more, read_singly(request, records));
      } else {
        return fail(page.error());
      }
    }
    remember(listing, records);
    return {};
  }

  /// One page record by record; true when there are more.
  [[nodiscard]] Result<bool> read_singly(store::ListRequest& request, std::vector<store::Record>& records) {
    auto keys = store_.list_keys(request, deadline_);
    if (!keys && is_damage(keys.error())) {
      result_.unreadable.push_back({{request.kind, ""}, keys.error()});
      return false;
    }
    if (!keys) return fail(keys.error());
    for (const core::Key& key : keys->keys) {
      TRY(auto record, read_one(key));
      if (record) records.push_back(*std::move(record));
    }
    if (keys->keys.empty()) return false;
    request.after = keys->keys.back().name;
    return keys->more;
  }

  static constexpr std::size_t kPage = 100;

  store::Store& store_;
  const Deadline deadline_;
  const MayLack& may_lack_;
  Register result_;
};

}  // namespace

Result<Register> read_register(const Context& context, const core::Missing& wanted, const MayLack& may_lack) {
  CROFT_ASSERT(wanted.keys.empty() && wanted.free_blocks.empty());
  return RegisterReader(context, may_lack).read(wanted);
}

}  // namespace croft::engine
