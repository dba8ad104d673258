#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "register/allocation.h"
#include "register/service.h"
#include "register/snapshot.h"
#include "services/decide/mapped_range.h"

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
    std::optional<service::MappedRange<M>> range{};  ///< the bits: of the record, or made
    std::string refusal{};                           ///< why nothing can be taken; empty when it can
    bool is_new = false;
  };
  using AddressSlot = Slot<service::ServiceCidr>;

  template <service::RangeMap M>
  void read(Slot<M>& slot);
  template <service::RangeMap M>
  [[nodiscard]] Result<service::MappedRange<M>*> open(Slot<M>& slot);
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
