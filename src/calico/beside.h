#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/net/address.h"
#include "base/net/prefix.h"
#include "base/result.h"
#include "register/cooling_beside.h"

// The data that Croft keeps in records of its own beside Calico's, where those have no place for it
// (docs/formats/calico.md).
namespace croft::wire {

/// Beside a pool. `cidr` tells whether it is of this pool, or of one before it with the same name.
struct PoolBeside {
  net::Prefix cidr;
  std::optional<net::Address> gateway;
  std::chrono::seconds cooldown{0};
  bool being_made = false;
  bool being_deleted = false;
  int priority = 0;
  friend bool operator==(const PoolBeside&, const PoolBeside&) = default;
};

[[nodiscard]] std::string encode_pool_beside(const PoolBeside& beside);
[[nodiscard]] std::string encode_cooling_beside(const std::vector<core::CoolingBeside>& beside);

// Reading. `key` is for messages. Errors: newer_version; corrupt for everything that is not written here.
[[nodiscard]] Result<PoolBeside> decode_pool_beside(std::string_view key, std::string_view bytes);
[[nodiscard]] Result<std::vector<core::CoolingBeside>> decode_cooling_beside(std::string_view key,
                                                                             std::string_view bytes);

}  // namespace croft::wire
