#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/reader.h"
#include "base/net/address.h"
#include "base/net/prefix.h"
#include "base/result.h"
#include "cni/format/config.h"
#include "cni/format/environment.h"
#include "cni/format/network.h"
#include "cni/format/result.h"
#include "hostlocal/decide/assign.h"

// The network configuration of the personality `host-local`: the grammar, order of checks and error texts of the
// reference (docs/notes/host-local.md#configuration, #load-order, #ranges).

namespace croft::wire::cni {

inline constexpr const char* kDefaultDataDir = "/var/lib/cni/networks";

// Limits of Croft's own; the reference has none.
inline constexpr std::size_t kRangeSetsMax = 1024;
inline constexpr std::size_t kRangesPerSetMax = 1024;
inline constexpr std::size_t kRangesMax = 4096;  ///< in all sets
inline constexpr std::size_t kRoutesMax = 4096;
inline constexpr std::size_t kHostLocalRequestedMax = 1024;

struct HostLocalConfig {
  std::string name;
  std::string data_dir = kDefaultDataDir;  ///< as Go's filepath.Clean leaves it
  std::string resolv_conf;                 ///< a path; empty when none was given
  /// `runtimeConfig.ipRanges`, then the legacy range, then `ipam.ranges`: the place is the number in file names.
  std::vector<core::host_local::RangeSet> sets;
  /// How many sets the configuration has, also where they were not checked (DEL).
  std::size_t set_count = 0;
  std::vector<Route> routes;
  /// CNI_ARGS `IP`, `args.cni.ips`, `runtimeConfig.ips`, in this order; unmapped, without duplicates.
  std::vector<net::Address> requested_addresses;
  std::vector<net::AddressWithLength> previous_addresses;  ///< of `prevResult`; CHECK only
  ValidAttachments valid_attachments;                      ///< GC only
  bool has_ipam = true;                                    ///< only for GC it may be missing: then nothing is freed
  bool status_when_full = false;                           ///< `ipam.statusWhenFull`, Croft's own member
};

/// Decodes what the command needs:
/// - ADD, CHECK, STATUS: everything, with the reference's errors in its order
///   (docs/notes/host-local.md#load-order), code 999. `ipam.statusWhenFull` only for STATUS, `prevResult` only for
///   CHECK.
/// - DEL and GC need `name` and `ipam.dataDir` alone (docs/notes/host-local.md#h10): a release must not fail
///   because of ranges, routes or CNI_ARGS. A fault in `dataDir` itself is still an error, because the wrong directory
///   would be answered with success; no `ipam` at all is the same fault, with the reference's text. GC reads the list
///   of attachments besides. `set_count` is what can be counted, `sets` stays empty.
Checked<HostLocalConfig> decode_host_local_config(const Network& network, const std::string& args, Command command);

/// The configuration with which the plugin `host-local` is called, found in a configuration file. The file is of one
/// plugin (.conf, and what flannel keeps for its delegate) or of a list (.conflist), whose plugins get its name and
/// version. The first plugin with the `ipam.type` `host-local` counts. A `network` that is not empty must be the file's
/// `name`. `capability_args`, a JSON object or empty, is what the runtime gave; the plugin gets as `runtimeConfig` what
/// it declares in `capabilities`. nullopt: no such plugin, or another network. Errors: invalid_argument, saying what is
/// wrong with the JSON, or the reference's text for what is wrong with the configuration.
[[nodiscard]] Result<std::optional<HostLocalConfig>> find_host_local_config(std::string_view bytes,
                                                                            const std::string& network,
                                                                            std::string_view capability_args = {});

}  // namespace croft::wire::cni

// The files of a host-local directory (docs/notes/host-local.md#files, #matching): one a reservation, one cursor a
// range set, `lock`.

namespace croft::wire::host_local {

inline constexpr std::string_view kLockFile = "lock";
inline constexpr std::string_view kCursorPrefix = "last_reserved_ip.";

using core::host_local::Holder;

/// The content of a reservation: the container ID without white space around it, CR LF, the interface name; the
/// container ID alone when there is no interface name.
[[nodiscard]] std::string print_holder(const Holder& holder);

/// The part in which two contents must agree to be the same holder: the content without white space (Unicode's) at both
/// ends.
[[nodiscard]] std::string_view holder_key(std::string_view content);

/// Reads a content: up to the first CR LF the container, behind it the interface. nullopt for an empty one (a crash of
/// the reference left it). Anything else reads as a container ID, as the reference takes it.
[[nodiscard]] std::optional<Holder> parse_holder(std::string_view content);

/// The name of an address's file: its canonical text.
[[nodiscard]] std::string file_name(const net::Address& address);
/// The address a file name stands for, unmapped; nullopt when the name is no address (`lock`, cursors, foreign files).
/// A name in another form than file_name gives ("2001:DB8::1") is an address too.
[[nodiscard]] std::optional<net::Address> address_of_file(std::string_view name);

/// `last_reserved_ip.<set>`.
[[nodiscard]] std::string cursor_file_name(std::size_t set);
/// The number of the set when the name is a cursor's.
[[nodiscard]] std::optional<std::size_t> set_of_cursor_file(std::string_view name);
/// The address of a cursor file; nullopt for anything that is not exactly an address, white space included.
[[nodiscard]] std::optional<net::Address> parse_cursor(std::string_view content);

}  // namespace croft::wire::host_local
