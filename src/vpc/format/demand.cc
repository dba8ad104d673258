#include "vpc/format/demand.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "base/json/decode.h"
#include "base/json/document.h"
#include "base/json/writer.h"
#include "base/time_text.h"

namespace croft::wire {
namespace {

using core::warm::DemandSample;
using std::chrono::milliseconds;

constexpr std::int64_t kVersion = 1;
constexpr std::size_t kTimeBytesMax = 64;
constexpr std::int64_t kDayMilliseconds = 86'400'000;
constexpr ObjectRules kRules{.names = ObjectRules::Names::exact, .repeated = ObjectRules::Repeated::fault};

struct Read {
  std::vector<DemandSample> samples;
  std::int64_t version = 0;
};

MaybeFault read_time(const JsonAt& at, DemandSample& out) {
  std::string text;
  if (auto fault = read_text(at, kTimeBytesMax, text)) return fault;
  const auto time = parse_rfc3339(text);
  if (!time) return at.bad_value(time.error().message);
  out.at = *time;
  return {};
}

MaybeFault read_count(const JsonAt& at, std::uint32_t& out) {
  std::int64_t number = 0;
  if (auto fault = read_integer(at, 0, INT32_MAX, number)) return fault;
  out = static_cast<std::uint32_t>(number);
  return {};
}

MaybeFault read_span(const JsonAt& at, milliseconds& out) {
  std::int64_t number = 0;
  if (auto fault = read_integer(at, 0, kDayMilliseconds, number)) return fault;
  out = milliseconds(number);
  return {};
}

constexpr std::array<JsonMember<DemandSample>, 5> kSampleMembers{
    {{"at", read_time},
     {"adds", [](const JsonAt& at, DemandSample& out) { return read_count(at, out.adds); }},
     {"peak", [](const JsonAt& at, DemandSample& out) { return read_count(at, out.peak); }},
     {"refillMs", [](const JsonAt& at, DemandSample& out) { return read_span(at, out.refill); }},
     {"emptyMs", [](const JsonAt& at, DemandSample& out) { return read_span(at, out.empty); }}}};

MaybeFault read_sample(const JsonAt& at, DemandSample& out) {
  if (at.value.is_null()) return at.bad_value("it is null");
  if (auto fault = read_object<DemandSample>(at, kSampleMembers, out, kRules)) return fault;
  if (out.at == WallTime{}) return at.bad_value("it has no time");
  return {};
}

constexpr std::array<JsonMember<Read>, 2> kMembers{{
    {"version", [](const JsonAt& at, Read& out) { return read_integer(at, 1, INT32_MAX, out.version); }},
    {"samples", [](const JsonAt& at,
                   Read& out) { return read_list<DemandSample>(at, kDemandSamplesMax, read_sample, out.samples); }},
}};

}  // namespace

std::string encode_demand(const std::vector<DemandSample>& samples) {
  JsonWriter out(JsonWriter::Layout::compact);
  const auto number = [&out](const char* key, std::int64_t value) {
    if (value == 0) return;
    out.key(key);
    out.integer(value);
  };
  out.begin_object();
  out.key("version");
  out.integer(kVersion);
  out.key("samples");
  out.begin_array();
  for (const DemandSample& sample : samples) {
    out.begin_object();
    out.key("at");
    out.text(rfc3339_exact(sample.at));
    number("adds", sample.adds);
    number("peak", sample.peak);
    number("refillMs", sample.refill.count());
    number("emptyMs", sample.empty.count());
    out.end_object();
  }
  out.end_array();
  out.end_object();
  return std::move(out).take() + "\n";
}

Result<std::vector<DemandSample>> decode_demand(std::string_view json) {
  const auto document = parse_json(json, {.bytes_max = kDemandBytesMax});
  if (!document) return fail(ErrorCode::corrupt, document.error().message);
  Read read;
  const MaybeFault fault = read_object<Read>(JsonAt{document->root(), nullptr, {}, {}}, kMembers, read, kRules);
  if (read.version > kVersion) {
    return fail(ErrorCode::newer_version,
                fmt::format("version: {} is newer than this program, which knows {}", read.version, kVersion));
  }
  if (fault) return fail(ErrorCode::corrupt, fault->to_string());
  if (read.version != kVersion) return fail(ErrorCode::corrupt, "version: is missing");
  for (std::size_t i = 1; i < read.samples.size(); ++i) {
    if (read.samples[i].at > read.samples[i - 1].at) continue;
    return fail(ErrorCode::corrupt, fmt::format("samples[{}].at: {} is not later than the one before it", i,
                                                rfc3339_exact(read.samples[i].at)));
  }
  return std::move(read.samples);
}

}  // namespace croft::wire
