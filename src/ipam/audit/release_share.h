#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/net/address.h"
#include "base/result.h"
#include "ipam/decide/release.h"
#include "register/block.h"

namespace croft::core::audit {

/// The brake of a release by list: how much of what is held on each node would go with it. An address that records no
/// node counts as one of a node without name.
class ReleaseShare {
 public:
  /// The list must outlive this.
  explicit ReleaseShare(const std::vector<AddressToRelease>& addresses);
  /// Counts the block. Each wanted address counts as far as its listed holder still has it.
  void add(const Block& block);
  /// Error: refused_for_safety when more than `share` of what is held on some node would go.
  [[nodiscard]] Result<void> check(double share) const;

 private:
  struct Count {
    std::size_t held = 0, going = 0;
  };
  std::map<net::Address, const AddressToRelease*> wanted_;
  std::map<std::string, Count> nodes_;
};

}  // namespace croft::core::audit
