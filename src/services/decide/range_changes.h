#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "register/allocation.h"
#include "register/service.h"
#include "register/snapshot.h"
#include "services/decide/allocators.h"
#include "services/decide/node_ports.h"
#include "services/decide/service_addresses.h"

namespace croft::core {

/// What a cluster's Services get their addresses and node ports from: kube-apiserver's flags. A record that says
/// something else about its range is not written: whoever changes the flags has it rebuilt first.
struct ServiceRanges {
  service::ServiceCidrs cidrs;
  service::NodePortRange node_ports;
  /// A range without a record is made by the first use of any, from what the stored Services of either kind hold,
  /// unless somebody else claims its addresses (register/address_claims.h) or Kubernetes keeps them as objects.
  /// Not where another program makes them: there its absence is an error.
  bool may_make = false;
};

/// The ranges that one change of a Service reads and writes. Asks for their records when they are needed first; when
/// the reader is not ready afterwards, all answers are void.
class RangeChanges : public Allocators {
 public:
  /// `ranges` may be null: then nothing can be taken, only given back. A dry run sees addresses and ports as Kubernetes
  /// shows them to one (services/decide/service_addresses.h, node_ports.h), and writes nothing.
  RangeChanges(Reader& reader, const ServiceRanges* ranges, Random& random, bool dry_run);

  [[nodiscard]] const std::vector<net::Family>& families() const override { return families_; }
  [[nodiscard]] std::optional<NotTaken> take(const net::Address& address) override;
  [[nodiscard]] TakenOr<net::Address> take_next(net::Family family) override;
  void give_back(const net::Address& address) override { given_back_.push_back(address); }
  [[nodiscard]] std::optional<NotTaken> take_port(std::uint16_t port) override;
  [[nodiscard]] TakenOr<std::uint16_t> take_next_port() override;
  void give_back_port(std::uint16_t port) override { given_back_ports_.push_back(port); }

  /// Asks for the records that taking these will need, so that one reading brings them all.
  void will_take(bool addresses, bool ports);
  /// Whether the range of the default family has no record yet, and this change is to make it.
  [[nodiscard]] bool makes_primary();

  /// Frees what was given back, and plans what is to be written: only ranges that are not as they were.
  [[nodiscard]] std::vector<PlannedWrite> settle();
  /// What a person should know: damage that was found, values that could not be given back.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  template <service::RangeMap M>
  struct Slot {
    std::string_view name;
    std::string_view resource;  ///< Kubernetes' word for what it allocates
    std::optional<M> wanted{};  ///< the range by configuration
    bool is_open = false;
    std::optional<RangeAllocation> before{};
    std::optional<service::MappedRange<M>> range{};
    std::string refusal{};  ///< why nothing can be taken; empty when it can
    bool is_new = false;
  };
  using AddressSlot = Slot<service::ServiceCidr>;

  template <service::RangeMap M>
  void open(Slot<M>& slot, bool to_take);
  template <class F>
  void for_each_holder(F f);
  [[nodiscard]] std::string objects_instead();
  void make(AddressSlot& slot);
  void make(Slot<service::NodePortRange>& slot);
  template <service::RangeMap M>
  void plan(const Slot<M>& slot, std::vector<PlannedWrite>& writes) const;
  [[nodiscard]] AddressSlot* slot_of(net::Family family);
  void free(const net::Address& address);
  void free_port(std::uint16_t port);

  Reader& reader_;
  Random& random_;
  const bool dry_run_;
  const bool may_make_;
  std::vector<net::Family> families_;
  AddressSlot primary_{kServiceIps, "serviceipallocations"};
  AddressSlot secondary_{kSecondaryServiceIps, "serviceipallocations"};
  Slot<service::NodePortRange> ports_{kServiceNodePorts, "servicenodeportallocations"};
  std::vector<net::Address> given_back_;
  std::vector<std::uint16_t> given_back_ports_;
  std::vector<int> dry_ports_;  ///< of a dry run
  std::vector<std::string> notes_;
};

}  // namespace croft::core
