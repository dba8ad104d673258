#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ipam/use/transact.h"
#include "register/pool.h"

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
/// before 1.33 it has no ServiceCIDRs. This is all that can be known of such a range. Nothing where ranges are known,
/// which stand against a pool by themselves (core::AddressClaims). Errors: those of the store.
[[nodiscard]] Result<ServiceSpace> service_space(const Context& context);

/// The ranges of Services that a Kubernetes API keeps as objects, which come and go beside pools. Errors: those of the
/// store.
[[nodiscard]] Result<std::vector<TakenSpace>> service_cidrs(const Context& context);

/// A part of a pool that is somebody's, and that no reservation keeps from pods.
struct PoolInTakenSpace {
  std::string pool;
  net::Prefix shared;
  std::string whose;
};
/// The space taken after its pool was made; check_space() refuses a pool only in the moment of its making. Errors:
/// those of the store.
[[nodiscard]] Result<std::vector<PoolInTakenSpace>> pools_in_taken_space(const Context& context,
                                                                         const std::vector<TakenSpace>& taken);

}  // namespace croft::engine
