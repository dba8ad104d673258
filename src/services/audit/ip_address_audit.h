#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "register/service.h"
#include "services/audit/range_repair.h"

// The same for clusters that keep Service addresses as objects (docs/notes/service-ranges.md#object-repair). The
// caller reads the Services before the IPAddress objects. A kube-apiserver makes a Service's objects first, so an
// object that is missing then is missing. One without a Service may belong to a Service in the making; its age tells.

namespace croft::core::audit {

/// The name that findings have instead of a record's.
inline constexpr std::string_view kIpAddresses = "ipaddresses";

/// So old by its own time, and seen unchanged for so long: no wall clock of one machine decides alone.
inline constexpr std::chrono::seconds kIpAddressLeakAge{60};
/// A Service whose object is younger than itself may not show the address yet.
inline constexpr std::chrono::seconds kIpAddressYoungAge{5};

/// A change that makes the objects right. Valid only while the object is as it was read, and `service` still what it
/// was: as read, or absent if it was.
struct IpAddressMend {
  std::string address;
  bool remove = false;                  ///< there is one, and it goes (before `make`, if both)
  std::optional<IpAddressObject> make;  ///< without UID and time
  std::optional<ServiceName> service;   ///< the Service that this rests on
  friend bool operator==(const IpAddressMend&, const IpAddressMend&) = default;
};

/// A prefix of a ServiceCIDR object.
struct ServiceCidrUse {
  std::string name;
  net::Prefix cidr;
  BandUse in_static, in_dynamic;  ///< sizes above 2^64 - 1 count as that
};

struct IpAddressAudit {
  std::vector<ServiceCidrUse> cidrs;
  std::vector<RepairFinding> findings;
  std::vector<IpAddressMend> mends;
  std::size_t waiting = 0;  ///< objects without a Service that are too young to be told from those in the making
  /// Objects found leaked that stay, since they were not seen so for kIpAddressLeakAge yet.
  std::size_t to_be_seen_again = 0;
  std::vector<std::string> leaked;  ///< addresses of all that were found leaked, freed or not
};

/// For how long each object has been found leaked, unchanged, in looks before this one, by a clock that nobody sets; by
/// address. Absent: not seen so yet.
using LeakedFor = std::map<std::string, std::chrono::nanoseconds>;

/// `now` is the wall clock; objects that are made later than it count as new. Objects without the label of the
/// allocator (`managed-by`) are somebody's own: they are counted, and never removed unless a Service has the address.
/// An object is removed as leaked only in a look that comes kIpAddressLeakAge after the first one that found it so.
[[nodiscard]] IpAddressAudit audit_ip_addresses(std::span<const IpAddressObject> objects,
                                                std::span<const ServiceCidrObject> cidrs,
                                                std::span<const ServiceUse> services, WallTime now,
                                                const LeakedFor& leaked_for);

/// The object that a Service's address has: without UID and time.
[[nodiscard]] IpAddressObject ip_address_for(const net::Address& address, const ServiceName& service);

/// Whether a Service may have the address from the prefix: neither the network nor, in IPv4, the broadcast address.
[[nodiscard]] bool is_service_address(const net::Prefix& cidr, const net::Address& address);

}  // namespace croft::core::audit
