#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include "base/printable.h"
#include "base/texts.h"
#include "store/etcd/store_parts.h"
#include "store/format/pause.h"
#include "store/store.h"

namespace croft::store::etcd {
namespace {

using wire::etcd::absent;
using wire::etcd::Compare;
using wire::etcd::KeyValue;
using wire::etcd::range_of_key;
using wire::etcd::to_delete;
using wire::etcd::to_get;
using wire::etcd::to_put;
using wire::etcd::unchanged;

/// No record has it.
constexpr Revision kNoRevision = -1;

/// A commit as etcd takes it, and whose keys its compares are about.
struct Transaction {
  TxnRequest request;
  std::vector<const Key*> compared;
};

[[nodiscard]] Error of_another_epoch() {
  return {ErrorCode::conflict, "the register is another one than that which was read, or was restored; read again", {}};
}

/// All that a commit rests on must have been read in the epoch that it is done in.
[[nodiscard]] Result<void> check_epoch(EpochNumber epoch, std::span<const Write> writes) {
  for (const Write& write : writes) {
    // The question rests on nothing that was read.
    if (write.condition.kind != Condition::Kind::revision || is_write_question(write)) continue;
    if (epoch_of(write.condition.revision) == epoch) continue;
    return fail(of_another_epoch().in(fmt::format("{} {}", name_of(write.key.kind), write.key.name)));
  }
  return {};
}

/// Whether this store can write such a record at all.
[[nodiscard]] Result<void> check_writable(const Places& places, const Write& write) {
  if (const Registry* registry = places.registry_of(write.key.kind)) return registry->check_write(write);
  if (write.key.kind != Kind::foreign_service || write.only_check) return {};
  return fail(ErrorCode::read_only,
              "Service {} is Croft's own and read-only here: change it without "
              "kubernetes= in the store's URL",
              echo(write.key.name));
}

void add_condition(const Write& write, const std::string& place, Transaction& txn) {
  if (write.condition.kind == Condition::Kind::any) return;
  txn.compared.push_back(&write.key);
  // An absent key has the revision 0 to etcd; to the contract it has none.
  const auto revision = write.condition.revision.value != 0 ? etcd_revision_of(write.condition.revision) : kNoRevision;
  *txn.request.add_compare() =
      write.condition.kind == Condition::Kind::absent ? absent(place) : unchanged(place, revision);
  RangeRequest what_is_there = range_of_key(place);
  what_is_there.set_keys_only(true);
  *txn.request.add_failure() = to_get(std::move(what_is_there));
}

[[nodiscard]] Result<void> add_write(const CallContext& parts, const Write& write, const WriteToken& token,
                                     Transaction& txn) {
  TRY(std::string place, parts.places.place_of(write.key));
  TRY_VOID(check_writable(parts.places, write));
  add_condition(write, place, txn);
  if (write.only_check) return {};
  const auto beside = calico::place_beside(write.key);
  if (!write.value) {
    *txn.request.add_success() = to_delete(std::move(place));
    if (beside) *txn.request.add_success() = to_delete(*beside);
    return {};
  }
  calico::StoredBytes bytes = encode(parts.places, *write.value, token, parts.clock.now().wall);
  *txn.request.add_success() = to_put(std::move(place), std::move(bytes.value));
  if (!beside) return {};
  *txn.request.add_success() = bytes.beside ? to_put(*beside, *std::move(bytes.beside)) : to_delete(*beside);
  return {};
}

/// The answer to a commit whose conditions did not all hold.
[[nodiscard]] Error conflict_in(const TxnResponse& response, const Transaction& txn) {
  for (std::size_t i = 0; i < txn.compared.size(); ++i) {
    const KeyValue* kv = only_one(response, i);
    const Compare& condition = txn.request.compare(static_cast<int>(i));
    const bool holds = condition.target() == Compare::VERSION
                           ? kv == nullptr
                           : kv != nullptr && kv->mod_revision() == condition.mod_revision();
    if (!holds) return conflict_on(*txn.compared[i]);
  }
  return {ErrorCode::conflict, "a record was changed by somebody else; read again", {}};
}

/// etcd does not say which key its user may not write.
[[nodiscard]] Error refused_write(const Error& error, std::span<const Write> writes) {
  std::set<std::string_view> kinds;
  for (const Write& write : writes) kinds.insert(name_of(write.key.kind));
  return error.in(fmt::format("etcd's user may not write one of {} (its role: docs/runbooks/etcd-roles.md)",
                              fmt::join(kinds, ", ")));
}

/// The write by which a commit is recognised: best one that names it.
[[nodiscard]] const Write& witness_of(const Places& places, std::span<const Write> writes) {
  const auto names = [&](const Write& write) { return names_its_commit(places, write); };
  if (const auto named = std::find_if(writes.begin(), writes.end(), names); named != writes.end()) return *named;
  const auto put = std::find_if(writes.begin(), writes.end(), [](const Write& w) { return w.value.has_value(); });
  return put != writes.end() ? *put : writes.front();
}

/// etcd says that its space is used up before it applies a write, but also after the one that crossed the line. The
/// stored value tells, and nothing can come later.
[[nodiscard]] Result<store::Revision> settle_full(const CallContext& parts, std::span<const Write> writes,
                                                  const WriteToken& token, const Error& error, Deadline deadline) {
  const auto fate = fate_of_commit(parts, writes, token, deadline);
  if (!fate) return fail(ErrorCode::unknown_outcome, error.message);
  if (*fate == Fate::applied) return position_now(parts, deadline);
  return fail(ErrorCode::storage_full,
              "etcd's space quota is used up: compact, defragment and disarm its alarm (etcdctl)");
}

/// Before the epoch, last in the transaction: that nobody has paused the register.
void add_pause_condition(Transaction& txn) {
  *txn.request.add_compare() = absent(kPausePlace);
  *txn.request.add_failure() = to_get(range_of_key(kPausePlace));
}

[[nodiscard]] Result<std::optional<StoredPause>> pause_in(const KeyValue* kv) {
  if (kv == nullptr) return std::optional<StoredPause>();
  auto pause = wire::decode_pause(kv->value());
  if (!pause) return fail(pause.error().in(kPausePlace));
  return std::optional(StoredPause{*std::move(pause), static_cast<std::uint64_t>(kv->mod_revision())});
}

/// Whether the pause stood in the way. Its answer is the last one but the epoch's.
[[nodiscard]] Result<void> check_pause_in(const TxnResponse& response) {
  TRY(const auto there, pause_in(only_one(response, static_cast<std::size_t>(response.responses_size()) - 2)));
  return there ? Result<void>(fail(paused(there->pause))) : Result<void>();
}

}  // namespace

Result<std::optional<StoredPause>> read_pause(Client& client, Deadline deadline) {
  TRY(const RangeResponse found, client.range(range_of_key(kPausePlace), deadline));
  return pause_in(only_one(found));
}

Result<void> change_pause(Client& client, const std::optional<StoredPause>& there,
                          const std::optional<core::Pause>& next, Deadline deadline) {
  TxnRequest request;
  *request.add_compare() = there ? unchanged(kPausePlace, static_cast<Revision>(there->revision)) : absent(kPausePlace);
  *request.add_success() = next ? to_put(kPausePlace, wire::encode_pause(*next)) : to_delete(kPausePlace);
  TRY(const auto done, client.txn(request, deadline));
  if (done.succeeded()) return {};
  return fail(ErrorCode::conflict, "the register's pause was changed by somebody else");
}

Result<store::Revision> commit_writes(const CallContext& parts, std::span<const Write> writes, const WriteToken& token,
                                      bool is_filling, Deadline deadline) {
  TRY_VOID(check_writes(writes));
  TRY(Epoch::Known known, parts.epoch.of_writer(deadline));
  for (bool is_first = true;; is_first = false) {
    TRY_VOID(check_epoch(known.number, writes));
    Transaction txn;
    for (const Write& write : writes) TRY_VOID(add_write(parts, write, token, txn));
    if (!is_filling) add_pause_condition(txn);
    Epoch::add_to(txn.request, known);
    const auto response = parts.client.txn(txn.request, deadline);
    if (!response) {
      if (response.error().code == ErrorCode::permission_denied) return fail(refused_write(response.error(), writes));
      if (!is_no_space(response.error())) return fail(response.error());
      return settle_full(parts, writes, token, response.error(), deadline);
    }
    const auto& header = response->header();
    if (response->succeeded()) {
      if (parts.epoch.number() == known.number) return revision_in_epoch(known.number, header.revision());
      return fail(ErrorCode::unknown_outcome,
                  "etcd became another cluster, or went back, while a commit was under way");
    }
    const auto last = static_cast<std::size_t>(response->responses_size()) - 1;
    TRY_VOID(parts.epoch.take(only_one(*response, last), header.cluster_id(), header.revision()));
    if (!is_filling) TRY_VOID(check_pause_in(*response));
    TRY(const Epoch::Known now, parts.epoch.of_writer(deadline));
    if (now.number != known.number) return fail(of_another_epoch());
    // The record of the epoch may say more since.
    if (!is_first || now.record == known.record) return fail(conflict_in(*response, txn));
    known = now;
  }
}

Result<Fate> fate_of_commit(const CallContext& parts, std::span<const Write> writes, const WriteToken& token,
                            Deadline deadline) {
  const Write& witness = witness_of(parts.places, writes);
  TRY(const std::string place, parts.places.place_of(witness.key));
  TRY(const RangeResponse found, range_with_epoch(parts, range_of_key(place), deadline));
  const KeyValue* there = only_one(found);
  if (there != nullptr && witness.value &&
      is_written_by(parts.places, witness.key, *witness.value, token, there->value())) {
    return Fate::applied;
  }
  bool holds = true;
  if (witness.condition.kind == Condition::Kind::absent) holds = there == nullptr;
  if (witness.condition.kind == Condition::Kind::revision) {
    holds = there != nullptr &&
            revision_in_epoch(parts.epoch.number(), there->mod_revision()) == witness.condition.revision;
  }
  return holds ? Fate::may_still_come : Fate::lost;
}

}  // namespace croft::store::etcd
