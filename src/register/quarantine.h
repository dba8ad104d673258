#pragma once

#include <string>

#include "base/clock.h"
#include "base/net/address.h"
#include "register/block.h"

namespace croft::core {

// An address in quarantine: the register had it as free, and when it was to be given the node's kernel showed that
// somebody lives with it there, as after the register was put back to an older state (docs/promises.md#states). It is
// held by nobody's handle, so that nobody gets it, until an operator or the collector gives it back.

inline constexpr const char* kTypeKey = "type";
inline constexpr const char* kQuarantineType = "quarantined";
/// The device that its route leads over on the node.
inline constexpr const char* kDeviceKey = "device";

/// "croft-quarantine-10-1-0-3", and in IPv6 32 hexadecimal digits: a name in every store, and no owner's
/// (register/owner.h), since no dot is in it. Each address has its own, so that none waits for another.
[[nodiscard]] std::string quarantine_handle_of(const net::Address& address);

[[nodiscard]] Attribute in_quarantine(const net::Address& address, const std::string& node, const std::string& device,
                                      WallTime since);
[[nodiscard]] bool is_in_quarantine(const Attribute& attribute);

/// "in quarantine since …, when an ADD on node n1 found it alive over device veth1".
[[nodiscard]] std::string quarantine_text(const Attribute& attribute);

}  // namespace croft::core
