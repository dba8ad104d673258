#pragma once

// The common part of the readers and writers of Calico's records: objects whose unknown members survive, and errors
// that name the key. Private to calico.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/json/reader.h"
#include "base/json/writer.h"
#include "base/printable.h"
#include "base/result.h"
#include "calico/etcd_records.h"
#include "register/block.h"
#include "register/foreign_rest.h"
#include "register/format/records.h"
#include "register/records.h"

namespace croft::wire::calico {

/// More than any name or attribute has; a whole record is limited by its bytes.
inline constexpr std::size_t kTextBytesMax = std::size_t{64} << 10;
/// Known members need 5; what is deeper in an unknown one is damage. Passing on a value goes as deep as it is.
inline constexpr std::size_t kDepthMax = 64;

/// A member that is not known here: its name and its value as compact JSON.
struct RawMember {
  std::string name;
  std::string json;
};
using RawMembers = std::vector<RawMember>;

/// The content of `rest`; the default where it holds nothing of this format.
template <class Rest>
const Rest& rest_of(const core::ForeignRestPtr& rest) {
  static const Rest kNone;
  const auto* held = dynamic_cast<const Rest*>(rest.get());
  return held != nullptr ? *held : kNone;
}

/// A record while it is read.
template <class Record, class Rest>
struct Draft {
  Record record;
  std::shared_ptr<Rest> rest = std::make_shared<Rest>();
};

// ---------------------------------------------------------------- the kinds

/// Resources have kind and metadata in etcd too.
[[nodiscard]] inline bool is_resource(core::Kind kind) {
  return kind == core::Kind::pool || kind == core::Kind::reservation || kind == core::Kind::node;
}

// decode_value() and encode_value() of the kinds: pool_reservation_node.cc, block_affinity_handle.cc.

[[nodiscard]] Result<core::Value> decode_resource(const core::Key& key, std::string_view bytes);
[[nodiscard]] Result<core::Value> decode_other(const core::Key& key, std::string_view bytes);

[[nodiscard]] std::string encode(const core::Block& block, const Birth& birth);
[[nodiscard]] std::string encode(const core::Affinity& affinity, const Birth& birth);
[[nodiscard]] std::string encode(const core::Handle& handle, const Birth& birth);
[[nodiscard]] std::string encode(const core::IpamConfig& config, const Birth& birth);
[[nodiscard]] std::string encode(const core::Pool& pool, const Birth& birth);
[[nodiscard]] std::string encode(const core::Reservation& reservation, const Birth& birth);
[[nodiscard]] std::string encode(const core::Node& node, const Birth& birth);

/// The owner in front of an affinity's name: of `host/node-a/ipv4/10.0.0.64/26` the host node-a.
[[nodiscard]] std::optional<core::AffinityOwner> owner_in(std::string_view name);

// ---------------------------------------------------------------- reading

[[nodiscard]] RawMember raw_member(JsonRef member);

/// As read_object, but what is not known goes to `rest`, and a known member must have its exact name and come once.
template <class T>
[[nodiscard]] MaybeFault read_kept(const JsonAt& at, std::span<const JsonMember<T>> members, T& out, RawMembers& rest) {
  std::vector<JsonRef> unknown;
  auto fault = read_object<T>(at, members, out,
                              {.names = ObjectRules::Names::as_known,
                               .repeated = ObjectRules::Repeated::fault,
                               .unknown = ObjectRules::Unknown::kept,
                               .kept = &unknown});
  for (const JsonRef member : unknown) rest.push_back(raw_member(member));
  return fault;
}

[[nodiscard]] MaybeFault read_number(const JsonAt& at, std::uint32_t max, std::uint32_t& out);
[[nodiscard]] MaybeFault read_optional_text(const JsonAt& at, std::optional<std::string>& out);
[[nodiscard]] MaybeFault read_time(const JsonAt& at, WallTime& out);
/// A CIDR as Calico reads it: host bits are dropped. `as_found`, if given, gets the text of one that has some.
[[nodiscard]] MaybeFault read_prefix(const JsonAt& at, net::Prefix& out, std::string* as_found = nullptr);

/// Takes an object with each name once; `read_one(at, name, value)` reads a value.
template <class Map, class ReadOne>
[[nodiscard]] MaybeFault read_map(const JsonAt& at, Map& out, ReadOne read_one) {
  return each_member(at, [&](const JsonAt& member) -> MaybeFault {
    typename Map::mapped_type value{};
    typename Map::key_type name{};
    if (auto fault = read_one(member, name, value)) return fault;
    if (!out.emplace(std::move(name), std::move(value)).second) return member.bad_value("it is there twice");
    return {};
  });
}

[[nodiscard]] MaybeFault read_texts(const JsonAt& at, std::map<std::string, std::string>& out);

/// The error for a record that can't be used: corrupt, naming the key.
[[nodiscard]] Error damaged(const core::Key& key, std::string_view why);

/// Reads an object of `members` into `out`. Error: corrupt.
template <class T>
[[nodiscard]] Result<void> decode_into(const core::Key& key, std::string_view bytes,
                                       std::span<const JsonMember<T>> members, T& out, RawMembers& rest) {
  const auto document = parse_json(bytes, {.bytes_max = kRecordBytesMax, .depth_max = kDepthMax});
  if (!document) return fail(damaged(key, document.error().message));
  const JsonAt root{document->root(), nullptr, {}, {}};
  if (const auto fault = read_kept(root, members, out, rest)) return fail(damaged(key, fault->to_string()));
  return {};
}

// ---------------------------------------------------------------- writing

/// Cut to the second.
void write_time(JsonWriter& out, WallTime time);
void write_texts(JsonWriter& out, std::string_view name, const std::map<std::string, std::string>& texts);
/// Left out when there are none.
void write_texts_if_set(JsonWriter& out, std::string_view name, const std::map<std::string, std::string>& texts);
void write_rest(JsonWriter& out, const RawMembers& members);
/// A text that is left out when it is empty.
void write_text_if_set(JsonWriter& out, std::string_view name, std::string_view value);
void write_if_set(JsonWriter& out, std::string_view name, bool value);

// ---------------------------------------------------------------- blocks

inline constexpr std::size_t kBlockSizeMax = core::kBlockSizeMax;

struct AttributeDraft {
  core::Attribute attribute;
  RawMembers rest;
};

struct BlockDraft {
  core::Block block;
  std::vector<std::uint32_t> unallocated;
  std::vector<AttributeDraft> attributes;
  // Go tells an absent list from an empty one; one that is not there is a null one.
  bool attributes_null = true, unallocated_null = true, sequence_numbers_null = true;
  /// The owner's old form, which Calico keeps and doesn't read.
  std::optional<std::string> host_affinity;
  RawMembers members;
};

/// Reads a block in the one spelling that Calico and Croft give to nearly all: no white space, no unknown or old
/// members, ASCII. Nothing for every other, damaged ones too: the general way reads them and says what is wrong. A text
/// that both read they read the same. It stays because it pays. A full block of 19 KB, read whole by decode_block,
/// takes a seventh to a tenth of the general way's time (g++ -O2 on a busy machine, best of 60: 0.8 for 5.7 ms).
/// `calico_bench` measures both.
[[nodiscard]] std::optional<BlockDraft> scan_block(std::string_view bytes);

}  // namespace croft::wire::calico
