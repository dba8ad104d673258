#pragma once

#include "base/result.h"
#include "ipam/decide/assign.h"
#include "register/pod_wishes.h"

namespace croft::core {

/// How many addresses one ADD may name.
inline constexpr std::size_t kWishedAddressesMax = 16;

/// Puts what annotations ask for in the place of what the configuration says, as far as it is wanted; addresses are
/// added to those that are asked for. Error: invalid_argument for more than kWishedAddressesMax addresses.
[[nodiscard]] Result<void> heed_wishes(const AnnotatedWishes& said, const WishesWanted& wanted, AssignRequest& request);

/// Error: invalid_argument, for a request of neither family and no address.
[[nodiscard]] Result<void> check_something_is_asked(const AssignRequest& request);

}  // namespace croft::core
