#include "edge/tombstones/tombstones.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/hex.h"
#include "base/quoted.h"
#include "edge/decision_log.h"
#include "edge/error_table.h"
#include "engine/release.h"
#include "os/digest.h"
#include "os/file_lock.h"
#include "os/files.h"

namespace croft::edge {
namespace {

constexpr const char* kLock = "lock";
constexpr std::string_view kEnding = ".json";
constexpr std::string_view kSetAside = ".damaged";
/// How long a replay waits for another one: that one does the same work.
constexpr std::chrono::milliseconds kLockWaitMax{100};

/// One of an owner, whatever its store: an ADD knows its store by one of several names.
std::string name_of(const core::Owner& owner) {
  // NUL ends each part: none of them can hold one.
  std::string text;
  for (const std::string* part : {&owner.network, &owner.container_id, &owner.interface_name}) {
    text += *part;
    text += '\0';
  }
  std::string name;
  for (const char c : os::sha256(text)) {
    const auto byte = static_cast<unsigned char>(c);
    name += kHexDigits[byte >> 4];
    name += kHexDigits[byte & 0xf];
  }
  return name.append(kEnding);
}

[[nodiscard]] Result<core::Released> release(const engine::Context& context, const wire::Tombstone& tombstone) {
  // Of the clocks of then only the wall clock is known.
  const Instant began{tombstone.began_at, {}, {}};
  TRY(core::Released released, engine::release_owner(context, tombstone.owner, began));
  if (tombstone.old_handle) {
    TRY(core::Released old, engine::release_old_handle(context, *tombstone.old_handle, began));
    released.addresses.insert(released.addresses.end(), old.addresses.begin(), old.addresses.end());
    released.kept.insert(released.kept.end(), old.kept.begin(), old.kept.end());
  }
  return released;
}

}  // namespace

bool can_be_made_up_for(ErrorCode code) {
  return cni_code_of(code) == wire::cni::Code::try_again_later && code != ErrorCode::no_pool;
}

Tombstones::Tombstones(std::string directory, const Clock& clock) : directory_(std::move(directory)), clock_(clock) {
  if (directory_ == kNoTombstones) directory_.clear();
}

std::string Tombstones::path_of(std::string_view name) const { return fmt::format("{}/{}", directory_, name); }

Result<void> Tombstones::leave(wire::Tombstone tombstone) const {
  if (!are_kept()) {
    return fail(ErrorCode::refused_by_configuration, "no directory for tombstones is given");
  }
  TRY_VOID(os::make_directories(directory_));
  TRY(const auto names, os::list_directory(directory_, 2 * kTombstonesMax));
  if (names.size() >= kTombstonesMax) {
    return fail(ErrorCode::exhausted, fmt::format("{} holds {} files already", directory_, names.size()));
  }
  tombstone.left_at = clock_.now().wall;
  if (tombstone.began_at == WallTime{}) tombstone.began_at = tombstone.left_at;
  // One of a later DEL means all that this one does.
  const std::string path = path_of(name_of(tombstone.owner));
  const auto before = os::read_file(path, wire::kTombstoneBytesMax);
  const auto earlier = before ? wire::decode_tombstone(*before) : Result<wire::Tombstone>(fail(before.error()));
  if (earlier && earlier->owner == tombstone.owner) {
    tombstone.began_at = std::max(tombstone.began_at, earlier->began_at);
  }
  return os::replace_file_durably(path, wire::encode(tombstone));
}

Result<bool> Tombstones::lift(const core::Owner& owner, Deadline deadline) const {
  if (!are_kept()) return false;
  const std::string path = path_of(name_of(owner));
  const auto there = os::entry_status(path);
  if (!there && there.error().code == ErrorCode::permission_denied) return false;
  if (!there) return fail(there.error());
  if (!*there) return false;
  os::FileLock lock(path_of(kLock));
  TRY_VOID(lock.lock(clock_, deadline));
  TRY_VOID(os::remove_file_durably(path));
  return true;
}

Result<std::vector<Tombstones::Waiting>> Tombstones::waiting() const {
  std::vector<Waiting> all;
  if (!are_kept()) return all;
  TRY(const auto is_there, os::entry_status(directory_));
  if (!is_there) return all;
  TRY(auto names, os::list_directory(directory_, 2 * kTombstonesMax));
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    const std::string path = path_of(name);
    if (name.ends_with(kSetAside)) {
      all.push_back({path, fail(ErrorCode::corrupt, "it was set aside as damaged")});
      continue;
    }
    if (!name.ends_with(kEnding)) continue;
    auto content = os::read_file(path, wire::kTombstoneBytesMax);
    // Replayed meanwhile.
    if (!content && content.error().code == ErrorCode::not_found) continue;
    all.push_back({path, content ? wire::decode_tombstone(*content) : Result<wire::Tombstone>(fail(content.error()))});
  }
  return all;
}

