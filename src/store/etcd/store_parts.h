#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "register/records.h"
#include "register/snapshot.h"
#include "store/calico/codec.h"
#include "store/etcd/client.h"
#include "store/etcd/etcd_store.h"
#include "store/etcd/format/api.h"
#include "store/pause.h"
#include "store/store.h"

// The contract's revisions are etcd's with the number of an epoch in front, so that two that are equal are of one
// epoch. One process compares them; what it prints is etcd's own as long as the epoch is the first that it met.
namespace croft::store::etcd {

/// How many epochs of the register a process has met before this one.
using EpochNumber = std::uint32_t;

inline constexpr int kRevisionBits = 44;
inline constexpr EpochNumber kEpochNumberMax = (EpochNumber{1} << (64 - kRevisionBits)) - 1;
static_assert(wire::etcd::kRevisionMax == (Revision{1} << kRevisionBits) - 1);

/// `revision` is 0 to kRevisionMax, as every answer that was decoded has it.
[[nodiscard]] constexpr store::Revision revision_in_epoch(EpochNumber number, Revision revision) {
  return store::Revision(std::uint64_t{number} << kRevisionBits | static_cast<std::uint64_t>(revision));
}
[[nodiscard]] constexpr EpochNumber epoch_of(store::Revision revision) {
  return static_cast<EpochNumber>(revision.value >> kRevisionBits);
}
[[nodiscard]] constexpr Revision etcd_revision_of(store::Revision revision) {
  return static_cast<Revision>(revision.value & static_cast<std::uint64_t>(wire::etcd::kRevisionMax));
}

/// A register's record of itself (docs/formats/calico.md#epoch).
struct EpochRecord {
  std::uint64_t epoch = 0;    ///< random, not 0
  std::uint64_t cluster = 0;  ///< the etcd cluster that it was written in
  std::string kube_system;    ///< UID of the namespace kube-system; empty: of no Kubernetes cluster yet
};
/// The key of it, beside the roots of Croft's own records.
inline constexpr const char* kEpochPlace = "/croft/v1/epoch";

/// One store object's knowledge of the register's epoch. Each first answer of a read brings the record, and each commit
/// compares it. Another epoch, another cluster and an older state of the same one (Client::history) all begin another
/// number. The first writer of a register makes one. Safe to call from several threads.
class Epoch {
 public:
  /// Both must outlive it. With `only_looks` a register of another cluster may be read: to be compared with what runs.
  Epoch(Client& client, Random& random, bool only_looks) : client_(client), only_looks_(only_looks), random_(random) {}

  [[nodiscard]] EpochNumber number();

  /// The values that a commit compares.
  struct Known {
    EpochNumber number = 0;
    std::optional<std::string> record;  ///< as it is stored; absent: there is none
    std::uint64_t cluster = 0;
  };
  /// The record of a register that is to be written: asked for where no answer has brought it yet, and made where there
  /// is none. Errors: as take(), and those of Client::range and Client::txn.
  [[nodiscard]] Result<Known> of_writer(Deadline deadline);
  /// Asks for it in any case.
  [[nodiscard]] Result<Known> look(Deadline deadline);

  /// Takes in the record of an answer, null where there is none; one that an answer of a later revision has brought
  /// counts more. Errors: corrupt; unavailable, naming the remedy, when
  /// it was written in another cluster than the one that answered.
  [[nodiscard]] Result<void> take(const wire::etcd::KeyValue* record, std::uint64_t cluster, Revision revision);

  /// Adds to a commit, as its last condition, that the epoch is still what is known.
  static void add_to(TxnRequest& txn, const Known& known);

  /// As HasEpoch.
  [[nodiscard]] Result<void> begin(Deadline deadline);
  [[nodiscard]] Result<void> belong_to(const std::string& kube_system, Deadline deadline);

 private:
  void follow_history();
  [[nodiscard]] std::uint64_t drawn();
  [[nodiscard]] Result<bool> replace(const std::optional<std::string>& before, const EpochRecord& after,
                                     Deadline deadline);

  Client& client_;
  const bool only_looks_;
  std::mutex mutex_;  ///< guards all below
  Random& random_;
  EpochNumber number_ = 0;
  std::uint64_t history_ = 0;  ///< of `client_`, that `number_` counts
  std::optional<std::string> record_;
  std::uint64_t epoch_ = 0;  ///< of `record_`; 0: there is none
  std::uint64_t cluster_ = 0;
  Revision seen_at_ = 0;  ///< of the answer that brought it; 0: it may be older
};

// Where records are in etcd: Calico's under Calico's keys, Croft's own under /croft/v1/ (docs/formats/calico.md),
// Kubernetes' where the registry says (docs/formats/kubernetes.md).

/// Keys in [from, to).
struct PlaceRange {
  std::string from;
  std::string to;
};

/// The way between records and keys. The registry, if there is one, must outlive it.
class Places {
 public:
  explicit Places(const Registry* registry) : registry_(registry) {}

  /// Error: invalid_argument for a kind that only a registry has, where there is none.
  [[nodiscard]] Result<void> check_kind(core::Kind kind) const;
  /// Nothing where the kind is not the registry's.
  [[nodiscard]] const Registry* registry_of(core::Kind kind) const {
    return registry_ != nullptr && registry_->has(kind) ? registry_ : nullptr;
  }

