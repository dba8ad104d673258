#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "register/records.h"

namespace croft::wire {

// The bytes of a stored record in Croft's own stores (docs/formats/records.md): canonical JSON with the member names of
// Calico's Kubernetes objects, the format version first. Every field of the value survives, 64-bit numbers exactly.

/// A record longer than this is damaged: the largest legal one, a full block of 4096 addresses with long attributes,
/// stays below, and so does any that an etcd takes.
inline constexpr std::size_t kRecordBytesMax = 8U << 20;

/// The number that stands for a kind in stored keys. Numbers are never reused; the order of core::Kind may change.
[[nodiscard]] std::uint8_t number_of(core::Kind kind);
/// The inverse; nothing for a number of a newer version.
[[nodiscard]] std::optional<core::Kind> kind_numbered(std::uint8_t number);

/// Equal values give equal bytes.
[[nodiscard]] std::string encode_record(const core::Value& value);

/// Reads the bytes stored under `key`.
/// Errors, all naming the key: newer_version when the format is newer than its kind's (register/records.h); corrupt
/// when anything else differs from what encode_record writes (a member missing, unknown, out of order or out of range:
/// an unknown member would be lost by the next write, so it must not be let through), when the value belongs to another
/// key, or when a block contradicts itself (core::check_block).
[[nodiscard]] Result<core::Value> decode_record(const core::Key& key, std::string_view bytes);

}  // namespace croft::wire
