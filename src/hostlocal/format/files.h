#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/net/address.h"
#include "hostlocal/decide/assign.h"

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