Result<void> Tombstones::try_lock(Deadline deadline) const {
  if (!are_kept()) return {};
  return os::FileLock(path_of(kLock)).lock(clock_, deadline);
}

Tombstones::Outcome Tombstones::replay_one(const std::string& name, const engine::Context& context,
                                           const Replay& what) const {
  const std::string path = path_of(name);
  os::FileLock lock(path_of(kLock));
  const Deadline wait{std::min(Deadline::after(clock_.now(), kLockWaitMax).at_since_boot, what.deadline.at_since_boot)};
  if (!lock.lock(clock_, wait)) return Outcome::left;
  const auto content = os::read_file(path, wire::kTombstoneBytesMax);
  // What could not be read says nothing of the file: there may be no descriptor, or no memory, for now.
  if (!content && content.error().code != ErrorCode::invalid_argument) return Outcome::left;
  auto tombstone = content ? wire::decode_tombstone(*content) : Result<wire::Tombstone>(fail(content.error()));
  if (tombstone && name_of(tombstone->owner) != name) {
    // No ADD of that owner would find it.
    tombstone = fail(ErrorCode::corrupt, "it has not the name that belongs to its owner");
  }
  if (!tombstone) {
    if (tombstone.error().code == ErrorCode::newer_version) return Outcome::left;
    const DecisionLine line(clock_, "TOMBSTONE file=" + in_quotes_if_needed(path));
    static_cast<void>(os::rename_durably(path, path + std::string(kSetAside)));
    what.log(line.ended("error", fmt::format("set_aside={} ", kSetAside) + text_of(tombstone.error())));
    return Outcome::left;
  }
  // Of a time to come it is old: the clock was set back.
  const auto age = clock_.now().wall - tombstone->left_at;
  const bool is_young = age >= age.zero() && age < what.age_min;
  if (!what.is_ours(tombstone->store) || is_young) return Outcome::left;
  const DecisionLine line(
      clock_, fmt::format("TOMBSTONE network={} container={} ifname={}", in_quotes_if_needed(tombstone->owner.network),
                          in_quotes_if_needed(tombstone->owner.container_id),
                          in_quotes_if_needed(tombstone->owner.interface_name)));
  engine::Context limited = context;
  limited.not_after = {std::min(context.not_after.at_since_boot, what.deadline.at_since_boot)};
  limited.ends_by = context.ends_by;
  const auto released = release(limited, *tombstone);
  if (!released) {
    if (can_be_made_up_for(released.error().code)) return Outcome::away;
    what.log(line.ended("error", text_of(released.error())));
    return Outcome::left;
  }
  // What can't be removed is released once more: a success that frees nothing, until an ADD of the owner lifts it.
  static_cast<void>(os::remove_file_durably(path));
  what.log(line.ended("ok", "released=" + list_of(released->addresses) + kept_text(released->kept)));
  return Outcome::done;
}

Tombstones::Replayed Tombstones::replay(const engine::Context& context, const Replay& what) const {
  Replayed result;
  if (!are_kept()) return result;
  auto names = os::list_directory(directory_, 2 * kTombstonesMax);
  if (!names) return result;
  std::erase_if(*names, [](const std::string& name) { return !name.ends_with(kEnding); });
  if (names->empty()) return result;
  // From anywhere: those that have to stay must not keep the others from their turn.
  const std::size_t from = context.random.next() % names->size();
  const std::size_t looks = std::min(names->size(), what.looks_max);
  for (std::size_t i = 0; i < looks && result.done < what.count_max; ++i) {
    if (what.deadline.passed(clock_.now())) break;
    const Outcome outcome = replay_one((*names)[(from + i) % names->size()], context, what);
    if (outcome == Outcome::done) ++result.done;
    result.is_store_away = outcome == Outcome::away;
    if (result.is_store_away) break;
  }
  return result;
}

}  // namespace croft::edge
