#include "store/store.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "base/texts.h"
#include "base/time_text.h"
#include "store/pause.h"

namespace croft::store {

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
  TRY(ReadAnswer answer, read({{key}, {}, {}, {}}, deadline));
  return std::move(answer.records.front());
}

Result<std::vector<Record>> Store::list(const core::Listing& listing, Deadline deadline) {
  TRY(ReadAnswer answer, read({{}, {listing}, {}, {}}, deadline));
  return std::move(answer.lists.front());
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

Error conflict_on(const Key& key, std::string_view file) {
  return make_error(ErrorCode::conflict, "{} {}{}{} was changed by somebody else; read again", name_of(key.kind),
                    key.name, file.empty() ? "" : " in ", file);
}

Error paused(const core::Pause& pause) {
  using Phase = core::Pause::Phase;
  // A URL may be longer than a line of a log should be.
  const std::string other = echo(pause.other);
  const std::string since = rfc3339_exact(pause.since);
  switch (pause.phase) {
    case Phase::copying:
      return make_error(ErrorCode::unavailable,
                        "the register is being copied to {} since {} and takes no writes: finish it with `croft store "
                        "copy`, or give it up with `croft store resume`",
                        other, since);
    case Phase::moved:
      return make_error(ErrorCode::unavailable,
                        "the register was moved to {} at {}: name that store where this one is named (ipam.store, "
                        "--store)",
                        other, since);
    case Phase::filling:
      break;
  }
  return make_error(ErrorCode::unavailable,
                    "the register is being filled from {} since {}: finish it with `croft store copy`", other, since);
}

namespace {

[[nodiscard]] Result<void> check_name(const Key& key) {
  if (key.name.empty() || key.name.size() > core::kKeyNameBytesMax) {
    return fail(ErrorCode::invalid_argument, "name of a {} record has {} bytes; 1 to {} are allowed",
                core::name_of(key.kind), key.name.size(), core::kKeyNameBytesMax);
  }
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::any_of(key.name.begin(), key.name.end(), is_control)) {
    return fail(ErrorCode::invalid_argument, "name of a {} record has a control character", core::name_of(key.kind));
  }
  return {};
}

[[nodiscard]] Result<void> check_write(const Write& write) {
  TRY_VOID(check_name(write.key));
  if (write.value && core::kind_of(*write.value) != write.key.kind) {
    return fail(ErrorCode::invalid_argument, "value of kind {} for the key {} of kind {}",
                core::name_of(core::kind_of(*write.value)), write.key.name, core::name_of(write.key.kind));
  }
  if (write.only_check && write.value) {
    return fail(ErrorCode::invalid_argument, "a value for {}, which is only to be checked", write.key.name);
  }
  return {};
}

}  // namespace

Result<void> check_writes(std::span<const Write> writes) {
  if (writes.empty() || writes.size() > kCommitWritesMax) {
    return fail(ErrorCode::invalid_argument, "commit of {} writes; 1 to {} are allowed", writes.size(),
                kCommitWritesMax);
  }
  std::vector<const Key*> keys;
  keys.reserve(writes.size());
  for (const Write& write : writes) {
    TRY_VOID(check_write(write));
    keys.push_back(&write.key);
  }
  std::sort(keys.begin(), keys.end(), [](const Key* a, const Key* b) { return *a < *b; });
  const auto twice = std::adjacent_find(keys.begin(), keys.end(), [](const Key* a, const Key* b) { return *a == *b; });
  if (twice != keys.end()) {
    return fail(ErrorCode::invalid_argument, "commit writes the {} {} twice", core::name_of((*twice)->kind),
                (*twice)->name);
  }
  return {};
}

}  // namespace croft::store
