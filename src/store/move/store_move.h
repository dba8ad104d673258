#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "store/move/decide/store_move.h"
#include "store/seal.h"
#include "store/store.h"

// Moves a register from one store into another while pods come and go (docs/runbooks/migrate.md). No address gets two
// holders: never are both stores open, from the moment on at which the first address could be given from a copy.
//
// 1. The target is sealed. It must hold nothing of its own. (Seal: preparing, then copying.)
// 2. Everything is copied; the source is still open.
// 3. The source is sealed: ADDs fail with "try again later", DELs leave tombstones. What has changed since is copied,
//    then every record of both is compared, and the target is audited.
// 4. The source's seal says `moved` for good; the target is opened.
//
// All that is remembered is the two seals. A move that was killed anywhere goes on where it was when it is called
// again; two that run at once do no harm, as both write the same.

namespace croft::engine {

struct MoveEnd {
  store::Store& store;
  store::Sealable& seal;  ///< of the same object
  std::string url;        ///< which the other end's seal is to name; holds no secrets
};

struct MoveContext {
  MoveEnd from, to;
  const Clock& clock;
  Random& random;
  /// Lets time pass, for Sealable::settling(). An error ends the move, which goes on when it is called again.
  std::function<Result<void>(std::chrono::seconds)> wait;
  /// Takes a line about what is done now; never fails.
  std::function<void(const std::string&)> tell;
  /// For each page that is read or written.
  std::chrono::nanoseconds time_limit = std::chrono::seconds(30);
};

/// How the two stores differ in a kind.
struct KindDifference {
  core::Kind kind = core::Kind::pool;
  std::uint64_t in_source = 0;
  std::uint64_t same = 0;
  std::uint64_t to_write = 0;   ///< missing in the target, or other there
  std::uint64_t to_remove = 0;  ///< only in the target
};

struct MovePlan {
  core::audit::MoveStep step = core::audit::MoveStep::begin;
  std::optional<core::Seal> source_seal, target_seal;
  std::vector<KindDifference> kinds;  ///< with at least one record in either store
  /// What keeps the move from being begun, each with its remedy.
  std::vector<std::string> obstacles;
  /// What nobody needs to act on, but should know.
  std::vector<std::string> notes;
  /// How long ADDs will be refused at least, for requests that are on their way when the source is sealed.
  std::chrono::seconds source_settling{0}, target_settling{0};
};

struct MoveOptions {
  /// Go on although records of kinds that do not move are in the source (core::audit::kStayingKinds).
  bool leave_behind = false;
  /// Put the source's record in the place of what another program wrote into the closed target.
  bool overwrite = false;
};

/// Looks at both stores and changes nothing. Errors: those of the stores; refused_for_safety where the seals forbid it
/// (core::audit::next_step).
[[nodiscard]] Result<MovePlan> plan_store_move(const MoveContext& context, const MoveOptions& options);

struct MoveReport {
  std::uint64_t written = 0, removed = 0;  ///< in this call
  std::uint64_t compared = 0;              ///< records that were found equal in both at the end
  /// What the audit of the target found; the source has the same, or there is none.
  std::vector<std::string> findings;
  bool was_done = false;  ///< nothing was left to do
};

/// Makes the move, or goes on with it. Errors, after which both stores are as safe as before, and which the same call
/// again goes on from: those of the stores; refused_for_safety naming the obstacles, what is damaged, or what the
/// audit finds in the target and not in the source, or what others wrote into the target; conflict when somebody
/// changed a seal.
[[nodiscard]] Result<MoveReport> move_store(const MoveContext& context, const MoveOptions& options);

/// Opens the source of a move that is not complete; the target stays closed, unless nothing was copied into it. The
/// same call again goes on where it was interrupted. Whether there was anything to do. Errors: those of the stores;
/// refused_for_safety where the target was opened already.
[[nodiscard]] Result<bool> give_up_store_move(const MoveContext& context);

}  // namespace croft::engine
