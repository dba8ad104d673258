#include "ipam/use/commit_once.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/pauses.h"
#include "base/planted.h"

namespace croft::engine {
namespace {

store::WriteToken new_token(const Context& context) {
  store::WriteToken token;
  for (std::size_t i = 0; i < token.bytes.size(); i += 8) {
    const std::uint64_t bits = context.random.next();
    for (std::size_t k = 0; k < 8; ++k) token.bytes[i + k] = static_cast<std::uint8_t>(bits >> (8 * k));
  }
  return token;
}

/// The revision of a commit that turned out to be applied. None when another writer has been at the first record since,
/// or it was a delete: no later condition on that revision will hold.
store::Revision revision_of(const Context& context, const store::Write& first, const store::WriteToken& token,
                            Deadline deadline) {
  const auto record = context.store.get(first.key, deadline);
  return record && *record && (*record)->token == token ? (*record)->revision : store::Revision();
}

/// A store in trouble is asked quickly at first, for most troubles are over soon, and about a dozen seconds at most.
constexpr int kRepeatsMax = 16;
constexpr std::chrono::milliseconds kPauseMin{10};
constexpr std::chrono::seconds kPauseMax{1};

/// A commit that was not done, after one of the same call of which nobody knows: that one may be done yet.
[[nodiscard]] Result<store::Revision> in_doubt(Result<store::Revision> committed) {
  if (committed) return committed;
  const ErrorCode code = committed.error().code;
  if (code != ErrorCode::unavailable && code != ErrorCode::deadline_exceeded) return committed;
  return fail(
      ErrorCode::unknown_outcome,
      fmt::format("it may or may not have been written; sending it again failed: {}", committed.error().message));
}

/// Settles a commit: `committed` is the store's first answer.
[[nodiscard]] Result<store::Revision> settled(const Context& context, std::span<const store::Write> writes,
                                              const store::WriteToken& token, Result<store::Revision> committed,
                                              Deadline deadline) {
  bool is_in_doubt = false;
  Pauses pauses(kPauseMin, kPauseMax, context.random.next());
  for (int repeats = 0;; ++repeats) {
    const bool is_unknown = !committed && committed.error().code == ErrorCode::unknown_outcome;
    // A conflict may be with the request before, which came after all.
    const bool may_be_with_itself = is_in_doubt && !committed && committed.error().code == ErrorCode::conflict;
    if (!is_unknown && !may_be_with_itself) return is_in_doubt ? in_doubt(std::move(committed)) : committed;
    is_in_doubt = true;
    if (is_planted("unknown_taken_as_done")) return store::Revision();
    const auto fate = context.store.fate_of(writes, token, deadline);
    if (!fate) {
      return fail(ErrorCode::unknown_outcome,
                  fmt::format("{}; reading back failed too: {}", committed.error().message, fate.error().message));
    }
    if (is_planted("lost_taken_as_applied")) return store::Revision();
    if (*fate == store::Fate::applied) return revision_of(context, writes.front(), token, deadline);
    if (*fate == store::Fate::lost) return fail(ErrorCode::conflict, "another writer came first");
    // A record that was made and deleted again looks as it did before.
    if (may_be_with_itself) return committed;
    if (repeats == kRepeatsMax || deadline.passed(context.clock.now())) return committed;
    // Nothing has changed yet: the request may be on its way still, or the store in trouble.
    pause(context, pauses.next(), deadline);
    committed = context.store.commit(writes, token, deadline);
  }
}

}  // namespace

Result<store::Revision> commit_once(const Context& context, std::span<const store::Write> writes, Deadline deadline) {
  const store::WriteToken token = new_token(context);
  return settled(context, writes, token, context.store.commit(writes, token, deadline), deadline);
}

std::vector<Result<store::Revision>> commit_each_once(const Context& context, std::span<const store::Write> writes,
                                                      Deadline deadline) {
  const store::WriteToken token = new_token(context);
  auto outcomes = context.store.commit_each(writes, token, deadline);
  for (std::size_t i = 0; i < writes.size(); ++i) {
    outcomes[i] = settled(context, writes.subspan(i, 1), token, std::move(outcomes[i]), deadline);
  }
  return outcomes;
}

}  // namespace croft::engine
