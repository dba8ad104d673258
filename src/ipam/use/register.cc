#include "ipam/use/register.h"

#include "base/assert.h"

namespace croft::engine {
namespace {

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
    store::ListRequest request{listing.kind, listing.name_prefix, "", kPage};
    for (bool more = true; more;) {
      TRY(store::Page page, store_.list(request, deadline_));
      more = page.more && !page.records.empty();
      if (more) request.after = page.records.back().key.name;
      std::move(page.records.begin(), page.records.end(), std::back_inserter(records));
    }
    remember(listing, records);
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
