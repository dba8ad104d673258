#include "store/sqlite/change_table.h"

#include <limits>
#include <optional>
#include <set>

#include "register/format/records.h"
#include "store/sqlite/record_table.h"

namespace croft::store {
namespace {

[[nodiscard]] Result<void> set_floor(Database& database, std::int64_t floor) {
  return database.run("UPDATE counters SET value=?1 WHERE id=3", floor);
}

/// Forgets the changes up to the row `id`.
[[nodiscard]] Result<void> forget_up_to(Database& database, std::int64_t id) {
  TRY_VOID(database.run(
      "UPDATE counters SET value=max(value, ifnull((SELECT max(revision) FROM changes WHERE id<=?1), 0)) WHERE id=3",
      id));
  return database.run("DELETE FROM changes WHERE id<=?1", id);
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

}  // namespace

Result<KnownChanges> known_changes(Database& database) {
  TRY(const Identity identity, database.identity());
  TRY(const std::int64_t floor, database.number("SELECT value FROM counters WHERE id=3"));
  return KnownChanges{database.told(floor), database.told(identity.revision)};
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

Result<void> note_change(Database& database, std::int64_t kind, std::string_view name, Revision revision) {
  {
    TRY(const auto statement, database.prepare("INSERT INTO changes(revision, kind, name) VALUES(?1, ?2, ?3)"));
    statement->bind(1, database.stored(revision)).bind(2, kind).bind_text(3, name);
    TRY_VOID(statement->step());
  }
  const std::int64_t id = database.last_row_id();
  if (id % kForgetStep != 0 || id <= kChangesMax) return {};
  return forget_up_to(database, id - kChangesMax);
}

Result<void> forget_all_changes(Database& database, Revision last) {
  TRY_VOID(database.run("DELETE FROM changes"));
  return set_floor(database, database.stored(last));
}

}  // namespace croft::store
