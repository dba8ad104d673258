#include "services/decide/service_changes.h"

#include <algorithm>
#include <map>
#include <set>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "base/letters.h"
#include "base/printable.h"
#include "base/texts.h"
#include "register/address_claims.h"
#include "register/service.h"

namespace croft::core {

Result<ServiceRanges> read_service_ranges(std::string_view cidrs_flag, std::string_view ports_flag) {
  ServiceRanges ranges;
  if (!cidrs_flag.empty()) {
    TRY(ranges.cidrs, service::parse_service_cidrs(cidrs_flag));
  }
  if (!ports_flag.empty()) {
    TRY(ranges.node_ports, service::parse_node_port_flag(ports_flag));
  }
  return ranges;
}

namespace {

template <class M>
constexpr bool kOfAddresses = std::is_same_v<M, service::ServiceCidr>;

/// The ranges that one change of a Service reads and writes. Until its reader is ready, all answers are void.
class RangeChanges {
 public:
  /// Asks for all records of ranges.
  RangeChanges(Reader& reader, const ServiceRanges& ranges, Random& random)
      : reader_(reader), random_(random), may_make_(ranges.may_make) {
    for_each([this](auto& slot) { read(slot); });
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

  /// The families that Services get addresses of, one or two; the first is the default.
  [[nodiscard]] const std::vector<net::Family>& families() const { return families_; }

  /// Error: corrupt, where the record of the primary range tells of none.
  [[nodiscard]] Result<void> check_usable() const {
    if (!families_.empty()) return {};
    return fail(ErrorCode::corrupt,
                primary_.refusal.empty() ? "no range of Service addresses can be used" : primary_.refusal);
  }

  /// Lets the Service's values become free with settle(), except those taken again by name.
  void hold(const Service& before) {
    held_ = addresses_of(before);
    const auto ports = held_node_ports_of(before);
    held_ports_.assign(ports.begin(), ports.end());
  }
  [[nodiscard]] std::optional<net::Address> held_address(net::Family family) const {
    const auto found = std::ranges::find(held_, family, &net::Address::family);
    return found != held_.end() ? std::optional(*found) : std::nullopt;
  }
  [[nodiscard]] bool holds(std::uint16_t port) const {
    return std::ranges::find(held_ports_, port) != held_ports_.end();
  }

  /// Errors, with the reference's texts: already_exists, invalid_argument; exhausted when nothing is free.
  [[nodiscard]] Result<void> take(const net::Address& address) {
    if (std::erase(held_, address) > 0) return {};
    TRY(AddressSlot* const slot, slot_of(address.family()));
    return take_of(*slot, address);
  }
  [[nodiscard]] Result<net::Address> take_next(net::Family family) {
    TRY(AddressSlot* const slot, slot_of(family));
    TRY(auto* const range, open(*slot));
    return range->take_next(random_);
  }
  [[nodiscard]] Result<void> take_port(std::uint16_t port) {
    if (std::erase(held_ports_, port) > 0) return {};
    return take_of(ports_, port);
  }
  [[nodiscard]] Result<std::uint16_t> take_next_port() {
    TRY(auto* const range, open(ports_));
    TRY(const int port, range->take_next(random_));
    return static_cast<std::uint16_t>(port);
  }

  /// Frees what is no longer held, and plans the records that changed.
  [[nodiscard]] std::vector<PlannedWrite> settle() {
    // The change that makes one range makes all: the next one knows the configuration by them.
    if (primary_.is_new || secondary_.is_new || ports_.is_new) {
      for_each([this](auto& slot) { static_cast<void>(open(slot)); });
    }
    const auto give_back = [](auto& slot, const auto& value) { return slot.range && slot.range->give_back(value); };
    for (const net::Address& address : held_) {
      if (give_back(primary_, address) || give_back(secondary_, address)) continue;
      notes_.push_back(fmt::format("{} was given back to no range: none has it taken", address));
    }
    for (const std::uint16_t port : held_ports_) {
      if (give_back(ports_, port)) continue;
      notes_.push_back(fmt::format("port {} was given back to no range: none has it taken", port));
    }
    std::vector<PlannedWrite> writes;
    for_each([&](const auto& slot) {
      if (!slot.range) return;
      RangeAllocation after = slot.before != nullptr ? *slot.before : RangeAllocation{};
      RangeAllocation now = slot.range->snapshot();
      if (slot.before != nullptr && after.data == now.data) return;
      after.range = std::move(now.range);
      after.data = std::move(now.data);
      writes.push_back(to_put(range_allocation_key(slot.name), std::move(after)));
    });
    // A new claim on the address space: another one made meanwhile sees a conflict.
    if (primary_.is_new || secondary_.is_new) writes.push_back(next_pool_set(reader_));
    return writes;
  }
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

  template <class F>
  void for_each(F f) {
    f(primary_);
    f(secondary_);
    f(ports_);
  }

  /// Values are given back to the range that the record tells of, whatever the flags say by now.
  template <service::RangeMap M>
  void read(Slot<M>& slot) {
    slot.before = reader_.get(range_allocation_key(slot.name));
    if (slot.before == nullptr) return;
    auto restored = service::range_from<M>(*slot.before);
    if (!restored) {
      slot.refusal = fmt::format("the range of the record {}: {}", slot.name, restored.error().message);
      return;
    }
    slot.range = std::move(restored->range);
    slot.wanted = slot.range->map();
  }

  [[nodiscard]] Result<AddressSlot*> slot_of(net::Family family) {
    for (AddressSlot* slot : {&primary_, &secondary_}) {
      if (slot->wanted && slot->wanted->cidr().family() == family) return slot;
    }
    return fail(invalid_argument("no range of its family is configured"));
  }

  template <service::RangeMap M>
  [[nodiscard]] Result<void> take_of(Slot<M>& slot, const typename M::Value& value) {
    if (slot.wanted && !slot.wanted->ordinal_of(value)) return fail(invalid_argument(slot.wanted->not_in_range(value)));
    TRY(auto* const range, open(slot));
    return range->take(value);
  }

  /// The range to take from.
  template <service::RangeMap M>
  [[nodiscard]] Result<service::BitmapRange<M>*> open(Slot<M>& slot) {
    if (kOfAddresses<M> && slot.refusal.empty()) slot.refusal = objects_instead();
    if (slot.before == nullptr && !slot.range && slot.refusal.empty()) {
      if (may_make_ && slot.wanted) {
        make(slot);
      } else {
        slot.refusal = fmt::format(
            "cannot allocate resources of type {} at this time: there is no record {}; a kube-apiserver makes it when "
            "it starts, and where there is none `croft service create --make-ranges` does",
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
  [[nodiscard]] std::string objects_instead() {
    if (!reader_.foreign_writers()) return {};
    const auto& cidrs = reader_.list({Kind::service_cidr, ""});
    if (cidrs.empty()) return {};
    return fmt::format(
        "Kubernetes keeps the addresses of Services as IPAddress objects here (ServiceCIDR {}): no others are given "
        "out beside it",
        echo(cidrs.front().first.name));
  }

  /// With what the Services of the store hold, and those of the other kind.
  template <service::RangeMap M>
  void make(Slot<M>& slot) {
    slot.is_new = true;
    service::BitmapRange<M> range(*slot.wanted);
    if constexpr (kOfAddresses<M>) {
      if (const auto others = AddressClaims(reader_).against_services(slot.wanted->cidr())) {
        slot.refusal = fmt::format("the range {} overlaps {}; choose another --service-cluster-ip-range",
                                   slot.wanted->text(), *others);
        return;
      }
    }
    const auto add = [&](const Service& service) {
      const auto take = [&](const auto& value) {
        if (!range.has(value)) static_cast<void>(range.take(value));
      };
      if constexpr (kOfAddresses<M>) {
        std::ranges::for_each(addresses_of(service), take);
        if (has_unreadable_address(service)) {
          slot.refusal =
              fmt::format("the address of Service {} can't be read, and the range {} may have it; mend or delete it",
                          echo(service.name.to_string()), slot.wanted->text());
        }
      } else {
        std::ranges::for_each(held_node_ports_of(service), take);
      }
    };
    for (const auto& [key, value] : reader_.list({Kind::service, ""})) add(std::get<Service>(value));
    if (reader_.foreign_writers()) {
      for (const auto& [key, value] : reader_.list({Kind::foreign_service, ""})) {
        add(std::get<ForeignService>(value).service);
      }
    }
    if (slot.refusal.empty()) slot.range = std::move(range);
  }

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

/// A field that is missing or must not be there: `what` is `Required value`, `Forbidden: …`.
[[nodiscard]] ServiceRefusal refuse_field(const Service& service, std::string_view field, std::string_view what) {
  return {"Invalid", fmt::format("The Service {} is invalid: {}: {}", echo(service.name.name), field, what)};
}
/// A value of a field that cannot be: `value` as it is to be printed.
[[nodiscard]] ServiceRefusal refuse_value(const Service& service, std::string_view field, std::string_view value,
                                          std::string_view why) {
  return refuse_field(service, field, fmt::format("Invalid value: {}: {}", value, why));
}
/// No field is to blame.
[[nodiscard]] ServiceRefusal refuse_internal(std::string_view message) {
  return {"InternalError", fmt::format("Internal error occurred: {}", message)};
}

/// A list as it stands in such a text: like JSON, empty as `null`.
[[nodiscard]] std::string printed(const std::vector<std::string>& texts) {
  std::string result;
  for (const std::string& text : texts) result += (result.empty() ? "[" : ",") + echo(text);
  return result.empty() ? "null" : result + "]";
}

using Refused = std::optional<ServiceRefusal>;

/// Kubernetes bounds the bytes of an object only; this is far beyond any use, and keeps a decision short.
constexpr std::size_t kServicePortsMax = 2000;
constexpr auto kIps = "spec.clusterIPs";
constexpr auto kFamiliesField = "spec.ipFamilies";
constexpr auto kPolicy = "spec.ipFamilyPolicy";
constexpr auto kHealth = "spec.healthCheckNodePort";

[[nodiscard]] std::string at(std::string_view field, std::size_t index) { return fmt::format("{}[{}]", field, index); }

/// RFC 1123: lower case letters, digits and `-`, which is neither first nor last.
[[nodiscard]] bool is_label(std::string_view text) {
  constexpr std::size_t kBytesMax = 63;
  return text.size() <= kBytesMax && text.find('.') == text.npos && is_dns_subdomain(text);
}

// ---------------------------------------------------------------- ports

/// Names keep the numbers of an update, and each number of a protocol is one place.
[[nodiscard]] Refused check_ports(const Service& service) {
  if (service.ports.size() > kServicePortsMax) {
    return refuse_value(service, "spec.ports", std::to_string(service.ports.size()),
                        fmt::format("must have at most {} items", kServicePortsMax));
  }
  if (service.ports.empty() && !is_headless(service) && !is_external_name(service)) {
    return refuse_field(service, "spec.ports", "Required value");
  }
  std::set<std::string> names;
  std::set<std::pair<ServiceProtocol, std::uint16_t>> numbers;
  for (std::size_t i = 0; i < service.ports.size(); ++i) {
    const ServicePort& port = service.ports[i];
    const std::string field = at("spec.ports", i);
    if (port.port == 0) return refuse_value(service, field + ".port", "0", "must be between 1 and 65535, inclusive");
    if (port.name.empty() && service.ports.size() > 1) return refuse_field(service, field + ".name", "Required value");
    if (!names.insert(port.name).second) {
      return refuse_field(service, field + ".name", "Duplicate value: " + echo(port.name));
    }
    if (!numbers.emplace(port.protocol, port.port).second) {
      return refuse_field(service, field, fmt::format("Duplicate value: {}/{}", port.port, word_of(port.protocol)));
    }
  }
  return std::nullopt;
}

/// The node ports that an update does not name, by the names of the ports.
void keep_node_ports(Service& service, const Service& before) {
  std::set<std::uint16_t> named;
  for (const ServicePort& port : service.ports) named.insert(port.node_port);
  for (ServicePort& port : service.ports) {
    const auto old = std::ranges::find(before.ports, port.name, &ServicePort::name);
    if (port.node_port != 0 || old == before.ports.end() || named.contains(old->node_port)) continue;
    port.node_port = old->node_port;
  }
}

[[nodiscard]] Refused drop_node_ports(Service& service, const RangeChanges& changes) {
  for (std::size_t i = 0; i < service.ports.size(); ++i) {
    std::uint16_t& number = service.ports[i].node_port;
    if (changes.holds(number)) number = 0;
    if (number == 0) continue;
    return refuse_field(service, at("spec.ports", i) + ".nodePort",
                        fmt::format("Forbidden: may not be used when `type` is '{}'", word_of(service.type)));
  }
  return std::nullopt;
}

/// Ports of one number, TCP and UDP, share a node port; two protocols may be told to share one.
[[nodiscard]] Refused take_node_ports(Service& service, RangeChanges& changes) {
  std::map<std::uint16_t, std::uint16_t> shared;  // node port by port
  for (const ServicePort& port : service.ports) {
    if (port.node_port != 0) shared.try_emplace(port.port, port.node_port);
  }
  std::set<std::uint16_t> taken;
  std::set<std::pair<ServiceProtocol, std::uint16_t>> used;
  for (std::size_t i = 0; i < service.ports.size(); ++i) {
    ServicePort& port = service.ports[i];
    if (port.node_port == 0) {
      if (!wants_node_ports(service)) continue;
      std::uint16_t& number = shared[port.port];
      if (number == 0) {
        const auto next = changes.take_next_port();
        if (!next) return refuse_internal("failed to allocate a nodePort: " + next.error().message);
        taken.insert(number = *next);
      }
      port.node_port = number;
    }
    const bool is_twice = !used.emplace(port.protocol, port.node_port).second;
    const auto done =
        is_twice || taken.insert(port.node_port).second ? changes.take_port(port.node_port) : Result<void>();
    if (done) continue;
    return refuse_value(service, at("spec.ports", i) + ".nodePort", std::to_string(port.node_port),
                        done.error().message);
  }
  return std::nullopt;
}

[[nodiscard]] Refused settle_health_check_port(Service& service, const Service* before, RangeChanges& changes) {
  std::uint16_t& number = service.health_check_node_port;
  if (!needs_health_check_port(service)) {
    if (before != nullptr && number == before->health_check_node_port) number = 0;
    if (number == 0) return std::nullopt;
    return refuse_value(service, kHealth, std::to_string(number),
                        "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'");
  }
  if (number == 0 && before != nullptr && needs_health_check_port(*before)) number = before->health_check_node_port;
  if (number == 0) {
    const auto next = changes.take_next_port();
    if (!next) return refuse_internal("failed to allocate a HealthCheck NodePort: " + next.error().message);
    number = *next;
    return std::nullopt;
  }
  if (const auto taken = changes.take_port(number); !taken) {
    return refuse_value(service, kHealth, std::to_string(number), taken.error().message);
  }
  return std::nullopt;
}

// ---------------------------------------------------------------- addresses

/// Brings `clusterIP` and `clusterIPs` together, addresses into their canonical text; takes over what an update does
/// not name.
[[nodiscard]] Refused read_addresses(Service& service, const Service* before) {
  std::vector<std::string>& ips = service.cluster_ips;
  const auto make_canonical = [](std::string& text) {
    if (const auto address = net::parse_address(text)) text = address->to_string();
  };
  make_canonical(service.cluster_ip);
  std::ranges::for_each(ips, make_canonical);
  if (ips.empty() && !service.cluster_ip.empty()) ips = {service.cluster_ip};
  if (!service.cluster_ip.empty() && ips.front() != service.cluster_ip) {
    return refuse_value(service, kIps, printed(ips), "first value must match `clusterIP`");
  }
  if (before != nullptr && !is_external_name(*before)) {
    if (ips.empty() && is_headless(*before)) ips = before->cluster_ips;
    if (ips.empty() && service.ip_families.empty()) service.ip_families = before->ip_families;
    if (!service.ip_family_policy) service.ip_family_policy = before->ip_family_policy;
    // From two to one, by the policy.
    if (service.ip_family_policy == IpFamilyPolicy::single_stack && !is_headless(service)) {
      if (ips.size() > 1 && ips == before->cluster_ips) ips.resize(1);
      if (service.ip_families.size() > 1 && service.ip_families == before->ip_families) service.ip_families.resize(1);
    }
  }
  if (is_headless(service)) {
    if (ips.size() > 1) return refuse_value(service, kIps, printed(ips), "'None' must be the first and only value");
    if (!may_have_node_ports(service)) return std::nullopt;
    return refuse_value(service, at(kIps, 0), printed(ips),
                        fmt::format("may not be set to 'None' for {} services", word_of(service.type)));
  }
  if (ips.size() > 2) return refuse_value(service, kIps, printed(ips), "may only hold up to 2 values");
  for (std::size_t i = 0; i < ips.size(); ++i) {
    const auto address = net::parse_address(ips[i]);
    if (!address || address->is_v4_mapped()) {
      return refuse_value(service, at(kIps, i), echo(ips[i]),
                          "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
    }
    if (i == service.ip_families.size()) service.ip_families.push_back(address->family());
    if (address->family() == service.ip_families[i]) continue;
    return refuse_value(
        service, at(kIps, i), echo(ips[i]),
        fmt::format("expected an {} value as indicated by `ipFamilies[{}]`", word_of(service.ip_families[i]), i));
  }
  return std::nullopt;
}

[[nodiscard]] Refused settle_families(Service& service, const RangeChanges& changes) {
  std::vector<net::Family>& families = service.ip_families;
  // The addresses of its endpoints are not known, nor bound to what the cluster has.
  const bool is_free = is_headless(service) && service.selector.empty();
  if (!service.ip_family_policy) {
    service.ip_family_policy = is_free ? IpFamilyPolicy::require_dual_stack : IpFamilyPolicy::single_stack;
  }
  const IpFamilyPolicy policy = *service.ip_family_policy;
  if (families.size() > 1 && policy == IpFamilyPolicy::single_stack) {
    return refuse_value(service, kPolicy, echo(word_of(policy)),
                        "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified");
  }
  if (families.size() > 2 || (families.size() == 2 && families[0] == families[1])) {
    return refuse_field(service, at(kFamiliesField, families.size() - 1),
                        "Duplicate value: " + echo(word_of(families.back())));
  }
  const auto is_known = [&](net::Family family) {
    return is_free || changes.held_address(family) ||
           std::ranges::find(changes.families(), family) != changes.families().end();
  };
  if (families.empty()) families.push_back(changes.families().front());
  const net::Family other = families.front() == net::Family::v4 ? net::Family::v6 : net::Family::v4;
  if (families.size() == 1 && policy != IpFamilyPolicy::single_stack) {
    if (is_known(other)) {
      families.push_back(other);
    } else if (policy == IpFamilyPolicy::require_dual_stack) {
      return refuse_value(service, kPolicy, echo(word_of(policy)),
                          "this cluster is not configured for dual-stack services");
    }
  }
  for (std::size_t i = 0; i < families.size(); ++i) {
    if (is_known(families[i])) continue;
    return refuse_value(service, at(kFamiliesField, i), echo(word_of(families[i])), "not configured on this cluster");
  }
  return std::nullopt;
}

[[nodiscard]] Refused take_addresses(Service& service, RangeChanges& changes) {
  std::vector<std::string>& ips = service.cluster_ips;
  ips.resize(service.ip_families.size());
  for (std::size_t i = 0; i < ips.size(); ++i) {
    auto address = net::parse_address(ips[i]);
    if (!address) address = changes.held_address(service.ip_families[i]);
    if (!address) {
      const auto next = changes.take_next(service.ip_families[i]);
      if (!next && next.error().code == ErrorCode::exhausted) {
        return refuse_internal(fmt::format("failed to allocate a serviceIP for Service {}: {}", echo(service.name.name),
                                           next.error().message));
      }
      if (!next) return refuse_value(service, kIps, printed(ips), "failed to allocate IP: " + next.error().message);
      ips[i] = next->to_string();
      continue;
    }
    ips[i] = address->to_string();
    if (const auto taken = changes.take(*address); !taken) {
      return refuse_value(service, kIps, printed(ips),
                          fmt::format("failed to allocate IP {}: {}", ips[i], taken.error().message));
    }
  }
  return std::nullopt;
}

/// An ExternalName has no address; an update takes away what was there.
[[nodiscard]] Refused drop_addresses(Service& service, const Service* before) {
  const bool is_new = before == nullptr || service.cluster_ips != before->cluster_ips;
  if (is_new && (!service.cluster_ips.empty() || !service.cluster_ip.empty())) {
    return refuse_field(service, kIps, "Forbidden: may not be set for ExternalName services");
  }
  if (service.external_name.empty()) return refuse_field(service, "spec.externalName", "Required value");
  service.cluster_ips.clear();
  service.ip_families.clear();
  service.ip_family_policy.reset();
  return std::nullopt;
}

/// Fills in, and leaves out, by the type, as Kubernetes' API does.
void apply_type(Service& service) {
  for (ServicePort& port : service.ports) {
    if (port.target_port.empty() || port.target_port == "0") port.target_port = std::to_string(port.port);
  }
  service.external_traffic_policy_given = may_have_node_ports(service);
  if (!may_have_node_ports(service)) service.external_traffic_policy = TrafficPolicy::cluster;
  if (service.type == ServiceType::load_balancer) {
    service.allocate_load_balancer_node_ports = service.allocate_load_balancer_node_ports.value_or(true);
  } else {
    service.allocate_load_balancer_node_ports.reset();
    service.load_balancer_class.reset();
  }
}

/// Completes a Service: checks what concerns addresses and ports, settles its families, takes the addresses and node
/// ports that it names and the next free ones for the others (docs/notes/service-ranges.md#service).
///
/// `before` is the Service that it replaces, held by `changes` (RangeChanges::hold); null for a new one. Values that it
/// held and the new one does not name stay, so that a manifest can be applied again. Values without a use for the new
/// type go. All else may change: an update is a deletion and a creation in one commit.
[[nodiscard]] Refused complete_service(Service& service, const Service* before, RangeChanges& changes) {
  apply_type(service);
  if (is_external_name(service)) {
    if (auto refused = drop_addresses(service, before)) return refused;
  } else {
    if (auto refused = read_addresses(service, before)) return refused;
    if (auto refused = settle_families(service, changes)) return refused;
  }
  if (auto refused = check_ports(service)) return refused;
  if (!is_external_name(service) && !is_headless(service)) {
    if (auto refused = take_addresses(service, changes)) return refused;
  }
  service.cluster_ip = service.cluster_ips.empty() ? "" : service.cluster_ips.front();
  if (!may_have_node_ports(service)) {
    if (auto refused = drop_node_ports(service, changes)) return refused;
  } else {
    if (before != nullptr && wants_node_ports(*before) && wants_node_ports(service)) keep_node_ports(service, *before);
    if (auto refused = take_node_ports(service, changes)) return refused;
  }
  return settle_health_check_port(service, before, changes);
}

using Answer = ServiceAnswer;

[[nodiscard]] Plan<Answer> refuse(ServiceRefusal refusal) { return {std::move(refusal), {}}; }

/// The Service first: its token is the witness of a commit whose reply is lost.
[[nodiscard]] Plan<Answer> finish(RangeChanges& changes, Service service, std::vector<PlannedWrite> writes) {
  for (PlannedWrite& write : changes.settle()) writes.push_back(std::move(write));
  return {ServiceChanged{std::move(service), changes.notes()}, std::move(writes)};
}

/// A random (version 4) UUID.
[[nodiscard]] std::string new_uid(Random& random) {
  const std::uint64_t high = (random.next() & ~std::uint64_t{0xf000}) | 0x4000;
  const std::uint64_t low = (random.next() & ~(std::uint64_t{3} << 62)) | std::uint64_t{1} << 63;
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xffff, high & 0xffff, low >> 48,
                     low & 0xffff'ffff'ffff);
}

}  // namespace

std::string ServiceRefusal::to_string() const {
  return reason == "Invalid" ? message : fmt::format("Error from server ({}): {}", reason, message);
}

ServiceRefusal refuse_not_found(const ServiceName& name) {
  return {"NotFound", fmt::format("services {} not found", echo(name.name))};
}
ServiceRefusal refuse_stale(const ServiceName& name) {
  return {"Conflict",
          fmt::format("Operation cannot be fulfilled on services {}: the object has been modified; please apply your "
                      "changes to the latest version and try again",
                      echo(name.name))};
}

Refused check_service_name(const ServiceName& name) {
  Service service;
  service.name = name;
  if (!is_label(name.name) || name.name.front() < 'a') {
    return refuse_value(service, "metadata.name", echo(name.name),
                        "must be at most 63 lower case letters, digits and '-', with a letter first and no '-' last");
  }
  if (is_label(name.name_space)) return std::nullopt;
  return refuse_value(service, "metadata.namespace", echo(name.name_space),
                      "must be at most 63 lower case letters, digits and '-', with no '-' first or last");
}

Step<Answer> plan_create_service(const Snapshot& snapshot, const Service& wanted, const ServiceRanges& ranges,
                                 const Instant& now, Random& random) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<Answer>> {
    // Names become a key: they are looked at before anything is read.
    if (auto refusal = check_service_name(wanted.name)) return refuse(*std::move(refusal));
    const bool exists = reader.get(service_key(wanted.name)) != nullptr;
    RangeChanges changes(reader, ranges, random);
    TRY_VOID(reader.ready());
    if (exists) {
      return refuse({"AlreadyExists", fmt::format("services {} already exists", echo(wanted.name.name))});
    }
    TRY_VOID(changes.check_usable());
    Service service = wanted;
    auto refusal = complete_service(service, nullptr, changes);
    TRY_VOID(reader.ready());
    if (refusal) return refuse(*std::move(refusal));
    service.uid = new_uid(random);
    service.created = now.wall;
    return finish(changes, service, {to_put(service_key(service.name), service)});
  });
}

Step<Answer> plan_update_service(const Snapshot& snapshot, const Service& wanted, const std::optional<Service>& as_read,
                                 const ServiceRanges& ranges, Random& random) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<Answer>> {
    if (auto refusal = check_service_name(wanted.name)) return refuse(*std::move(refusal));
    const Service* before = reader.get(service_key(wanted.name));
    RangeChanges changes(reader, ranges, random);
    TRY_VOID(reader.ready());
    if (before == nullptr) return refuse(refuse_not_found(wanted.name));
    if (as_read && *as_read != *before) return refuse(refuse_stale(wanted.name));
    TRY_VOID(changes.check_usable());
    Service service = wanted;
    service.uid = before->uid;
    service.created = before->created;
    service.deleting = before->deleting;
    service.rest = before->rest;
    changes.hold(*before);
    auto refusal = complete_service(service, before, changes);
    TRY_VOID(reader.ready());
    if (refusal) return refuse(*std::move(refusal));
    std::vector<PlannedWrite> writes;
    if (service != *before) writes.push_back(to_put(service_key(service.name), service));
    return finish(changes, std::move(service), std::move(writes));
  });
}

Step<Answer> plan_delete_service(const Snapshot& snapshot, const ServiceName& name, Random& random) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<Answer>> {
    if (check_service_name(name)) return refuse(refuse_not_found(name));
    const Service* service = reader.get(service_key(name));
    RangeChanges changes(reader, {}, random);
    TRY_VOID(reader.ready());
    if (service == nullptr) return refuse(refuse_not_found(name));
    changes.hold(*service);
    return finish(changes, *service, {to_delete(service_key(name))});
  });
}

}  // namespace croft::core
