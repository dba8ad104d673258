#include "store/store.h"

#include <algorithm>

namespace croft::store {
namespace {

[[nodiscard]] Result<std::vector<Record>> whole_list(Store& store, const core::Listing& listing, Deadline deadline) {
  ListRequest request{listing.kind, listing.name_prefix, "", kListLimitMax};
  std::vector<Record> records;
  for (bool more = true; more;) {
    TRY(Page page, store.list(request, deadline));
    more = page.more && !page.records.empty();
    if (more) request.after = page.records.back().key.name;
    std::move(page.records.begin(), page.records.end(), std::back_inserter(records));
  }
  return records;
}

[[nodiscard]] Result<std::vector<Key>> whole_key_list(Store& store, const core::Listing& listing, Deadline deadline) {
  ListRequest request{listing.kind, listing.name_prefix, "", kListLimitMax};
  std::vector<Key> keys;
  for (bool more = true; more;) {
    TRY(KeyPage page, store.list_keys(request, deadline));
    more = page.more && !page.keys.empty();
    if (more) request.after = page.keys.back().name;
    std::move(page.keys.begin(), page.keys.end(), std::back_inserter(keys));
  }
  return keys;
}

}  // namespace

core::KeysInWindow cut_to(const core::KeyWindow& window, KeyPage page) {
  const auto end =
      std::find_if(page.keys.begin(), page.keys.end(), [&](const Key& key) { return key.name >= window.before; });
  const bool more = page.more && end == page.keys.end();
  page.keys.erase(end, page.keys.end());
  return {std::move(page.keys), more};
}

bool is_in(const WatchScope& scope, const Key& key) {
  return std::find(scope.records.begin(), scope.records.end(), key) != scope.records.end() ||
         std::any_of(scope.lists.begin(), scope.lists.end(), [&](const core::Listing& listing) {
           return listing.kind == key.kind && key.name.starts_with(listing.name_prefix);
         });
}

Result<ReadAnswer> Store::read(const core::Missing& wanted, Deadline deadline) {
  ReadAnswer answer;
  if (!wanted.records.empty()) {
    const std::vector<Key> keys(wanted.records.begin(), wanted.records.end());
    TRY(answer.records, get_many(keys, deadline));
  }
  for (const core::Listing& listing : wanted.lists) {
    TRY(std::vector<Record> records, whole_list(*this, listing, deadline));
    answer.lists.push_back(std::move(records));
  }
  for (const core::Listing& listing : wanted.keys) {
    TRY(std::vector<Key> keys, whole_key_list(*this, listing, deadline));
    answer.keys.push_back(std::move(keys));
  }
  for (const core::KeyWindow& window : wanted.windows) {
    const core::Listing& listing = window.listing;
    TRY(KeyPage page, list_keys({listing.kind, listing.name_prefix, window.after, core::kKeyWindowMax}, deadline));
    answer.windows.push_back(cut_to(window, std::move(page)));
  }
  for (const core::KeyWindow& window : wanted.counts) {
    core::KeyWindow rest = window;
    std::uint64_t count = 0;
    for (bool more = true; more;) {
      const core::Listing& listing = rest.listing;
      TRY(KeyPage page, list_keys({listing.kind, listing.name_prefix, rest.after, kListLimitMax}, deadline));
      const core::KeysInWindow seen = cut_to(rest, std::move(page));
      count += seen.keys.size();
      more = seen.more && !seen.keys.empty();
      if (more) rest.after = seen.keys.back().name;
    }
    answer.counts.push_back(count);
  }
  return answer;
}

Result<Fate> Store::fate_of(std::span<const Write> writes, const WriteToken& token, Deadline deadline) {
  const auto put = std::find_if(writes.begin(), writes.end(), [](const Write& w) { return w.value.has_value(); });
  const Write& witness = put != writes.end() ? *put : writes.front();
  TRY(const std::optional<Record> record, get(witness.key, deadline));
  if (record && record->token == token) return Fate::applied;
  switch (witness.condition.kind) {
    case Condition::Kind::absent:
      return record ? Fate::lost : Fate::may_still_come;
    case Condition::Kind::revision:
      return record && record->revision == witness.condition.revision ? Fate::may_still_come : Fate::lost;
    case Condition::Kind::any:
      break;
  }
  return Fate::may_still_come;
}

}  // namespace croft::store