  /// For who may not read what is Croft's own: there is none of it, and nothing beside Calico's records. Not meant for
  /// writers.
  void leave_out_own() { has_own_ = false; }
  [[nodiscard]] bool has_own() const { return has_own_; }
  [[nodiscard]] bool leaves_out(core::Kind kind) const;
  /// calico::place_beside() and places_beside(), where that is not left out.
  [[nodiscard]] std::optional<std::string> place_beside(const core::Key& key) const;
  [[nodiscard]] std::optional<std::string> places_beside(core::Kind kind) const;

  /// The key of a record. Error: invalid_argument for a name that can have none, and as check_kind.
  [[nodiscard]] Result<std::string> place_of(const core::Key& key) const;
  /// The record of a key of this kind; nothing for a key that belongs to none. A block whose key has host bits or
  /// another spelling keeps it in its name (core::block_cidr_of).
  [[nodiscard]] std::optional<core::Key> record_at(core::Kind kind, std::string_view place) const;
  /// The same for a list of keys alone, which is a hint and may be long. A block's CIDR is not parsed, so that a name
  /// may come out that no record can have.
  [[nodiscard]] std::optional<core::Key> listed_at(core::Kind kind, std::string_view place) const;
  /// The ranges, ascending, that hold every key of a listing, and maybe others: whoever lists filters by name. The
  /// order of keys in them is the order of names. Error: as check_kind.
  [[nodiscard]] Result<std::vector<PlaceRange>> ranges_of(const core::Listing& listing) const;

 private:
  [[nodiscard]] std::string root_of(core::Kind kind) const;

  const Registry* registry_;
  bool has_own_ = true;
};

// The calls of a store in etcd, and what they have in common.

/// The common ground of the calls of one store.
struct CallContext {
  Client& client;
  const Places& places;
  Epoch& epoch;
  const Clock& clock;
};

// ---------------------------------------------------------------- records and their bytes

/// As store/calico/codec.h, or the registry's.
[[nodiscard]] calico::StoredBytes encode(const Places& places, const Value& value, const WriteToken& token,
                                         WallTime now);

/// The record in a key's value and the one beside it, which are of `epoch`. When they cannot be understood, or a block
/// contradicts itself, the record's error names the key.
[[nodiscard]] Result<Record> decode(const Places& places, const Key& key, const wire::etcd::KeyValue& kv,
                                    const std::optional<std::string>& beside, EpochNumber epoch);

/// Whether the stored value was written by a commit with this value and token. The token tells where the format has it,
/// else the value is what that commit would have written.
[[nodiscard]] bool is_written_by(const Places& places, const Key& key, const Value& value, const WriteToken& token,
                                 std::string_view stored);

/// Whether what a put stores names its commit, so that is_written_by needs no luck: somebody else may have written the
/// same bytes.
[[nodiscard]] bool names_its_commit(const Places& places, const Write& write);

// ---------------------------------------------------------------- requests

/// The key-value of the answer to range_of_key(); null when there is no such key.
[[nodiscard]] inline const wire::etcd::KeyValue* only_one(const RangeResponse& response) {
  return response.kvs().empty() ? nullptr : &response.kvs(0);
}
/// The same of a part of a transaction's.
[[nodiscard]] inline const wire::etcd::KeyValue* only_one(const TxnResponse& response, std::size_t part) {
  return only_one(response.responses(static_cast<int>(part)).response_range());
}

// ---------------------------------------------------------------- calls

/// As Store::for_each, in order. The data beside the records of a page is of the same moment as they are.
[[nodiscard]] Result<void> for_each_record(const CallContext& parts, const ListRequest& request,
                                           const Store::Until& until, const Store::Take& take);

/// Everything a decision asks for, as Store::read: in one request the first page of all, then what did not fit, as of
/// the same moment.
[[nodiscard]] Result<ReadAnswer> read_missing(const CallContext& parts, const core::Missing& wanted, Deadline deadline);

/// As Store::position.
[[nodiscard]] Result<store::Revision> position_now(const CallContext& parts, Deadline deadline);

/// A range as of now, and the epoch's record taken in with it. Errors: of Client::txn and Epoch::take.
[[nodiscard]] Result<RangeResponse> range_with_epoch(const CallContext& parts, const RangeRequest& request,
                                                     Deadline deadline);

/// The pause's key, beside the roots of Croft's own records.
inline constexpr const char* kPausePlace = "/croft/v1/pause";
/// The pause as Pausable has it; its revision is etcd's mod_revision.
[[nodiscard]] Result<std::optional<StoredPause>> read_pause(Client& client, Deadline deadline);
/// Put in the place of `there`, or taken away.
[[nodiscard]] Result<void> change_pause(Client& client, const std::optional<StoredPause>& there,
                                        const std::optional<core::Pause>& next, Deadline deadline);

/// One transaction that writes all or nothing, as Store::commit. It is done only in the epoch in which its conditions
/// were read, and while there is no pause but where it fills the store (Pausable::fill).
[[nodiscard]] Result<store::Revision> commit_writes(const CallContext& parts, std::span<const Write> writes,
                                                    const WriteToken& token, bool is_filling, Deadline deadline);

/// As Store::fate_of: told by the one of the commit's writes that names it best.
[[nodiscard]] Result<Fate> fate_of_commit(const CallContext& parts, std::span<const Write> writes,
                                          const WriteToken& token, Deadline deadline);

/// A watch of records over etcd's watches. It survives the loss of a connection, and ends with the epoch of `after`.
/// `store` reads what a change leaves open; all arguments but the scope must outlive it. Its kinds must be such as the
/// places have.
[[nodiscard]] std::unique_ptr<Watch> make_watch(const CallContext& parts, Store& store, Random& random,
                                                const WatchScope& scope, store::Revision after);

}  // namespace croft::store::etcd
