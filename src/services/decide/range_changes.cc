#include "services/decide/range_changes.h"

#include <algorithm>
#include <type_traits>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/net/echo.h"
#include "register/address_claims.h"
#include "services/decide/questions.h"

namespace croft::core {
namespace {

/// What a dry run's first port is when it has none (docs/notes/service-ranges.md#port-operation).
constexpr int kDryFirstPort = 32769;

[[nodiscard]] NotTaken not_taken(const Error& error) { return {error.message, error.code == ErrorCode::exhausted}; }

}  // namespace

RangeChanges::RangeChanges(Reader& reader, const ServiceRanges* ranges, Random& random, bool dry_run)
    : reader_(reader), random_(random), dry_run_(dry_run), may_make_(ranges != nullptr && ranges->may_make) {
  if (ranges == nullptr) return;
  const auto want = [&](AddressSlot& slot, const net::Prefix& cidr) {
    if (!cidr.is_valid()) return;
    families_.push_back(cidr.family());
    if (auto made = service::ServiceCidr::make(cidr)) {
      slot.wanted = *std::move(made);
    } else {
      slot.is_open = true;
      slot.refusal = made.error().message;
    }
  };
  want(primary_, ranges->cidrs.primary);
  want(secondary_, ranges->cidrs.secondary);
  if (ranges->node_ports.size() > 0) ports_.wanted = ranges->node_ports;
}

template <service::RangeMap M>
void RangeChanges::open(Slot<M>& slot, bool to_take) {
  const auto key = range_allocation_key(slot.name);
  if (slot.is_open) return;
  const RangeAllocation* stored = reader_.get(key);
  if (stored == nullptr && reader_.missing().records.contains(key)) {
    slot.refusal = "not read yet";
    return;
  }
  slot.refusal.clear();
  if constexpr (std::is_same_v<M, service::ServiceCidr>) {
    const bool takes = to_take && (stored != nullptr || may_make_);
    if (takes) slot.refusal = objects_instead();
    if (takes && stored == nullptr && !slot.refusal.empty()) return;
  }
  if (stored == nullptr) {
    if (to_take && may_make_ && slot.wanted) {
      slot.is_open = slot.is_new = true;
      make(slot);
    } else {
      slot.refusal = fmt::format(
          "cannot allocate resources of type {} at this time: there is no record {}; a kube-apiserver makes it when it "
          "starts, and where there is none `croft service create --make-ranges` does",
          slot.resource, slot.name);
    }
    return;
  }
  slot.is_open = true;
  slot.before = *stored;
  // Values are given back to the range that the record tells of, whatever the configuration says by now.
  auto restored = service::range_from<M>({stored->range, stored->data});
  if (restored) {
    slot.range = std::move(restored->range);
    if (restored->beyond > 0) {
      notes_.push_back(fmt::format("the range {} had {} beyond its end {}; a change of it leaves out what is beyond",
                                   slot.name, counted(restored->beyond, "bit"), net::echo(stored->range)));
    }
  }
  if (slot.refusal.empty() && (!restored || !slot.wanted || slot.wanted->text() != stored->range)) {
    slot.refusal = "the provided range does not match the current range";
  }
}

/// Calls f for every Service that may hold values of the ranges: those of the store, and those of the other kind.
template <class F>
void RangeChanges::for_each_holder(F f) {
  for (const auto& [key, value] : reader_.list({Kind::service, ""})) f(std::get<Service>(value));
  if (!reader_.foreign_writers()) return;
  for (const auto& [key, value] : reader_.list({Kind::foreign_service, ""})) f(std::get<ForeignService>(value).service);
}

/// Why no address may be taken although the configuration lets it be: Kubernetes gives them out past the bitmap.
std::string RangeChanges::objects_instead() {
  if (!reader_.foreign_writers()) return {};
  const auto& cidrs = reader_.list({Kind::service_cidr, ""});
  if (cidrs.empty()) return {};
  return fmt::format(
      "Kubernetes keeps the addresses of Services as IPAddress objects here (ServiceCIDR {}): no others "
      "are given out beside it",
      net::echo(cidrs.front().first.name));
}

void RangeChanges::make(AddressSlot& slot) {
  slot.range.emplace(*slot.wanted);
  if (const auto others = AddressClaims(reader_).against_services(slot.wanted->cidr())) {
    slot.refusal = fmt::format("the range {} overlaps {}; choose another --service-cluster-ip-range",
                               slot.wanted->text(), *others);
    slot.range.reset();
    return;
  }
  for_each_holder([&](const Service& service) {
    const std::vector<net::Address> addresses = addresses_of(service);
    for (const net::Address& address : addresses) {
      if (!slot.range->has(address)) static_cast<void>(slot.range->take(address));
    }
    const bool is_read = is_external_name(service) || is_headless(service) ||
                         std::ranges::all_of(service.cluster_ips, [](const std::string& text) {
                           return text.empty() || net::parse_address_leniently(text);
                         });
    if (is_read) return;
    slot.refusal =
        fmt::format("the address of Service {} can't be read, and the range {} may have it; mend or delete it",
                    net::echo(service.name.to_string()), slot.wanted->text());
  });
  if (!slot.refusal.empty()) slot.range.reset();
}

void RangeChanges::make(Slot<service::NodePortRange>& slot) {
  slot.range.emplace(*slot.wanted);
  for_each_holder([&](const Service& service) {
    for (const std::uint16_t port : held_node_ports_of(service)) {
      if (!slot.range->has(port)) static_cast<void>(slot.range->take(port));
    }
  });
}

RangeChanges::AddressSlot* RangeChanges::slot_of(net::Family family) {
  for (AddressSlot* slot : {&primary_, &secondary_}) {
    if (slot->wanted && slot->wanted->cidr().family() == family) return slot;
  }
  return nullptr;
}

std::optional<NotTaken> RangeChanges::take(const net::Address& address) {
  AddressSlot* slot = slot_of(address.family());
  if (slot == nullptr) return NotTaken{fmt::format("no range of its family is configured for {}", address.to_string())};
  if (!slot->wanted->ordinal_of(address)) return NotTaken{slot->wanted->not_in_range(address)};
  if (dry_run_) return std::nullopt;
  open(*slot, true);
  if (!slot->refusal.empty()) return NotTaken{slot->refusal};
  const auto taken = slot->range->take(address);
  return taken ? std::nullopt : std::optional(not_taken(taken.error()));
}

TakenOr<net::Address> RangeChanges::take_next(net::Family family) {
  AddressSlot* slot = slot_of(family);
  if (slot == nullptr) return NotTaken{"no range of this family is configured"};
  if (dry_run_) return slot->wanted->cidr().address();
  open(*slot, true);
  if (!slot->refusal.empty()) return NotTaken{slot->refusal};
  const auto taken = slot->range->take_next(random_);
  if (!taken) return not_taken(taken.error());
  return *taken;
}

std::optional<NotTaken> RangeChanges::take_port(std::uint16_t port) {
  if (dry_run_) {
    open(ports_, false);
    const bool is_known = std::find(dry_ports_.begin(), dry_ports_.end(), port) != dry_ports_.end();
    if (is_known || (ports_.range && ports_.range->has(port))) {
      return NotTaken{std::string(service::NodePortRange::kAllocated)};
    }
    dry_ports_.push_back(port);
    return std::nullopt;
  }
  if (!ports_.wanted || !ports_.wanted->ordinal_of(port)) {
    return NotTaken{ports_.wanted ? ports_.wanted->not_in_range(port) : "no range of node ports is configured"};
  }
  open(ports_, true);
  if (!ports_.refusal.empty()) return NotTaken{ports_.refusal};
  const auto taken = ports_.range->take(port);
  return taken ? std::nullopt : std::optional(not_taken(taken.error()));
}

TakenOr<std::uint16_t> RangeChanges::take_next_port() {
  if (dry_run_) {
    const int next = dry_ports_.empty() ? kDryFirstPort : *std::max_element(dry_ports_.begin(), dry_ports_.end()) + 1;
    dry_ports_.push_back(std::min(next, 65535));
    return static_cast<std::uint16_t>(dry_ports_.back());
  }
  open(ports_, true);
  if (!ports_.refusal.empty()) return NotTaken{ports_.refusal};
  const auto taken = ports_.range->take_next(random_);
  if (!taken) return not_taken(taken.error());
  return static_cast<std::uint16_t>(*taken);
}

void RangeChanges::will_take(bool addresses, bool ports) {
  if (dry_run_) return;
  if (addresses) {
    for (const AddressSlot* slot : {&primary_, &secondary_}) {
      if (slot->wanted) static_cast<void>(reader_.get(range_allocation_key(slot->name)));
    }
    static_cast<void>(objects_instead());
  }
  if (ports) static_cast<void>(reader_.get(range_allocation_key(ports_.name)));
}

bool RangeChanges::makes_primary() {
  if (dry_run_ || !may_make_ || !primary_.wanted) return false;
  open(primary_, true);
  return primary_.is_new;
}

void RangeChanges::free(const net::Address& address) {
  for (AddressSlot* slot : {&primary_, &secondary_}) {
    open(*slot, false);
    if (slot->range && slot->range->map().ordinal_of(address)) {
      slot->range->give_back(address);
      return;
    }
  }
  notes_.push_back(fmt::format("{} was given back to no range: none contains it", address.to_string()));
}

void RangeChanges::free_port(std::uint16_t port) {
  open(ports_, false);
  if (ports_.range && ports_.range->map().ordinal_of(port)) {
    ports_.range->give_back(port);
    return;
  }
  notes_.push_back(fmt::format("port {} was given back to no range: none contains it", port));
}

template <service::RangeMap M>
void RangeChanges::plan(const Slot<M>& slot, std::vector<PlannedWrite>& writes) const {
  if (!slot.range) return;
  service::RangeSnapshot snapshot = slot.range->snapshot();
  if (slot.before && slot.before->data == snapshot.data) return;
  RangeAllocation after = slot.before.value_or(RangeAllocation{});
  after.range = std::move(snapshot.range);
  after.data = std::move(snapshot.data);
  writes.push_back(to_put(range_allocation_key(slot.name), std::move(after)));
}

std::vector<PlannedWrite> RangeChanges::settle() {
  if (dry_run_) return {};
  // So that one reading brings all that is needed.
  if (given_back_.size() > 1) {
    static_cast<void>(reader_.get(range_allocation_key(primary_.name)));
    static_cast<void>(reader_.get(range_allocation_key(secondary_.name)));
  }
  if (!given_back_ports_.empty()) static_cast<void>(reader_.get(range_allocation_key(ports_.name)));
  // Who makes one range makes all: the next one who comes knows the configuration by them.
  if (primary_.is_new || secondary_.is_new || ports_.is_new) {
    open(primary_, true);
    open(secondary_, true);
    open(ports_, true);
  }
  for (const net::Address& address : given_back_) free(address);
  for (const std::uint16_t port : given_back_ports_) free_port(port);
  std::vector<PlannedWrite> writes;
  plan(primary_, writes);
  plan(secondary_, writes);
  plan(ports_, writes);
  // A new claim on the address space: whoever makes another one meanwhile is to see a conflict.
  if (primary_.is_new || secondary_.is_new) writes.push_back(next_pool_set(reader_));
  return writes;
}

}  // namespace croft::core
