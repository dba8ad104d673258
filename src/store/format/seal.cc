#include "store/format/seal.h"

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/json/decode.h"
#include "base/json/document.h"
#include "base/json/writer.h"
#include "base/time_text.h"

namespace croft::wire {
namespace {

using core::Seal;

constexpr std::int64_t kVersion = 1;
constexpr std::size_t kDepthMax = 8;
constexpr std::size_t kWordBytesMax = 64;
constexpr std::size_t kStoreBytesMax = 16384;
constexpr ObjectRules kRules{.names = ObjectRules::Names::exact, .repeated = ObjectRules::Repeated::fault};

struct Read {
  Seal seal;
  std::int64_t version = 0;
  bool has_end = false, has_phase = false;
};

MaybeFault read_end(const JsonAt& at, Read& out) {
  std::string text;
  if (auto fault = read_text(at, kWordBytesMax, text)) return fault;
  for (const auto end : {Seal::End::source, Seal::End::target}) {
    if (text != core::name_of(end)) continue;
    out.seal.end = end;
    out.has_end = true;
    return {};
  }
  return at.bad_value("it is neither source nor target");
}

MaybeFault read_phase(const JsonAt& at, Read& out) {
  std::string text;
  if (auto fault = read_text(at, kWordBytesMax, text)) return fault;
  for (const auto phase : {Seal::Phase::preparing, Seal::Phase::copying, Seal::Phase::moved, Seal::Phase::given_up}) {
    if (text != core::name_of(phase)) continue;
    out.seal.phase = phase;
    out.has_phase = true;
    return {};
  }
  return at.bad_value("it is none of preparing, copying, moved, given-up");
}

MaybeFault read_since(const JsonAt& at, Read& out) {
  std::string text;
  if (auto fault = read_text(at, kWordBytesMax, text)) return fault;
  const auto time = parse_rfc3339(text);
  if (!time) return at.bad_value(time.error().message);
  out.seal.since = *time;
  return {};
}

constexpr std::array<JsonMember<Read>, 7> kMembers{{
    {"version", [](const JsonAt& at, Read& out) { return read_integer(at, 1, INT32_MAX, out.version); }},
    {"end", read_end},
    {"phase", read_phase},
    {"move", [](const JsonAt& at, Read& out) { return read_text(at, kWordBytesMax, out.seal.move); }},
    {"other", [](const JsonAt& at, Read& out) { return read_text(at, kStoreBytesMax, out.seal.other); }},
    {"since", read_since},
    {"marks", [](const JsonAt& at, Read& out) { return read_boolean(at, out.seal.marks); }},
}};

[[nodiscard]] Error damaged(const std::string& what) {
  return {
      ErrorCode::corrupt,
      fmt::format("the seal: {}; a move put it, and it closes this store to everybody else: see `croft migrate "
                  "status` of the other store, then mend or remove it as docs/runbooks/migrate.md#damaged-seal says",
                  what),
      {}};
}

}  // namespace

std::string encode_seal(const Seal& seal) {
  JsonWriter out(JsonWriter::Layout::compact);
  const auto member = [&out](std::string_view name, std::string_view text) {
    out.key(name);
    out.text(text);
  };
  out.begin_object();
  out.key("version");
  out.integer(kVersion);
  member("end", core::name_of(seal.end));
  member("phase", core::name_of(seal.phase));
  member("move", seal.move);
  member("other", seal.other);
  member("since", rfc3339_exact(seal.since));
  if (seal.marks) {
    out.key("marks");
    out.boolean(true);
  }
  out.end_object();
  return std::move(out).take();
}

Result<Seal> decode_seal(std::string_view bytes) {
  const auto document = parse_json(bytes, {.bytes_max = kSealBytesMax, .depth_max = kDepthMax});
  if (!document) return fail(damaged(document.error().message));
  Read read;
  const MaybeFault fault = read_object<Read>(JsonAt{document->root(), nullptr, {}, {}}, kMembers, read, kRules);
  if (read.version > kVersion) {
    return fail(
        ErrorCode::newer_version,
        fmt::format("the seal: version: {} is newer than this program, which knows {}; go on with the version of Croft "
                    "that began the move",
                    read.version, kVersion));
  }
  if (fault) return fail(damaged(fault->to_string()));
  const bool is_whole =
      read.version == kVersion && read.has_end && read.has_phase && !read.seal.move.empty() && !read.seal.other.empty();
  if (!is_whole) return fail(damaged("one of version, end, phase, move, other is missing"));
  return std::move(read.seal);
}

}  // namespace croft::wire
