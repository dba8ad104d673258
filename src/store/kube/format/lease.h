#pragma once

// Leases of coordination.k8s.io/v1, by which one of several programs leads
// (docs/reference/kubernetes-client.md#leases).

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "store/kube/format/api.h"
#include "store/kube/format/requests.h"

namespace croft::wire::kube {

inline constexpr ApiResource kLeases{"coordination.k8s.io", "v1", "leases"};

/// What client-go's leader election keeps in the `spec` of a Lease.
struct LeaseRecord {
  std::string holder;            ///< empty: nobody, it was released or never taken
  std::int64_t duration_s = 0;   ///< as its holder promises to renew it, at least 1; 0: not said
  std::string acquired;          ///< by the holder's clock, for people: nothing is decided by it. A text, as found:
  std::string renewed;           ///<   what is no time to us must not keep everybody from leading
  std::int64_t transitions = 0;  ///< how often it changed hands
  friend bool operator==(const LeaseRecord&, const LeaseRecord&) = default;
};

/// A time as a Lease has it, a MicroTime of Kubernetes: UTC with exactly six digits behind the point.
[[nodiscard]] std::string micro_time(WallTime time);

/// A Lease as it was read.
struct Lease {
  LeaseRecord record;
  ApiMeta meta;
  std::string json;  ///< all of it, for encode_changed_lease
};

/// What the Lease of this name says of itself.
[[nodiscard]] ApiObjectOf lease_of(const std::string& name_space, const std::string& name);
/// The answer to a GET, POST or PUT of that one. Error: corrupt, naming the member; it is another.
[[nodiscard]] Result<Lease> decode_lease(std::string json, const ApiObjectOf& of);

/// The record of a Lease that came as an event of a watch. Error: likewise.
[[nodiscard]] Result<LeaseRecord> decode_lease_record(JsonRef lease);

/// The body of a POST.
[[nodiscard]] std::string encode_new_lease(std::string_view name_space, std::string_view name,
                                           const LeaseRecord& record);
/// The body of a PUT: what was read, its resourceVersion and all that is not ours included, with another record.
/// Error: corrupt when `before.json` is no Lease.
[[nodiscard]] Result<std::string> encode_changed_lease(const Lease& before, const LeaseRecord& record);

}  // namespace croft::wire::kube
