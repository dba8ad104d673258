#include "services/decide/range_changes.h"

#include <algorithm>
#include <type_traits>

#include <fmt/format.h>

#include "base/net/echo.h"
#include "register/address_claims.h"
#include "services/decide/service_words.h"

namespace croft::core {
namespace {

template <class M>
constexpr bool kOfAddresses = std::is_same_v<M, service::ServiceCidr>;

}  // namespace

RangeChanges::RangeChanges(Reader& reader, const ServiceRanges& ranges, Random& random)
    : reader_(reader), random_(random), may_make_(ranges.may_make) {
  read(primary_);
  read(secondary_);
  read(ports_);
  if (const auto& cidrs = ranges.cidrs) {
    const auto made = [](const net::Prefix& cidr) -> std::optional<service::ServiceCidr> {
      if (!cidr.is_valid()) return std::nullopt;
      auto range = service::ServiceCidr::make(cidr);
      return range ? std::optional(*std::move(range)) : std::nullopt;
    };
    primary_.wanted = made(cidrs->primary);
    secondary_.wanted = made(cidrs->secondary);
  } else if (primary_.before == nullptr) {
    primary_.wanted = service::ServiceCidr::parse("10.0.0.0/24").value();
  }
  if (ranges.node_ports || ports_.before == nullptr) {
    ports_.wanted = ranges.node_ports.value_or(service::parse_node_port_flag("").value());
  }
  for (const AddressSlot* slot : {&primary_, &secondary_}) {
    if (slot->wanted) families_.push_back(slot->wanted->cidr().family());
  }
}

Result<void> RangeChanges::check_usable() const {
  if (!families_.empty()) return {};
  return fail(ErrorCode::corrupt,
              primary_.refusal.empty() ? "no range of Service addresses can be used" : primary_.refusal);
}

/// Values are given back to the range that the record tells of, whatever the flags say by now.
template <service::RangeMap M>
void RangeChanges::read(Slot<M>& slot) {
  slot.before = reader_.get(range_allocation_key(slot.name));
  if (slot.before == nullptr) return;
  auto restored = service::range_from<M>({slot.before->range, slot.before->data});
  if (!restored) {
    slot.refusal = fmt::format("the range of the record {}: {}", slot.name, restored.error().message);
    return;
  }
  slot.range = std::move(restored->range);
  slot.wanted = slot.range->map();
}

/// The range to take from.
template <service::RangeMap M>
Result<service::MappedRange<M>*> RangeChanges::open(Slot<M>& slot) {
  if (kOfAddresses<M> && slot.refusal.empty()) slot.refusal = objects_instead();
  if (slot.before == nullptr && !slot.range && slot.refusal.empty()) {
    if (may_make_ && slot.wanted) {
      make(slot);
    } else {
      slot.refusal = fmt::format(
          "cannot allocate resources of type {} at this time: there is no record {}; a kube-apiserver makes it when it "
          "starts, and where there is none `croft service create --make-ranges` does",
          slot.resource, slot.name);
    }
  }
  if (slot.before != nullptr && slot.refusal.empty() && (!slot.wanted || slot.wanted->text() != slot.before->range)) {
    slot.refusal = "the provided range does not match the current range";
  }
  if (!slot.refusal.empty()) return fail(invalid_argument(slot.refusal));
  return &*slot.range;
}

/// Why no address may be taken: Kubernetes gives them out past the bitmap.
std::string RangeChanges::objects_instead() {
  if (!reader_.foreign_writers()) return {};
  const auto& cidrs = reader_.list({Kind::service_cidr, ""});
  if (cidrs.empty()) return {};
  return fmt::format(
      "Kubernetes keeps the addresses of Services as IPAddress objects here (ServiceCIDR {}): no others "
      "are given out beside it",
      net::echo(cidrs.front().first.name));
}

/// With what the Services of the store hold, and those of the other kind.
template <service::RangeMap M>
void RangeChanges::make(Slot<M>& slot) {
  slot.is_new = true;
  service::MappedRange<M> range(*slot.wanted);
  if constexpr (kOfAddresses<M>) {
    if (const auto others = AddressClaims(reader_).against_services(slot.wanted->cidr())) {
      slot.refusal = fmt::format("the range {} overlaps {}; choose another --service-cluster-ip-range",
                                 slot.wanted->text(), *others);
      return;
    }
  }
  const auto take_of = [&](const Service& service) {
    const auto take = [&](const auto& value) {
      if (!range.has(value)) static_cast<void>(range.take(value));
    };
    if constexpr (kOfAddresses<M>) {
      std::ranges::for_each(addresses_of(service), take);
      if (has_unreadable_address(service)) {
        slot.refusal =
            fmt::format("the address of Service {} can't be read, and the range {} may have it; mend or delete it",
                        net::echo(service.name.to_string()), slot.wanted->text());
      }
    } else {
      std::ranges::for_each(held_node_ports_of(service), take);
    }
  };
  for (const auto& [key, value] : reader_.list({Kind::service, ""})) take_of(std::get<Service>(value));
  if (reader_.foreign_writers()) {
    for (const auto& [key, value] : reader_.list({Kind::foreign_service, ""})) {
      take_of(std::get<ForeignService>(value).service);
    }
  }
  if (slot.refusal.empty()) slot.range = std::move(range);
}

Result<RangeChanges::AddressSlot*> RangeChanges::slot_of(net::Family family) {
  for (AddressSlot* slot : {&primary_, &secondary_}) {
    if (slot->wanted && slot->wanted->cidr().family() == family) return slot;
  }
  return fail(invalid_argument("no range of its family is configured"));
}

void RangeChanges::hold(const Service& before) {
  held_ = addresses_of(before);
  const auto ports = held_node_ports_of(before);
  held_ports_.assign(ports.begin(), ports.end());
}

std::optional<net::Address> RangeChanges::held_address(net::Family family) const {
  const auto found = std::ranges::find(held_, family, &net::Address::family);
  return found != held_.end() ? std::optional(*found) : std::nullopt;
}

bool RangeChanges::holds(std::uint16_t port) const { return std::ranges::find(held_ports_, port) != held_ports_.end(); }

Result<void> RangeChanges::take(const net::Address& address) {
  if (std::erase(held_, address) > 0) return {};
  TRY(AddressSlot* const slot, slot_of(address.family()));
  if (!slot->wanted->ordinal_of(address)) return fail(invalid_argument(slot->wanted->not_in_range(address)));
  TRY(auto* const range, open(*slot));
  return range->take(address);
}

Result<net::Address> RangeChanges::take_next(net::Family family) {
  TRY(AddressSlot* const slot, slot_of(family));
  TRY(auto* const range, open(*slot));
  return range->take_next(random_);
}

Result<void> RangeChanges::take_port(std::uint16_t port) {
  if (std::erase(held_ports_, port) > 0) return {};
  if (ports_.wanted && !ports_.wanted->ordinal_of(port)) {
    return fail(invalid_argument(ports_.wanted->not_in_range(port)));
  }
  TRY(auto* const range, open(ports_));
  return range->take(port);
}

Result<std::uint16_t> RangeChanges::take_next_port() {
  TRY(auto* const range, open(ports_));
  TRY(const int port, range->take_next(random_));
  return static_cast<std::uint16_t>(port);
}

template <service::RangeMap M>
void RangeChanges::plan(const Slot<M>& slot, std::vector<PlannedWrite>& writes) const {
  if (!slot.range) return;
  service::RangeSnapshot snapshot = slot.range->snapshot();
  if (slot.before != nullptr && slot.before->data == snapshot.data) return;
  RangeAllocation after = slot.before != nullptr ? *slot.before : RangeAllocation{};
  after.range = std::move(snapshot.range);
  after.data = std::move(snapshot.data);
  writes.push_back(to_put(range_allocation_key(slot.name), std::move(after)));
}

std::vector<PlannedWrite> RangeChanges::settle() {
  // The change that makes one range makes all: the next one knows the configuration by them.
  if (primary_.is_new || secondary_.is_new || ports_.is_new) {
    static_cast<void>(open(primary_));
    static_cast<void>(open(secondary_));
    static_cast<void>(open(ports_));
  }
  for (const net::Address& address : held_) {
    const auto give_back = [&](AddressSlot& slot) { return slot.range && slot.range->give_back(address); };
    if (give_back(primary_) || give_back(secondary_)) continue;
    notes_.push_back(fmt::format("{} was given back to no range: none has it taken", address.to_string()));
  }
  for (const std::uint16_t port : held_ports_) {
    if (ports_.range && ports_.range->give_back(port)) continue;
    notes_.push_back(fmt::format("port {} was given back to no range: none has it taken", port));
  }
  std::vector<PlannedWrite> writes;
  plan(primary_, writes);
  plan(secondary_, writes);
  plan(ports_, writes);
  // A new claim on the address space: another one made meanwhile sees a conflict.
  if (primary_.is_new || secondary_.is_new) writes.push_back(next_pool_set(reader_));
  return writes;
}

}  // namespace croft::core
