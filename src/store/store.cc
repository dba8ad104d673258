#include "store/store.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "store/free_block.h"

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

[[nodiscard]] Result<BlockKeys> look_at_blocks(Store& store, const std::optional<ListRequest>& page,
                                               std::span<const Key> single, Deadline deadline) {
  BlockKeys seen;
  if (page) {
    TRY(seen.page, store.list_keys(*page, deadline));
  }
  if (single.empty()) return seen;
  TRY(const auto found, store.get_many(single, deadline));
  for (std::size_t i = 0; i < single.size(); ++i) {
    if (found[i]) seen.there.insert(single[i]);
  }
  return seen;
}

}  // namespace

Result<void> Store::for_each(ListRequest request, const std::function<Deadline()>& until,
                             const std::function<Result<void>(Record&)>& take) {
  for (bool more = true; more;) {
    TRY(Page page, list(request, until()));
    for (Key& key : page.keys) page.records.push_back({std::move(key), {}, {}, {}});
    more = page.more && !page.records.empty();
    if (more) request.after = page.records.back().key.name;
    for (Record& record : page.records) TRY_VOID(take(record));
  }
  return {};
}

bool is_in(const WatchScope& scope, const Key& key) {
  return std::find(scope.records.begin(), scope.records.end(), key) != scope.records.end() ||
         std::any_of(scope.lists.begin(), scope.lists.end(), [&](const core::Listing& listing) {
           return listing.kind == key.kind && key.name.starts_with(listing.name_prefix);
         });
}

std::vector<Result<Revision>> Store::commit_each(std::span<const Write> writes, const WriteToken& token,
                                                 Deadline deadline) {
  std::vector<Result<Revision>> outcomes;
  outcomes.reserve(writes.size());
  for (const Write& write : writes) outcomes.push_back(commit({&write, 1}, token, deadline));
  return outcomes;
}

Result<std::optional<Record>> Store::get(const Key& key, Deadline deadline) {
  core::Missing wanted;
  wanted.records.insert(key);
  TRY(ReadAnswer answer, read(wanted, deadline));
  return std::move(answer.records.front());
}

Result<std::vector<std::optional<Record>>> Store::get_many(std::span<const Key> keys, Deadline deadline) {
  core::Missing wanted;
  wanted.records.insert(keys.begin(), keys.end());
  TRY(const ReadAnswer answer, read(wanted, deadline));
  std::vector<std::optional<Record>> records;
  records.reserve(keys.size());
  for (const Key& key : keys) {
    const auto place = std::distance(wanted.records.begin(), wanted.records.find(key));
    records.push_back(answer.records[static_cast<std::size_t>(place)]);
  }
  return records;
}

Result<KeyPage> Store::list_keys(ListRequest request, Deadline deadline) {
  request.keys_only = true;
  TRY(Page page, list(request, deadline));
  return KeyPage{std::move(page.keys), page.more};
}

Result<void> read_by_pages(Store& store, const core::Missing& wanted, ReadAnswer& answer, Deadline deadline) {
  for (const core::Listing& listing : wanted.lists) {
    TRY(std::vector<Record> records, whole_list(store, listing, deadline));
    answer.lists.push_back(std::move(records));
  }
  for (const core::Listing& listing : wanted.keys) {
    TRY(std::vector<Key> keys, whole_key_list(store, listing, deadline));
    answer.keys.push_back(std::make_shared<const std::vector<Key>>(std::move(keys)));
  }
  for (const core::FreeBlock& block : wanted.free_blocks) {
    const auto look = [&](const auto& page, auto single) { return look_at_blocks(store, page, single, deadline); };
    TRY(core::FoundBlock found, find_free_block(block, look));
    answer.free_blocks.push_back(std::move(found));
  }
  return {};
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
