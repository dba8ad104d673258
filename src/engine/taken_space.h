#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/register/pool.h"
#include "engine/transact.h"

namespace croft::engine {

/// A part of the address space that is somebody's whom the register does not know, ready for a message.
struct TakenSpace {
  std::string whose;  ///< "address 10.0.0.5 of node a"
  net::Prefix cidr;
};

/// Error: refused_by_configuration, when the pool would overlap one of these, with both names.
[[nodiscard]] Result<void> check_space(const core::PoolSpec& spec, const std::vector<TakenSpace>& taken);

struct ServiceSpace {
  std::vector<TakenSpace> taken;
  std::optional<Error> unread;  ///< Services may not be read: `taken` is empty, and nobody knows their range
};

/// The addresses that Services have, where nothing tells from which range: a Kubernetes API shows no bitmaps, and
/// before 1.33 it has no ServiceCIDRs. Of such a range this is all that can be known. Nothing where ranges are known,
/// which stand against a pool by themselves (core::AddressClaims). Errors: those of the store.
[[nodiscard]] Result<ServiceSpace> service_space(const Context& context);

}  // namespace croft::engine
