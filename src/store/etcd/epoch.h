#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "store/etcd/client.h"
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
[[nodiscard]] constexpr store::Revision in_epoch(EpochNumber number, Revision revision) {
  return store::Revision(std::uint64_t{number} << kRevisionBits | static_cast<std::uint64_t>(revision));
}
[[nodiscard]] constexpr EpochNumber epoch_of(store::Revision revision) {
  return static_cast<EpochNumber>(revision.value >> kRevisionBits);
}
[[nodiscard]] constexpr Revision in_etcd(store::Revision revision) {
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
  void fold_history();
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

}  // namespace croft::store::etcd
