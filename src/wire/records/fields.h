#pragma once

// Pieces that several kinds of records share. Private to wire/records.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/register/affinity.h"
#include "core/register/allocation.h"
#include "core/register/block.h"
#include "core/register/cooling_beside.h"
#include "core/register/node_range.h"
#include "core/register/service.h"
#include "net/prefix.h"
#include "wire/records/canonical_json.h"

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

/// Writes `[a,b,c]`.
template <class List, class WriteOne>
void write_list(CanonicalWriter& out, const List& list, WriteOne write_one) {
  out.raw("[");
  bool first = true;
  for (const auto& element : list) {
    if (!first) out.raw(",");
    first = false;
    write_one(element);
  }
  out.raw("]");
}

/// Reads `[a,b,c]` of at most `max` elements.
template <class ReadOne>
auto read_list(CanonicalReader& in, std::size_t max, ReadOne read_one) {
  std::vector<decltype(read_one())> list;
  in.expect("[");
  if (in.accept("]")) return list;
  do {
    if (list.size() >= max) in.reject("list too long");
    list.push_back(read_one());
  } while (in.another(']'));
  return list;
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
/// What cools beside a block: the member `cooling`.
void write_cooling_beside(CanonicalWriter& out, const std::vector<core::CoolingBeside>& beside);
[[nodiscard]] std::vector<core::CoolingBeside> read_cooling_beside(CanonicalReader& in);

inline void write_prefixes(CanonicalWriter& out, const std::vector<net::Prefix>& prefixes) {
  write_list(out, prefixes, [&](const net::Prefix& prefix) { write_prefix(out, prefix); });
}

/// More elements than any record below kRecordBytesMax of use has; a longer list is damage.
inline constexpr std::size_t kListMax = 200'000;

[[nodiscard]] inline std::vector<net::Prefix> read_prefixes(CanonicalReader& in) {
  return read_list(in, kListMax, [&] { return read_prefix(in); });
}

// Kinds of more than a few members, without version and braces.

void write_block(CanonicalWriter& out, const core::Block& block);
[[nodiscard]] core::Block read_block(CanonicalReader& in);

void write_range_allocation(CanonicalWriter& out, const core::RangeAllocation& range);
[[nodiscard]] core::RangeAllocation read_range_allocation(CanonicalReader& in);
void write_node_range(CanonicalWriter& out, const core::NodeRange& range);
[[nodiscard]] core::NodeRange read_node_range(CanonicalReader& in);
void write_node_range_set(CanonicalWriter& out, const core::NodeRangeSet& set);
[[nodiscard]] core::NodeRangeSet read_node_range_set(CanonicalReader& in);

void write_service(CanonicalWriter& out, const core::Service& service);
[[nodiscard]] core::Service read_service(CanonicalReader& in);
void write_ip_address(CanonicalWriter& out, const core::IpAddressObject& object);
[[nodiscard]] core::IpAddressObject read_ip_address(CanonicalReader& in);
void write_service_cidr(CanonicalWriter& out, const core::ServiceCidrObject& object);
[[nodiscard]] core::ServiceCidrObject read_service_cidr(CanonicalReader& in);

}  // namespace croft::wire
