#include "cni/format/tombstone.h"

#include <array>
#include <cstdint>

#include "base/json/reader.h"
#include "base/json/writer.h"
#include "base/texts.h"
#include "base/time_text.h"

namespace croft::wire {
namespace {

constexpr std::int64_t kVersion = 1;
constexpr std::size_t kDepthMax = 8;
constexpr std::size_t kNameBytesMax = 1024;
constexpr std::size_t kStoreBytesMax = 16384;
constexpr ObjectRules kRules{.names = ObjectRules::Names::exact, .repeated = ObjectRules::Repeated::fault};

struct Read {
  Tombstone tombstone;
  std::int64_t version = 0;
};

MaybeFault read_some_text(const JsonAt& at, std::size_t bytes_max, std::string& out) {
  if (auto fault = read_text(at, bytes_max, out)) return fault;
  if (out.empty()) return at.bad_value("it is empty");
  return {};
}

MaybeFault read_time(const JsonAt& at, WallTime& out) {
  std::string text;
  if (auto fault = read_text(at, kNameBytesMax, text)) return fault;
  const auto time = parse_rfc3339(text);
  if (!time) return at.bad_value(time.error().message);
  out = *time;
  return {};
}

constexpr std::array<JsonMember<Read>, 6> kMembers{{
    {"version", [](const JsonAt& at, Read& out) { return read_integer(at, 1, INT32_MAX, out.version); }},
    {"store", [](const JsonAt& at, Read& out) { return read_some_text(at, kStoreBytesMax, out.tombstone.store); }},
    {"network",
     [](const JsonAt& at, Read& out) { return read_some_text(at, kNameBytesMax, out.tombstone.owner.network); }},
    {"containerID",
     [](const JsonAt& at, Read& out) { return read_some_text(at, kNameBytesMax, out.tombstone.owner.container_id); }},
    {"ifName",
     [](const JsonAt& at, Read& out) { return read_text(at, kNameBytesMax, out.tombstone.owner.interface_name); }},
    {"leftAt", [](const JsonAt& at, Read& out) { return read_time(at, out.tombstone.left_at); }},
}};

}  // namespace

std::string encode(const Tombstone& tombstone) {
  JsonWriter out(JsonWriter::Layout::compact);
  out.begin_object();
  out.integer("version", kVersion);
  out.text("store", tombstone.store);
  out.text("network", tombstone.owner.network);
  out.text("containerID", tombstone.owner.container_id);
  out.text("ifName", tombstone.owner.interface_name);
  out.text("leftAt", rfc3339_exact(tombstone.left_at));
  out.end_object();
  return std::move(out).take() + "\n";
}

Result<Tombstone> decode_tombstone(std::string_view bytes) {
  const auto document = parse_json(bytes, {.bytes_max = kTombstoneBytesMax, .depth_max = kDepthMax});
  if (!document) return fail(ErrorCode::corrupt, document.error().message);
  Read read;
  const MaybeFault fault = read_object<Read>(JsonAt{document->root(), nullptr, {}, {}}, kMembers, read, kRules);
  // A newer version may mean anything else.
  if (read.version > kVersion) {
    return fail(ErrorCode::newer_version, "version: {} is newer than this program, which knows {}", read.version,
                kVersion);
  }
  if (fault) return fail(ErrorCode::corrupt, fault->to_string());
  if (read.version != kVersion) return fail(ErrorCode::corrupt, "version: is missing");
  if (read.tombstone.store.empty()) return fail(ErrorCode::corrupt, "store: is missing");
  if (read.tombstone.owner.network.empty()) return fail(ErrorCode::corrupt, "network: is missing");
  if (read.tombstone.owner.container_id.empty()) return fail(ErrorCode::corrupt, "containerID: is missing");
  return std::move(read.tombstone);
}

}  // namespace croft::wire
