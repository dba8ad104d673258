#include "store/etcd/store_commit.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/net/echo.h"
#include "store/calico/layout.h"
#include "store/check_request.h"
#include "store/etcd/codec.h"
#include "store/etcd/one_moment.h"
#include "store/etcd/requests.h"
#include "store/etcd/store_read.h"
#include "store/etcd/verdict.h"
#include "store/format/seal.h"
#include "store/write_question.h"

namespace croft::store::etcd {
namespace {

using wire::etcd::Compare;
using wire::etcd::DeleteRequest;
using wire::etcd::KeyValue;
using wire::etcd::PutRequest;

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
  return fail(ErrorCode::read_only, fmt::format("Service {} is Croft's own and read-only here: change it without "
                                                "kubernetes= in the store's URL",
                                                net::echo(write.key.name)));
}

void add_condition(const Write& write, const std::string& place, Transaction& txn) {
  if (write.condition.kind == Condition::Kind::any) return;
  txn.compared.push_back(&write.key);
  // An absent key has the revision 0 to etcd; to the contract it has none.
  const auto revision = write.condition.revision.value != 0 ? in_etcd(write.condition.revision) : kNoRevision;
  txn.request.compares.push_back(write.condition.kind == Condition::Kind::absent ? Compare::absent(place)
                                                                                 : Compare::unchanged(place, revision));
  RangeRequest what_is_there = RangeRequest::one(place);
  what_is_there.keys_only = true;
  txn.request.failure.emplace_back(std::move(what_is_there));
}

[[nodiscard]] Result<void> add_write(const Places& places, const Clock& clock, const Write& write,
                                     const WriteToken& token, Transaction& txn) {
  TRY(std::string place, places.place_of(write.key));
  TRY_VOID(check_writable(places, write));
  add_condition(write, place, txn);
  if (write.only_check) return {};
  auto& ops = txn.request.success;
  const auto beside = calico::place_beside(write.key);
  if (!write.value) {
    ops.emplace_back(DeleteRequest{std::move(place), {}, false});
    if (beside) ops.emplace_back(DeleteRequest{*beside, {}, false});
    return {};
  }
  calico::StoredBytes bytes = encode(places, *write.value, token, clock.now().wall);
  ops.emplace_back(PutRequest{std::move(place), std::move(bytes.value)});
  if (!beside) return {};
  if (bytes.beside) {
    ops.emplace_back(PutRequest{*beside, *std::move(bytes.beside)});
  } else {
    ops.emplace_back(DeleteRequest{*beside, {}, false});
  }
  return {};
}

/// The answer to a commit whose conditions did not all hold.
[[nodiscard]] Error conflict_in(const TxnResponse& response, const Transaction& txn) {
  for (std::size_t i = 0; i < txn.compared.size() && i < response.responses.size(); ++i) {
    const KeyValue* kv = only_one(response.responses[i]);
    const Compare& condition = txn.request.compares[i];
    const bool holds = condition.target == Compare::Target::version
                           ? kv == nullptr
                           : kv != nullptr && kv->mod_revision == condition.number;
    if (holds) continue;
    return {ErrorCode::conflict,
            fmt::format("{} {} was changed by somebody else; read again", name_of(txn.compared[i]->kind),
                        txn.compared[i]->name),
            {}};
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

/// etcd says that its space is used up before it applies a write, but also after the one that crossed the line: what
/// is stored tells, and nothing can come later.
[[nodiscard]] Result<store::Revision> settle_full(Kv& kv, const Places& places, Epoch& epoch,
                                                  std::span<const Write> writes, const WriteToken& token,
                                                  const Error& error, Deadline deadline) {
  const auto fate = fate_of_commit(kv, places, epoch, writes, token, deadline);
  if (!fate) return fail(ErrorCode::unknown_outcome, error.message);
  if (*fate == Fate::applied) return position_now(kv, epoch, deadline);
  return fail(ErrorCode::storage_full,
              "etcd's space quota is used up: compact, defragment and disarm its alarm (etcdctl)");
}

/// Before the epoch, last in the transaction: that nobody has sealed the register, or that the worker's seal is what it
/// was.
void add_seal_condition(const std::optional<StoredSeal>& mine, Transaction& txn) {
  txn.request.compares.push_back(mine ? Compare::unchanged(kSealPlace, static_cast<Revision>(mine->revision))
                                      : Compare::absent(kSealPlace));
  txn.request.failure.emplace_back(RangeRequest::one(kSealPlace));
}

[[nodiscard]] Result<std::optional<StoredSeal>> seal_in(const KeyValue* kv) {
  if (kv == nullptr) return std::optional<StoredSeal>();
  auto seal = wire::decode_seal(kv->value);
  if (!seal) return fail(seal.error().in(kSealPlace));
  return std::optional(StoredSeal{*std::move(seal), static_cast<std::uint64_t>(kv->mod_revision)});
}

/// Why the seal stood in the way, if it did. Its answer is the last one but the epoch's.
[[nodiscard]] Result<void> check_seal_in(const TxnResponse& response, const std::optional<StoredSeal>& mine,
                                         const std::string& worker) {
  const KeyValue* kv = only_one(response.responses[response.responses.size() - 2]);
  const bool is_mine = mine && kv != nullptr && static_cast<std::uint64_t>(kv->mod_revision) == mine->revision;
  if (is_mine || (!mine && kv == nullptr)) return {};
  TRY(const auto seal, seal_in(kv));
  TRY_VOID(check_seal(seal ? std::optional(seal->seal) : std::nullopt, worker));
  return fail(ErrorCode::conflict, "the register's seal was changed meanwhile; try again");
}

}  // namespace

Result<std::optional<StoredSeal>> read_seal(Kv& kv, Deadline deadline) {
  TRY(const RangeResponse found, kv.range(RangeRequest::one(kSealPlace), deadline));
  return seal_in(found.kvs.empty() ? nullptr : &found.kvs.front());
}

Result<void> change_seal(Kv& kv, const std::optional<StoredSeal>& there, const std::optional<core::Seal>& seal,
                         Deadline deadline) {
  TxnRequest request;
  request.compares = {there ? Compare::unchanged(kSealPlace, static_cast<Revision>(there->revision))
                            : Compare::absent(kSealPlace)};
  if (seal) {
    request.success.emplace_back(PutRequest{kSealPlace, wire::encode_seal(*seal)});
  } else {
    request.success.emplace_back(DeleteRequest{kSealPlace, {}, false});
  }
  TRY(const auto done, kv.txn(request, deadline));
  if (done.succeeded) return {};
  return fail(ErrorCode::conflict,
              "the register's seal was changed by somebody else; look with `croft migrate status`");
}

Result<store::Revision> commit_writes(Kv& kv, const Places& places, Epoch& epoch, const Clock& clock,
                                      std::span<const Write> writes, const WriteToken& token, const std::string& worker,
                                      Deadline deadline) {
  TRY_VOID(check_writes(writes));
  std::optional<StoredSeal> mine;
  if (!worker.empty()) {
    TRY(mine, read_seal(kv, deadline));
    TRY_VOID(check_seal(mine ? std::optional(mine->seal) : std::nullopt, worker));
  }
  TRY(Epoch::Known known, epoch.of_writer(deadline));
  for (bool is_first = true;; is_first = false) {
    TRY_VOID(check_epoch(known.number, writes));
    Transaction txn;
    for (const Write& write : writes) TRY_VOID(add_write(places, clock, write, token, txn));
    add_seal_condition(mine, txn);
    Epoch::add_to(txn.request, known);
    if (txn.request.success.size() > kOpsMax || txn.request.compares.size() > kOpsMax) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("commit of {} writes is more than etcd takes at once", writes.size()));
    }
    const auto response = kv.txn(txn.request, deadline);
    if (!response) {
      if (response.error().code == ErrorCode::permission_denied) return fail(refused_write(response.error(), writes));
      if (!is_no_space(response.error())) return fail(response.error());
      return settle_full(kv, places, epoch, writes, token, response.error(), deadline);
    }
    if (response->succeeded) {
      if (epoch.number() == known.number) return in_epoch(known.number, response->revision);
      return fail(ErrorCode::unknown_outcome,
                  "etcd became another cluster, or went back, while a commit was under way");
    }
    TRY_VOID(epoch.take(only_one(response->responses.back()), response->cluster, response->revision));
    TRY_VOID(check_seal_in(*response, mine, worker));
    TRY(const Epoch::Known now, epoch.of_writer(deadline));
    if (now.number != known.number) return fail(of_another_epoch());
    // The record of the epoch may say more since.
    if (!is_first || now.record == known.record) return fail(conflict_in(*response, txn));
    known = now;
  }
}

Result<Fate> fate_of_commit(Kv& kv, const Places& places, Epoch& epoch, std::span<const Write> writes,
                            const WriteToken& token, Deadline deadline) {
  const Write& witness = witness_of(places, writes);
  TRY(const std::string place, places.place_of(witness.key));
  TRY(const RangeResponse found, range_with_epoch(kv, places, epoch, RangeRequest::one(place), deadline));
  const KeyValue* there = found.kvs.empty() ? nullptr : &found.kvs.front();
  if (there != nullptr && witness.value && is_written_by(places, witness.key, *witness.value, token, there->value)) {
    return Fate::applied;
  }
  switch (witness.condition.kind) {
    case Condition::Kind::absent:
      return there != nullptr ? Fate::lost : Fate::may_still_come;
    case Condition::Kind::revision:
      return there != nullptr && in_epoch(epoch.number(), there->mod_revision) == witness.condition.revision
                 ? Fate::may_still_come
                 : Fate::lost;
    case Condition::Kind::any:
      break;
  }
  return Fate::may_still_come;
}

}  // namespace croft::store::etcd
