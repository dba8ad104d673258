#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "store/etcd/kv.h"
#include "store/store.h"

// Reads of several requests that see etcd as of one moment.
namespace croft::store::etcd {

/// Where a read of several requests looks: as of one revision, which only its first connection has.
struct Moment {
  Revision revision = 0;  ///< 0: now
  std::optional<Line> line;

  void is_of(const Over<RangeResponse>& answer) { set(answer.revision, answer.line); }
  void is_of(const Over<TxnResponse>& answer) { set(answer.revision, answer.line); }

 private:
  void set(Revision at, Line over) {
    if (line) return;
    revision = at;
    line = over;
  }
};

/// How often a read of several requests begins anew because the connection did not last.
inline constexpr int kReadsMax = 3;

/// Reads again what several requests could not read over one connection.
template <class Read>
auto read_at_once(Read read) -> decltype(read()) {
  for (int i = 1;; ++i) {
    auto answer = read();
    if (answer || !is_other_line(answer.error())) return answer;
    if (i == kReadsMax) return fail(ErrorCode::unavailable, "etcd's connections do not last as long as a read");
  }
}

/// Calls `visit` for all that `request` asks for, page by page; `first` is the page that has come. Errors: those of
/// range() and of `visit`; corrupt for a listing that does not end.
[[nodiscard]] Result<void> for_each_key(Kv& kv, RangeRequest request, const RangeResponse& first, const Moment& moment,
                                        Deadline deadline,
                                        const std::function<Result<void>(const wire::etcd::KeyValue&)>& visit);

/// What is beside the records of a kind, read in the same way.
[[nodiscard]] Result<std::map<Key, std::string>> all_beside(Kv& kv, Kind kind, const RangeRequest& request,
                                                            const RangeResponse& first, const Moment& moment,
                                                            Deadline deadline);
/// What of it is beside this record.
[[nodiscard]] std::optional<std::string> beside_of(const Key& key, const std::map<Key, std::string>& all);

}  // namespace croft::store::etcd
