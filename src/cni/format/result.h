#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/net/address.h"
#include "base/net/prefix.h"
#include "base/result.h"
#include "cni/format/environment.h"

namespace croft::wire::cni {

struct AssignedAddress {
  net::AddressWithLength address;
  std::optional<net::Address> gateway;  ///< absent: the member is left out
  friend bool operator==(const AssignedAddress&, const AssignedAddress&) = default;
};

struct Route {
  net::AddressWithLength destination;  ///< host bits are kept; invalid prints `<nil>`, as the reference does
  std::optional<net::Address> gateway;
  std::int64_t mtu = 0;       ///< left out when 0
  std::int64_t advmss = 0;    ///< left out when 0
  std::int64_t priority = 0;  ///< left out when 0
  std::optional<std::int64_t> table;
  std::optional<std::int64_t> scope;
  friend bool operator==(const Route&, const Route&) = default;
};

struct Dns {
  std::vector<std::string> nameservers;
  std::string domain;
  std::vector<std::string> search;
  std::vector<std::string> options;
  friend bool operator==(const Dns&, const Dns&) = default;
};

/// The answer of ADD. Interfaces belong to the plugin that called us; an IPAM plugin has none.
struct AddResult {
  std::vector<AssignedAddress> ips;
  std::vector<Route> routes;
  Dns dns;
  friend bool operator==(const AddResult&, const AddResult&) = default;
};

/// The result in the form of a version (docs/notes/cni.md#results), byte for byte as the reference prints it: four
/// blanks, no newline behind. Before 0.3.0 there is room for one address a family: the first is printed, routes of a
/// family without address are dropped. Errors, code 999: a version that is not in kSupportedVersions; no address at all
/// before 0.3.0.
Checked<std::string> print_result(const AddResult& result, std::string_view version);

}  // namespace croft::wire::cni

namespace croft::wire {

/// Reads a resolv.conf by the reference's rules (docs/notes/host-local.md#resolv-conf). A line has one keyword,
/// comments stand only at its start, `nameserver` takes one value, the last `domain` wins, `search` and `options`
/// gather all. Error: invalid_argument, `bufio.Scanner: token too long`, for a line above 64 KiB.
[[nodiscard]] Result<cni::Dns> parse_resolv_conf(std::string_view text);

}  // namespace croft::wire
