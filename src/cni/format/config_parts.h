#pragma once
// Parts of a network configuration that the decoders of all personalities read alike. For those decoders only.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/json/decode.h"
#include "base/net/address_with_length.h"
#include "base/net/family.h"
#include "cni/format/args.h"
#include "cni/format/config.h"
#include "register/owner.h"
#include "register/pool.h"

namespace croft::wire::cni {

/// Reads the lists of attachments that still exist, under both names, from the top level of a configuration.
[[nodiscard]] MaybeFault read_valid_attachments(const JsonAt& root, ValidAttachments& out);

/// Reads the addresses of `prevResult` from the top level of a configuration.
[[nodiscard]] MaybeFault read_previous_addresses(const JsonAt& root, std::vector<net::AddressWithLength>& out);

/// Takes a string of at most `bytes_max` bytes without control characters; null leaves `out`.
[[nodiscard]] MaybeFault read_plain_text(const JsonAt& at, std::size_t bytes_max, std::string& out);

/// Takes the name of a node, or an empty text; null leaves `out`.
[[nodiscard]] MaybeFault read_nodename(const JsonAt& at, std::string& out);

/// Takes a boolean, or a string: "true" and "false" are Calico's form, where anything but the opposite of `fallback`
/// means `fallback`. Null leaves `out`.
[[nodiscard]] MaybeFault read_switch(const JsonAt& at, bool fallback, bool& out);

/// Takes an IP address as runtimes write one they ask for: with or without a prefix length, IPv4-mapped ones unmapped.
[[nodiscard]] MaybeFault read_requested_address(const JsonAt& at, net::Address& out);

/// Takes a route for ADD's result: `dst`, `gw`, `mtu`, `priority`, and nothing else.
[[nodiscard]] MaybeFault read_route(const JsonAt& at, Route& out);

/// Takes the absolute path of a socket, no longer than the kernel takes, or "none"; null leaves `out`.
[[nodiscard]] MaybeFault read_agent(const JsonAt& at, std::string& out);

/// The fault as a runtime gets it: code 999 for a JSON type that does not fit, 7 for a value that is not allowed.
[[nodiscard]] Error config_error_of(const JsonFault& fault);

/// Takes what CNI_ARGS says about the pod. Error: code 4, naming the key.
[[nodiscard]] std::optional<Error> take_pod(const Args& args, core::PodIdentity& pod);

/// Reads pools of which each passes core::make_pool and no two share a name or an address.
[[nodiscard]] MaybeFault read_pool_specs(const JsonAt& at, std::size_t count_max, std::vector<core::PoolSpec>& out);

/// Reads names and CIDRs; a text with a slash is a CIDR (host bits are dropped, as Calico does) and must be of
/// `family`.
[[nodiscard]] MaybeFault read_asked_pools(const JsonAt& at, net::Family family, std::size_t count_max,
                                          std::vector<core::AskedPool>& out);

}  // namespace croft::wire::cni
