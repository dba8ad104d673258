#include "store/format/pause.h"

#include <array>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "base/json/reader.h"
#include "base/json/writer.h"
#include "base/time_text.h"

namespace croft::wire {
namespace {

using core::Pause;

constexpr std::int64_t kVersion = 1;
constexpr std::size_t kDepthMax = 8;
constexpr std::size_t kWordBytesMax = 64;
constexpr std::size_t kStoreBytesMax = 16384;
constexpr ObjectRules kRules{.names = ObjectRules::Names::exact, .repeated = ObjectRules::Repeated::fault};

struct Read {
  Pause pause;
  std::int64_t version = 0;
  bool has_phase = false;
};

MaybeFault read_phase(const JsonAt& at, Read& out) {
  std::string text;
  if (auto fault = read_text(at, kWordBytesMax, text)) return fault;
  for (const auto phase : {Pause::Phase::copying, Pause::Phase::moved, Pause::Phase::filling}) {
    if (text != core::name_of(phase)) continue;
    out.pause.phase = phase;
    out.has_phase = true;
    return {};
  }
  return at.bad_value("it is none of copying, moved, filling");
}

MaybeFault read_since(const JsonAt& at, Read& out) {
  std::string text;
  if (auto fault = read_text(at, kWordBytesMax, text)) return fault;
  const auto time = parse_rfc3339(text);
  if (!time) return at.bad_value(time.error().message);
  out.pause.since = *time;
  return {};
}

constexpr std::array<JsonMember<Read>, 4> kMembers{{
    {"version", [](const JsonAt& at, Read& out) { return read_integer(at, 1, INT32_MAX, out.version); }},
    {"phase", read_phase},
    {"other", [](const JsonAt& at, Read& out) { return read_text(at, kStoreBytesMax, out.pause.other); }},
    {"since", read_since},
}};

[[nodiscard]] Error damaged(const std::string& what) {
  return {ErrorCode::corrupt,
          fmt::format("the pause: {}; the register takes no writes until it is mended, as "
                      "docs/runbooks/migrate.md#damaged-pause says",
                      what),
          {}};
}

}  // namespace

std::string encode_pause(const Pause& pause) {
  JsonWriter out(JsonWriter::Layout::compact);
  out.begin_object();
  out.integer("version", kVersion);
  out.text("phase", core::name_of(pause.phase));
  out.text("other", pause.other);
  out.text("since", rfc3339_exact(pause.since));
  out.end_object();
  return std::move(out).take();
}

Result<Pause> decode_pause(std::string_view bytes) {
  const auto document = parse_json(bytes, {.bytes_max = kPauseBytesMax, .depth_max = kDepthMax});
  if (!document) return fail(damaged(document.error().message));
  Read read;
  const MaybeFault fault = read_object<Read>(JsonAt{document->root(), nullptr, {}, {}}, kMembers, read, kRules);
  if (read.version > kVersion) {
    return fail(ErrorCode::newer_version,
                fmt::format("the pause: version {} is newer than this program, which knows {}; go on with the version "
                            "of Croft that put it",
                            read.version, kVersion));
  }
  if (fault) return fail(damaged(fault->to_string()));
  const bool is_whole = read.version == kVersion && read.has_phase && !read.pause.other.empty();
  if (!is_whole) return fail(damaged("one of version, phase, other is missing"));
  return std::move(read.pause);
}

}  // namespace croft::wire
