#include "store/sqlite/record_table.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include "base/texts.h"
#include "register/format/records.h"
#include "store/format/pause.h"
#include "store/free_block.h"
#include "store/sqlite/database.h"

namespace croft::store {
namespace {

constexpr const char* kGet = "SELECT revision, token, checksum, value FROM records WHERE kind=?1 AND name=?2";
constexpr const char* kPut =
    "INSERT INTO records(kind, name, revision, token, checksum, value) VALUES(?1, ?2, ?3, ?4, ?5, ?6) "
    "ON CONFLICT(kind, name) DO UPDATE SET revision=?3, token=?4, checksum=?5, value=?6";
constexpr const char* kRemove = "DELETE FROM records WHERE kind=?1 AND name=?2";
constexpr const char* kList =
    "SELECT name, revision, token, checksum, value FROM records WHERE kind=?1 AND name>=?2 AND name<?3 ORDER BY name "
    "LIMIT ?4";
constexpr const char* kListNames =
    "SELECT name FROM records WHERE kind=?1 AND name>=?2 AND name<?3 ORDER BY name LIMIT ?4";

std::string_view view_of(const WriteToken& token) {
  return {reinterpret_cast<const char*>(token.bytes.data()), token.bytes.size()};
}

/// The checksum of a record as it is stored; SQLite's numbers are signed.
std::int64_t row_checksum(std::uint8_t kind, std::string_view name, std::int64_t revision, std::string_view token,
                          std::string_view value) {
  Checksum sum;
  sum.add(std::uint64_t{kind});
  sum.add(name);
  sum.add(static_cast<std::uint64_t>(revision));
  sum.add(token);
  sum.add(value);
  return static_cast<std::int64_t>(sum.value());
}

Error error_of(const Database& database, const Key& key, std::string_view what) {
  return make_error(ErrorCode::corrupt, "{}: record {} {} has {}; restore the store from a backup", database.path(),
                    core::name_of(key.kind), key.name, what);
}

/// The value in the columns revision, token, checksum, value from `first_column` on.
[[nodiscard]] Result<Value> value_from(const Database& database, const Statement& row, const Key& key,
                                       int first_column) {
  const std::int64_t revision = row.number(first_column);
  const std::string_view token = row.bytes(first_column + 1);
  if (revision <= 0) return fail(error_of(database, key, "no revision"));
  if (token.size() != WriteToken().bytes.size()) return fail(error_of(database, key, "no write token"));
  const std::string_view bytes = row.bytes(first_column + 3);
  if (row.number(first_column + 2) != row_checksum(wire::number_of(key.kind), key.name, revision, token, bytes)) {
    return fail(error_of(database, key, "a wrong checksum"));
  }
  auto value = wire::decode_record(key, bytes);
  if (!value) return fail(value.error().in(database.path()));
  return value;
}

/// The record; what can't be understood is damaged. Its revision is that of the row, which conditions compare.
[[nodiscard]] Record record_from(const Database& database, const Statement& row, Key key, int first_column) {
  Record record;
  record.value = value_from(database, row, key, first_column);
  record.key = std::move(key);
  record.revision = database.told(row.number(first_column));
  const std::string_view token = row.bytes(first_column + 1);
  if (token.size() == record.token.bytes.size()) {
    std::transform(token.begin(), token.end(), record.token.bytes.begin(),
                   [](char c) { return static_cast<std::uint8_t>(c); });
  }
  return record;
}

/// Calls `add` for each row of a page; true when there are more rows.
template <class Add>
[[nodiscard]] Result<bool> for_page(Database& database, const ListRequest& request, const std::string& after, Add add) {
  // `after` with a zero byte at its end is the next name in bytewise order.
  const std::string from = after.empty() ? request.name_prefix : std::max(request.name_prefix, after + '\0');
  std::string to = request.name_prefix;
  while (!to.empty() && static_cast<unsigned char>(to.back()) == 0xff) to.pop_back();
  TRY(const auto rows, database.prepare(request.keys_only ? kListNames : kList));
  rows->bind(1, wire::number_of(request.kind)).bind_text(2, from);
  if (to.empty()) {
    rows->bind_blob(3, "");  // every text sorts before every blob
  } else {
    to.back() = static_cast<char>(static_cast<unsigned char>(to.back()) + 1);
    rows->bind_text(3, to);
  }
  rows->bind(4, static_cast<std::int64_t>(request.limit) + 1);
  for (std::size_t count = 0;; ++count) {
    TRY(const bool is_row, rows->step());
    if (!is_row) return false;
    if (count == request.limit) return true;
    add(*rows);
  }
}

/// The revision of a key and the size of its value; revision 0 when there is no record.
struct Present {
  Revision revision;
  std::int64_t bytes = 0;
};

[[nodiscard]] Result<Present> present(Database& database, const EncodedWrite& write) {
  TRY(const auto row, database.prepare("SELECT revision, length(value) FROM records WHERE kind=?1 AND name=?2"));
  row->bind(1, write.kind).bind_text(2, write.key->name);
  TRY(const bool found, row->step());
  if (!found) return Present{};
  return Present{database.told(row->number(0)), row->number(1)};
}

bool holds(const Condition& condition, const Present& present) {
  const bool is_there = present.revision.value != 0;
  if (condition.kind == Condition::Kind::absent) return !is_there;
  return condition.kind == Condition::Kind::any || (is_there && present.revision == condition.revision);
}

/// The bytes of a record besides its value, about: name, token, revision and the places of both in the index.
std::int64_t overhead_of(const Key& key) {
  constexpr std::int64_t kFixedBytes = 40;
  return kFixedBytes + 2 * std::ssize(key.name);
}

[[nodiscard]] Result<void> apply(Database& database, const EncodedWrite& write, std::string_view token,
                                 std::int64_t revision) {
  TRY(const auto statement, database.prepare(write.bytes ? kPut : kRemove));
  statement->bind(1, write.kind).bind_text(2, write.key->name);
  if (write.bytes) {
    statement->bind(3, revision).bind_blob(4, token).bind_blob(6, *write.bytes);
    statement->bind(
        5, row_checksum(static_cast<std::uint8_t>(write.kind), write.key->name, revision, token, *write.bytes));
  }
  TRY_VOID(statement->step());
  return {};
}

/// Forgets the changes up to the row `id`.
[[nodiscard]] Result<void> forget_up_to(Database& database, std::int64_t id) {
  TRY_VOID(database.run(
      "UPDATE counters SET value=max(value, ifnull((SELECT max(revision) FROM changes WHERE id<=?1), 0)) WHERE id=3",
      id));
  return database.run("DELETE FROM changes WHERE id<=?1", id);
}

[[nodiscard]] Result<void> note_change(Database& database, std::int64_t kind, std::string_view name,
                                       Revision revision) {
  {
    TRY(const auto statement, database.prepare("INSERT INTO changes(revision, kind, name) VALUES(?1, ?2, ?3)"));
    statement->bind(1, database.stored(revision)).bind(2, kind).bind_text(3, name);
    TRY_VOID(statement->step());
  }
  const std::int64_t id = database.last_row_id();
  if (id % kForgetStep != 0 || id <= kChangesMax) return {};
  return forget_up_to(database, id - kChangesMax);
}

/// Nothing for a kind that only a newer program knows: nobody here watches it.
std::optional<Key> key_from(std::int64_t kind, std::string_view name) {
  if (kind < 0 || kind > std::numeric_limits<std::uint8_t>::max()) return std::nullopt;
  const auto known = wire::kind_numbered(static_cast<std::uint8_t>(kind));
  return known ? std::optional(Key{*known, std::string(name)}) : std::nullopt;
}

struct ChangedKey {
  Key key;
  Revision revision;
};

/// The keys that are wanted and changed after the position, the last change first.
template <class IsWanted>
[[nodiscard]] Result<std::vector<ChangedKey>> keys_after(Database& database, Revision position, IsWanted is_wanted) {
  std::vector<ChangedKey> keys;
  std::set<Key> seen;
  TRY(const auto rows, database.prepare("SELECT revision, kind, name FROM changes ORDER BY id DESC"));
  for (;;) {
    TRY(const bool is_row, rows->step());
    if (!is_row) return keys;
    const Revision revision = database.told(rows->number(0));
    if (revision <= position) return keys;
    auto key = key_from(rows->number(1), rows->bytes(2));
    if (key && is_wanted(*key) && seen.insert(*key).second) keys.push_back({*std::move(key), revision});
  }
}

[[nodiscard]] Result<std::vector<Key>> read_keys(Database& database, const core::Listing& listing,
                                                 const std::string& after, std::size_t limit, bool& more) {
  std::vector<Key> keys;
  TRY(more, for_page(database, {listing.kind, listing.name_prefix, limit, true}, after, [&](const Statement& row) {
        keys.push_back({listing.kind, std::string(row.bytes(0))});
      }));
  return keys;
}

[[nodiscard]] Result<BlockKeys> look_at_blocks(Database& database, const std::optional<BlockPage>& page,
                                               std::span<const Key> single) {
  BlockKeys seen;
  if (page) {
    TRY(seen.page, read_keys(database, page->blocks, page->after, page->limit, seen.more));
  }
  for (const Key& key : single) {
    TRY(const auto record, read_record(database, key));
    if (record) seen.there.insert(key);
  }
  return seen;
}

}  // namespace

Result<std::optional<Record>> read_record(Database& database, const Key& key) {
  TRY(const auto row, database.prepare(kGet));
  row->bind(1, wire::number_of(key.kind)).bind_text(2, key.name);
  TRY(const bool found, row->step());
  if (!found) return std::optional<Record>();
  return std::optional(record_from(database, *row, key, 0));
}

const Key& pause_row() {
  static const Key kRow{Kind::pool, "pause"};  // of the kind only the name counts
  return kRow;
}

Result<std::optional<StoredPause>> read_pause(Database& database) {
  const std::string& name = pause_row().name;
  TRY(const auto row, database.prepare(kGet));
  row->bind(1, kPauseKind).bind_text(2, name);
  TRY(const bool found, row->step());
  if (!found) return std::optional<StoredPause>();
  const std::int64_t revision = row->number(0);
  const std::string_view token = row->bytes(1), bytes = row->bytes(3);
  if (revision <= 0 || row->number(2) != row_checksum(kPauseKind, name, revision, token, bytes)) {
    return fail(ErrorCode::corrupt, "{}: the pause has a wrong checksum; restore the store from a backup",
                database.path());
  }
  auto pause = wire::decode_pause(bytes);
  if (!pause) return fail(pause.error().in(database.path()));
  return std::optional(StoredPause{*std::move(pause), database.told(revision).value});
}

Result<Page> read_page(Database& database, const ListRequest& request, const std::string& after) {
  Page page;
  TRY(page.more, for_page(database, request, after, [&](const Statement& row) {
        Key key{request.kind, std::string(row.bytes(0))};
        page.records.push_back(request.keys_only ? Record{std::move(key), {}, {}, {}}
                                                 : record_from(database, row, std::move(key), 1));
      }));
  return page;
}

Result<ReadAnswer> read_all(Database& database, const core::Missing& wanted) {
  ReadAnswer answer;
  for (const Key& key : wanted.records) {
    TRY(auto record, read_record(database, key));
    answer.records.push_back(std::move(record));
  }
  // A page without end: a limit is for those who answer in several.
  constexpr std::size_t kAll = std::numeric_limits<std::int32_t>::max();
  for (const core::Listing& listing : wanted.lists) {
    TRY(Page page, read_page(database, {listing.kind, listing.name_prefix, kAll}, ""));
    answer.lists.push_back(std::move(page.records));
  }
  for (const core::Listing& listing : wanted.keys) {
    bool more = false;
    TRY(std::vector<Key> keys, read_keys(database, listing, "", kAll, more));
    answer.keys.push_back(std::make_shared<const std::vector<Key>>(std::move(keys)));
  }
  for (const core::FreeBlock& block : wanted.free_blocks) {
    const auto look = [&](const auto& page, auto single) { return look_at_blocks(database, page, single); };
    TRY(core::FoundBlock found, find_free_block(block, look));
    answer.free_blocks.push_back(std::move(found));
  }
  return answer;
}

Result<Effect> effect_of(Database& database, std::span<const EncodedWrite> writes) {
  Effect effect;
  for (const EncodedWrite& write : writes) {
    TRY(const Present now, present(database, write));
    if (!holds(write.condition, now)) {
      effect.failed_condition = write.key;
      return effect;
    }
    if (write.only_check) continue;
    const std::int64_t overhead = overhead_of(*write.key);
    if (write.bytes) effect.bytes_added += overhead + std::ssize(*write.bytes);
    if (now.revision.value != 0) effect.bytes_added -= overhead + now.bytes;
  }
  return effect;
}

Result<void> apply(Database& database, const PendingCommit& commit, Revision revision) {
  for (const EncodedWrite& write : commit.writes) {
    if (write.only_check) continue;
    TRY_VOID(apply(database, write, view_of(commit.token), database.stored(revision)));
    if (database.has_changed_rows()) TRY_VOID(note_change(database, write.kind, write.key->name, revision));
  }
  return {};
}

Result<Revision> last_known_change(Database& database, Revision position) {
  TRY(const Identity identity, database.identity());
  TRY(const std::int64_t first, database.number("SELECT value FROM counters WHERE id=3"));
  const Revision floor = database.told(first);
  const Revision last = database.told(identity.revision);
  if (floor <= position && position <= last) return last;
  return fail(ErrorCode::too_old,
              "{}: the changes after revision {} are no longer known (known: those after "
              "{}, up to {}); read everything again",
              database.path(), position.value, floor.value, last.value);
}

Result<std::vector<Change>> changes_after(Database& database, Revision position, const WatchScope& scope,
                                          const std::set<Key>& followed) {
  const auto is_wanted = [&](const Key& key) { return is_in(scope, key) || followed.contains(key); };
  TRY(std::vector<ChangedKey> keys, keys_after(database, position, is_wanted));
  std::vector<Change> changes;
  changes.reserve(keys.size());
  for (auto changed = keys.rbegin(); changed != keys.rend(); ++changed) {
    TRY(auto record, read_record(database, changed->key));
    if (!record) {
      changes.push_back(Change::deleted(std::move(changed->key), changed->revision));
    } else if (is_in(scope, changed->key)) {
      changes.push_back(Change::put(*std::move(record)));
    } else {
      changes.push_back(Change::touched(std::move(changed->key), changed->revision));
    }
  }
  return changes;
}

Result<void> forget_all_changes(Database& database, Revision last) {
  TRY_VOID(database.run("DELETE FROM changes"));
  return database.run("UPDATE counters SET value=?1 WHERE id=3", database.stored(last));
}

}  // namespace croft::store
