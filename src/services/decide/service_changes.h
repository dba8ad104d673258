#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "register/service.h"
#include "register/snapshot.h"
#include "services/decide/service_bitmap.h"

namespace croft::core {

/// The ranges that a change goes by: kube-apiserver's flags. A value that is not given is as the record says, or
/// without a record as kube-apiserver has it without flags: 10.0.0.0/24, no second family, 30000-32767. A record whose
/// range differs from the flag is not written: the repair moves a range.
struct ServiceRanges {
  std::optional<service::ServiceCidrs> cidrs;
  std::optional<service::NodePortRange> node_ports;
  /// The first use makes a range without a record, from what the stored Services of either kind hold. Not where
  /// somebody else claims its addresses (register/address_claims.h), nor where Kubernetes keeps them as objects or
  /// makes the ranges itself.
  bool may_make = false;
};

/// The ranges that one change of a Service reads and writes. Until its reader is ready, all answers are void.
class RangeChanges {
 public:
  /// Asks for all records of ranges.
  RangeChanges(Reader& reader, const ServiceRanges& ranges, Random& random);

  /// The families that Services get addresses of, one or two; the first is the default.
  [[nodiscard]] const std::vector<net::Family>& families() const { return families_; }

  /// Error: corrupt, where the record of the primary range tells of none.
  [[nodiscard]] Result<void> check_usable() const;

  /// Lets the Service's values become free with settle(), except those taken again by name.
  void hold(const Service& before);
  [[nodiscard]] std::optional<net::Address> held_address(net::Family family) const;
  [[nodiscard]] bool holds(std::uint16_t port) const;

  /// Errors, with the reference's texts: already_exists, invalid_argument; exhausted when nothing is free.
  [[nodiscard]] Result<void> take(const net::Address& address);
  [[nodiscard]] Result<net::Address> take_next(net::Family family);
  [[nodiscard]] Result<void> take_port(std::uint16_t port);
  [[nodiscard]] Result<std::uint16_t> take_next_port();

  /// Frees what is no longer held, and plans the records that changed.
  [[nodiscard]] std::vector<PlannedWrite> settle();
  /// Values that could not be given back.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  template <service::RangeMap M>
  struct Slot {
    std::string_view name;
    std::string_view resource;                       ///< Kubernetes' word for what it allocates
    std::optional<M> wanted{};                       ///< the range by flag, record or default
    const RangeAllocation* before = {};              ///< the record
    std::optional<service::BitmapRange<M>> range{};  ///< the bits: of the record, or made
    std::string refusal{};                           ///< why nothing can be taken; empty when it can
    bool is_new = false;
  };
  using AddressSlot = Slot<service::ServiceCidr>;

  template <service::RangeMap M>
  void read(Slot<M>& slot);
  template <service::RangeMap M>
  [[nodiscard]] Result<service::BitmapRange<M>*> open(Slot<M>& slot);
  [[nodiscard]] std::string objects_instead();
  template <service::RangeMap M>
  void make(Slot<M>& slot);
  template <service::RangeMap M>
  void plan(const Slot<M>& slot, std::vector<PlannedWrite>& writes) const;
  [[nodiscard]] Result<AddressSlot*> slot_of(net::Family family);

  Reader& reader_;
  Random& random_;
  const bool may_make_;
  std::vector<net::Family> families_;
  AddressSlot primary_{kServiceIps, "serviceipallocations"};
  AddressSlot secondary_{kSecondaryServiceIps, "serviceipallocations"};
  Slot<service::NodePortRange> ports_{kServiceNodePorts, "servicenodeportallocations"};
  std::vector<net::Address> held_;
  std::vector<std::uint16_t> held_ports_;
  std::vector<std::string> notes_;
};

}  // namespace croft::core

// Changes of a Service and of the ranges when one is made, changed or deleted
// (docs/notes/service-ranges.md#service): one plan, one commit. So nothing is ever allocated for a Service that is
// not there, and nothing has to be taken back; Kubernetes' own order, allocate first and store later, leaks when
// something fails between.

namespace croft::core {

/// Why a Service was not made, changed or found: an answer, not a fault. Nothing was allocated then. Texts are those of
/// Kubernetes' API.
struct ServiceRefusal {
  std::string reason;   ///< Kubernetes' word for it: Invalid, InternalError, NotFound, AlreadyExists, Conflict
  std::string message;  ///< for `Invalid` the whole of it: `The Service "a" is invalid: spec.ports: Required value`

  /// As kubectl prints it.
  [[nodiscard]] std::string to_string() const;
  friend bool operator==(const ServiceRefusal&, const ServiceRefusal&) = default;
};

/// A value of a field that cannot be: `value` as it is to be printed.
[[nodiscard]] ServiceRefusal refuse_value(const Service& service, std::string_view field, std::string_view value,
                                          std::string_view why);
/// A field that is missing or must not be there: `what` is `Required value`, `Forbidden: …`.
[[nodiscard]] ServiceRefusal refuse_field(const Service& service, std::string_view field, std::string_view what);
/// No field is to blame.
[[nodiscard]] ServiceRefusal refuse_internal(std::string_view message);
[[nodiscard]] ServiceRefusal refuse_not_found(const ServiceName& name);
[[nodiscard]] ServiceRefusal refuse_existing(const ServiceName& name);
/// The caller read another version than the one that is stored now.
[[nodiscard]] ServiceRefusal refuse_stale(const ServiceName& name);

/// A list as it stands in such a text: like JSON, empty as `null`.
[[nodiscard]] std::string printed(const std::vector<std::string>& texts);

/// Kubernetes bounds the bytes of an object only; this is far beyond any use, and keeps a decision short.
inline constexpr std::size_t kServicePortsMax = 2000;

/// Whether a Service may have this name in this namespace.
[[nodiscard]] std::optional<ServiceRefusal> check_service_name(const ServiceName& name);

/// Completes a Service: checks what concerns addresses and ports, settles its families, takes the addresses and node
/// ports that it names and the next free ones for the others (docs/notes/service-ranges.md#service).
///
/// `before` is the Service that it replaces, held by `changes` (RangeChanges::hold); null for a new one. Values
/// that it held and the new one does not name stay, so that a manifest can be applied again. Values without a use for
/// the new type go. All else may change: an update is a deletion and a creation in one commit.
[[nodiscard]] std::optional<ServiceRefusal> complete_service(Service& service, const Service* before,
                                                             RangeChanges& changes);

struct ServiceChanged {
  Service service;
  std::vector<std::string> notes;  ///< what a person should know besides
};
using ServiceAnswer = std::variant<ServiceChanged, ServiceRefusal>;

/// Decides the creation of a Service as a caller wants it: values that are not named are defaulted or allocated. Its
/// UID and time are new.
[[nodiscard]] Step<ServiceAnswer> plan_create_service(const Snapshot& snapshot, const Service& wanted,
                                                      const ServiceRanges& ranges, const Instant& now, Random& random);

/// Decides the replacement of a Service by what a caller wants it to be (PUT): values that were allocated and are not
/// named stay. With `as_read`, only if it still is what the caller read.
[[nodiscard]] Step<ServiceAnswer> plan_update_service(const Snapshot& snapshot, const Service& wanted,
                                                      const std::optional<Service>& as_read,
                                                      const ServiceRanges& ranges, Random& random);

/// Decides the deletion of a Service: what it holds becomes free in the same commit, in the ranges that the records
/// tell of, also where another Service says to hold the same. The repair finds that.
[[nodiscard]] Step<ServiceAnswer> plan_delete_service(const Snapshot& snapshot, const ServiceName& name,
                                                      Random& random);

}  // namespace croft::core
