#include "cni/door/tombstones.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/hex.h"
#include "base/printable.h"
#include "base/texts.h"
#include "cni/decision_log.h"
#include "cni/error_table.h"
#include "ipam/use/release.h"
#include "os/digest.h"
#include "os/file_lock.h"
#include "os/files.h"

namespace croft::edge {

namespace {

constexpr const char* kLock = "lock";
constexpr std::string_view kEnding = ".json";
constexpr std::string_view kSetAside = ".damaged";
/// The ending for tombstones to which the runtime had no result of an ADD.
constexpr std::string_view kUnsure = ".unsure.json";
/// How long a replay waits for another one: that one does the same work.
constexpr std::chrono::milliseconds kLockWaitMax{100};

/// One of an owner, whatever its store: an ADD knows its store by one of several names.
std::string name_of(const core::Owner& owner, std::string_view ending = kEnding) {
  // NUL ends each part: none of them can hold one.
  std::string text;
  for (const std::string* part : {&owner.network, &owner.container_id, &owner.interface_name}) {
    text += *part;
    text += '\0';
  }
  return hex_of(os::sha256(text)).append(ending);
}

}  // namespace

bool can_be_replayed_later(ErrorCode code) {
  return cni_code_of(code) == wire::cni::Code::try_again_later && code != ErrorCode::no_pool;
}

Tombstones::Tombstones(std::string directory, const Clock& clock) : directory_(std::move(directory)), clock_(clock) {
  if (directory_ == kNoTombstones) directory_.clear();
}

std::string Tombstones::path_of(std::string_view name) const { return fmt::format("{}/{}", directory_, name); }

/// Answers how many had to go.
Result<std::size_t> Tombstones::make_room_for(const std::string& unsure) const {
  TRY(auto names, os::list_directory(directory_, 2 * kTombstonesMax));
  std::erase_if(names, [](const std::string& name) { return !name.ends_with(kUnsure); });
  if (names.size() < kUnsureMax || std::ranges::find(names, unsure) != names.end()) return 0;
  std::vector<std::pair<WallTime, std::string>> by_age;
  for (const std::string& name : names) {
    const auto changed = os::modification_time(path_of(name));
    if (changed) by_age.emplace_back(*changed, path_of(name));
  }
  std::sort(by_age.begin(), by_age.end());
  std::size_t dropped = 0;
  for (; dropped < by_age.size() && by_age.size() - dropped >= kUnsureMax; ++dropped) {
    TRY_VOID(os::remove_file_durably(by_age[dropped].second));
  }
  return dropped;
}

Result<std::size_t> Tombstones::leave(wire::Tombstone tombstone, Sign sign) const {
  if (!are_kept()) {
    return fail(ErrorCode::refused_by_configuration, "no directory for tombstones is given");
  }
  TRY_VOID(os::make_directories(directory_));
  const std::string sure = name_of(tombstone.owner), unsure = name_of(tombstone.owner, kUnsure);
  TRY(const auto is_sure, os::entry_status(path_of(sure)));
  const bool may_be_dropped = sign == Sign::none && !is_sure;
  std::size_t dropped = 0;
  if (may_be_dropped) {
    TRY(dropped, make_room_for(unsure));
  } else if (!is_sure) {
    TRY(auto names, os::list_directory(directory_, 2 * kTombstonesMax));
    std::erase_if(names, [](const std::string& name) { return name.ends_with(kUnsure); });
    if (names.size() >= kTombstonesMax) {
      return fail(ErrorCode::exhausted, "{} holds {} files already: they go once the store can be reached", directory_,
                  names.size());
    }
  }
  tombstone.left_at = clock_.now().wall;
  TRY_VOID(os::replace_file_durably(path_of(may_be_dropped ? unsure : sure), wire::encode(tombstone)));
  // Only now: until then the owner would have none.
  const auto also = may_be_dropped ? Result<std::optional<os::FileStatus>>() : os::entry_status(path_of(unsure));
  if (also && *also) static_cast<void>(os::remove_file_durably(path_of(unsure)));
  return dropped;
}

Result<bool> Tombstones::lift(const core::Owner& owner, Deadline deadline) const {
  if (!are_kept()) return false;
  // Mostly no DEL of this node ever left one: then that is all there is to ask.
  if (const auto place = os::file_status(directory_); place && !*place) return false;
  std::vector<std::string> paths;
  for (const std::string_view ending : {kUnsure, kEnding}) {
    const std::string path = path_of(name_of(owner, ending));
    const auto there = os::entry_status(path);
    if (!there && there.error().code == ErrorCode::permission_denied) return false;
    if (!there) return fail(there.error());
    if (*there) paths.push_back(path);
  }
  os::FileLock lock(path_of(kLock));
  if (!paths.empty()) TRY_VOID(lock.lock(clock_, deadline));
  for (const std::string& path : paths) TRY_VOID(os::remove_file_durably(path));
  return !paths.empty();
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

Tombstones::Outcome Tombstones::replay_one(const std::string& name, const engine::Context& context,
                                           const Replay& what) const {
  const std::string path = path_of(name);
  os::FileLock lock(path_of(kLock));
  const Deadline wait{std::min(Deadline::after(clock_.now(), kLockWaitMax).at_since_boot, what.deadline.at_since_boot)};
  if (!lock.lock(clock_, wait)) return Outcome::left;
  const auto content = os::read_file(path, wire::kTombstoneBytesMax);
  // A failed read says nothing of the file: there may be no descriptor, or no memory, for now.
  if (!content && content.error().code != ErrorCode::invalid_argument) return Outcome::left;
  auto tombstone = content ? wire::decode_tombstone(*content) : Result<wire::Tombstone>(fail(content.error()));
  if (tombstone && name_of(tombstone->owner) != name && name_of(tombstone->owner, kUnsure) != name) {
    // No ADD of that owner would find it.
    tombstone = fail(ErrorCode::corrupt, "it has not the name that belongs to its owner");
  }
  if (!tombstone) {
    if (tombstone.error().code == ErrorCode::newer_version) return Outcome::left;
    const DecisionLine line(clock_, "TOMBSTONE file=" + in_quotes_if_needed(path));
    if (!os::rename_durably(path, path_of(name + std::string(kSetAside)))) return Outcome::left;
    what.log(line.ended("error", fmt::format("set_aside={} ", kSetAside) + text_of(tombstone.error())));
    return Outcome::left;
  }
  if (!what.is_ours(tombstone->store)) return Outcome::left;
  const DecisionLine line(
      clock_, fmt::format("TOMBSTONE network={} container={} ifname={}", in_quotes_if_needed(tombstone->owner.network),
                          in_quotes_if_needed(tombstone->owner.container_id),
                          in_quotes_if_needed(tombstone->owner.interface_name)));
  engine::Context limited = context;
  limited.not_after = {std::min(context.not_after.at_since_boot, what.deadline.at_since_boot)};
  const auto released = engine::release_owner(limited, tombstone->owner);
  if (!released) {
    if (can_be_replayed_later(released.error().code)) return Outcome::away;
    what.log(line.ended("error", text_of(released.error())));
    return Outcome::left;
  }
  // A file that can't be removed is released once more: a success that frees nothing, until an ADD of the owner lifts
  // it.
  static_cast<void>(os::remove_file_durably(path));
  what.log(line.ended("ok", "released=" + list_of(released->addresses)));
  return Outcome::done;
}

Tombstones::Replayed Tombstones::replay(const engine::Context& context, const Replay& what) const {
  Replayed result;
  if (!are_kept()) return result;
  auto names = os::list_directory(directory_, 2 * kTombstonesMax);
  if (!names) return result;
  std::erase_if(*names, [](const std::string& name) { return !name.ends_with(kEnding); });
  if (names->empty()) return result;
  // From anywhere: those that have to stay must not keep the others from their turn. First those that surely hold
  // something.
  std::ranges::rotate(*names, names->begin() + static_cast<std::ptrdiff_t>(context.random.next() % names->size()));
  std::ranges::stable_partition(*names, [](const std::string& name) { return !name.ends_with(kUnsure); });
  const std::size_t looks = std::min(names->size(), what.looks_max);
  for (std::size_t i = 0; i < looks && result.done < what.count_max; ++i) {
    if (what.deadline.passed(clock_.now())) return result;
    const Outcome outcome = replay_one((*names)[i], context, what);
    if (outcome == Outcome::done) ++result.done;
    result.is_store_away = outcome == Outcome::away;
    if (result.is_store_away) return result;
  }
  return result;
}

namespace {

/// How long an ADD waits while a tombstone of its owner is replayed, and what a call gives for the DELs of others.
constexpr std::chrono::seconds kLiftWaitMax{10};
constexpr std::chrono::seconds kMakeUpMax{1};

}  // namespace

NodeTurn::NodeTurn(const CniCall& call, const Clock& clock, std::string lock_file, Deadline deadline,
                   const std::function<void()>& before_waiting)
    : lock_(std::move(lock_file)) {
  const auto made = os::make_shared_directories(os::directory_of(lock_.path()));
  auto locked = made ? lock_.lock(clock, before_waiting ? Deadline{{}} : deadline) : Result<void>(fail(made.error()));
  if (!locked && before_waiting && locked.error().code == ErrorCode::deadline_exceeded) {
    before_waiting();
    locked = lock_.lock(clock, deadline);
  }
  if (!locked) call.warn("going on without the host-wide lock: " + locked.error().message);
}

Result<GivenBack> defer_release(const Tombstones& tombstones, wire::Tombstone tombstone, Tombstones::Sign sign,
                                const Error& why) {
  if (!can_be_replayed_later(why.code)) return fail(why);
  const auto left = tombstones.leave(std::move(tombstone), sign);
  if (left) {
    std::string words = " deferred=" + in_quotes(why.message);
    if (*left > 0) words += fmt::format(" dropped={}", *left);
    return GivenBack{{}, std::move(words)};
  }
  Error both = why;
  if (left.error().code != ErrorCode::refused_by_configuration) {
    both.message += "; nor could the release be left for later: " + left.error().message;
  }
  return fail(std::move(both));
}

Result<bool> lift_tombstone(const Tombstones& tombstones, const core::Owner& owner, const Clock& clock) {
  auto lifted = tombstones.lift(owner, Deadline::after(clock.now(), kLiftWaitMax));
  if (!lifted) return fail(lifted.error().in("an earlier DEL of this container waits to be made up for"));
  return lifted;
}

std::string lifted_text(bool was_lifted) { return was_lifted ? " tombstone=lifted" : ""; }

void replay_some(const Tombstones& tombstones, const engine::Context& context, const std::string& store_url,
                 const CniCall::WriteLine& write) {
  Tombstones::Replay replay;
  replay.is_ours = [&](std::string_view url) { return url == store_url; };
  replay.log = [&](const std::string& line) {
    if (write) write(line);
  };
  const Deadline most = Deadline::after(context.clock.now(), kMakeUpMax);
  replay.deadline = {std::min(most.at_since_boot, context.not_after.at_since_boot)};
  static_cast<void>(tombstones.replay(context, replay));
}

}  // namespace croft::edge
