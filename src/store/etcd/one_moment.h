#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "store/etcd/epoch.h"
#include "store/etcd/kv.h"
#include "store/etcd/place.h"
#include "store/store.h"

// Reads of several requests that see etcd as of one moment.
namespace croft::store::etcd {

/// How often a read begins anew because the epoch became another meanwhile.
inline constexpr int kReadsMax = 3;

/// Calls `read` with the number of the epoch that all it reads has to be of, and again where it was not.
template <class Read>
auto read_in_one_epoch(Epoch& epoch, Read read) -> decltype(read(EpochNumber{})) {
  for (int i = 0; i < kReadsMax; ++i) {
    const EpochNumber number = epoch.number();
    auto answer = read(number);
    if (epoch.number() == number) return answer;
  }
  return fail(ErrorCode::unavailable,
              "etcd answers from one cluster and then from another; are its endpoints those of one?");
}

/// A range as of now, and the epoch's record taken in with it. Errors: of Kv::txn and Epoch::take.
[[nodiscard]] Result<RangeResponse> range_with_epoch(Kv& kv, const Places& places, Epoch& epoch,
                                                     const RangeRequest& request, Deadline deadline);

/// Calls `visit` for all that `request` asks for, page by page; `first` is the page that has come, and the others are
/// as of `moment`. Errors: those of range() and of `visit`; corrupt for a listing that does not end.
[[nodiscard]] Result<void> for_each_key(Kv& kv, RangeRequest request, const RangeResponse& first, Revision moment,
                                        Deadline deadline,
                                        const std::function<Result<void>(const wire::etcd::KeyValue&)>& visit);

/// The data beside the records of a kind, read in the same way.
[[nodiscard]] Result<std::map<Key, std::string>> all_beside(Kv& kv, Kind kind, const RangeRequest& request,
                                                            const RangeResponse& first, Revision moment,
                                                            Deadline deadline);
/// The part of it that is beside this record.
[[nodiscard]] std::optional<std::string> beside_of(const Key& key, const std::map<Key, std::string>& all);

}  // namespace croft::store::etcd
