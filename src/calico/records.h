#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "calico/etcd.h"
#include "calico/resources.h"
#include "register/records.h"

// Calico's records in etcd as core values: what core has no place for travels in core::ForeignRest.
namespace croft::wire::calico {

/// The birth of a new resource (pool, reservation, node).
struct Birth {
  std::string uid;
  WallTime at{};
};

/// Reads the bytes under a key that key_of() has. Cooling that is recorded beside a block, and what is beside a pool,
/// are not known here. Errors as those of calico_etcd.h and calico_resources.h.
[[nodiscard]] Result<core::Value> decode_value(const core::Key& key, std::string_view bytes);

/// The bytes to write. A value that was read here keeps what is not known; of one that was not, `birth` is used.
/// Addresses of a block that cool in Croft's way must have been taken out (core::without_cooling).
[[nodiscard]] std::string encode_value(const core::Value& value, const Birth& birth);

/// The UID in the bytes of a resource; nothing when there is none.
[[nodiscard]] std::optional<std::string> uid_in(const core::Key& key, std::string_view bytes);

}  // namespace croft::wire::calico
