#pragma once

// Pieces that several kinds of records share. Private to wire/records.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/block/affinity.h"
#include "core/block/block.h"
#include "net/prefix.h"
#include "wire/canonical_json.h"

namespace croft::wire {

/// The fixed texts of an enumeration.
template <class Enum, std::size_t kCount>
using EnumTexts = std::array<std::pair<Enum, std::string_view>, kCount>;

template <class Enum, std::size_t kCount>
void write_enum(CanonicalWriter& out, const EnumTexts<Enum, kCount>& texts, Enum value) {
  for (const auto& [candidate, text] : texts) {
    if (candidate == value) out.text(text);
  }
}

template <class Enum, std::size_t kCount>
[[nodiscard]] Enum read_enum(CanonicalReader& in, const EnumTexts<Enum, kCount>& texts) {
  const std::string found = in.text();
  for (const auto& [candidate, text] : texts) {
    if (text == found) return candidate;
  }
  in.reject("unknown name \"" + found + "\"");
  return texts[0].first;
}

inline void write_prefix(CanonicalWriter& out, const net::Prefix& prefix) { out.text(prefix.to_string()); }

[[nodiscard]] inline net::Prefix read_prefix(CanonicalReader& in) {
  const std::string text = in.text();
  if (const auto prefix = net::Prefix::parse(text); prefix && prefix->to_string() == text) return *prefix;
  in.reject("no CIDR in its canonical form \"" + text + "\"");
  return {};
}

/// The members of a cooling address, without braces.
void write_cooling(CanonicalWriter& out, const core::Cooling& cooling);
[[nodiscard]] core::Cooling read_cooling(CanonicalReader& in);

/// A block without its version and braces.
void write_block(CanonicalWriter& out, const core::Block& block);
[[nodiscard]] core::Block read_block(CanonicalReader& in);

}  // namespace croft::wire
