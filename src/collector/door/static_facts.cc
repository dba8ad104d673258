#include "collector/door/static_facts.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "base/json/reader.h"
#include "base/net/prefix.h"
#include "base/printable.h"
#include "base/text/go_text.h"
#include "base/time_text.h"
#include "os/files.h"

namespace croft::wire {

namespace {

using core::collect::NodeFact;
using core::collect::PodFact;

constexpr std::size_t kDepthMax = 16;
constexpr std::size_t kNameBytesMax = 512;

MaybeFault read_name(const JsonAt& at, std::string& out) {
  if (auto fault = read_text(at, kNameBytesMax, out)) return fault;
  if (!is_plain_text(out)) return at.bad_value(echo(out) + " holds control characters");
  return {};
}

MaybeFault read_address(const JsonAt& at, net::Address& out) {
  std::string text;
  if (auto fault = read_text(at, kNameBytesMax, text)) return fault;
  const auto address = net::parse_address_leniently(text);
  if (!address) return at.bad_value(net::Address::parse(text).error().message);
  out = *address;
  return {};
}

constexpr std::array<JsonMember<NodeFact>, 2> kNodeMembers{{
    {"name", [](const JsonAt& at, NodeFact& out) { return read_name(at, out.name); }},
    {"tunnelAddresses",
     [](const JsonAt& at, NodeFact& out) {
       return read_list(at, core::collect::kPodAddressesMax, read_address, out.tunnel_addresses);
     }},
}};

MaybeFault read_node(const JsonAt& at, NodeFact& out) {
  if (auto fault = read_object<NodeFact>(at, kNodeMembers, out)) return fault;
  if (out.name.empty()) return at.bad_value("it has no name");
  return {};
}

constexpr std::array<JsonMember<PodFact>, 7> kPodMembers{{
    {"namespace", [](const JsonAt& at, PodFact& out) { return read_name(at, out.namespace_name); }},
    {"name", [](const JsonAt& at, PodFact& out) { return read_name(at, out.name); }},
    {"uid", [](const JsonAt& at, PodFact& out) { return read_name(at, out.uid); }},
    {"node", [](const JsonAt& at, PodFact& out) { return read_name(at, out.node); }},
    {"phase", [](const JsonAt& at, PodFact& out) { return read_name(at, out.phase); }},
    {"reason", [](const JsonAt& at, PodFact& out) { return read_name(at, out.reason); }},
    {"addresses",
     [](const JsonAt& at, PodFact& out) {
       return read_list(at, core::collect::kPodAddressesMax, read_address, out.addresses);
     }},
}};

MaybeFault read_pod(const JsonAt& at, PodFact& out) {
  if (auto fault = read_object<PodFact>(at, kPodMembers, out)) return fault;
  if (out.namespace_name.empty() || out.name.empty()) return at.bad_value("it has no namespace or no name");
  return {};
}

struct Root {
  FactsFile file;
  bool has_nodes = false;
};

MaybeFault read_pods(const JsonAt& at, Root& out) {
  if (at.value.is_null()) return {};
  return read_list(at, kFactsPodsMax, read_pod, out.file.pods.emplace());
}

MaybeFault read_nodes(const JsonAt& at, Root& out) {
  out.has_nodes = !at.value.is_null();
  return read_list(at, kFactsNodesMax, read_node, out.file.nodes);
}

MaybeFault read_time(const JsonAt& at, Root& out) {
  std::string text;
  if (auto fault = read_text(at, kNameBytesMax, text)) return fault;
  if (at.value.is_null()) return {};
  const auto time = parse_rfc3339(text);
  if (!time) return at.bad_value(time.error().message);
  out.file.time = *time;
  return {};
}

constexpr std::array<JsonMember<Root>, 5> kRootMembers{{
    {"nodes", read_nodes},
    {"pods", read_pods},
    {"complete", [](const JsonAt& at, Root& out) { return read_boolean(at, out.file.complete); }},
    {"time", read_time},
    {"cluster", [](const JsonAt& at, Root& out) { return read_name(at, out.file.cluster); }},
}};

}  // namespace

Result<FactsFile> parse_facts(std::string_view bytes) {
  TRY(const JsonDocument document, parse_json(bytes, {.bytes_max = kFactsBytesMax, .depth_max = kDepthMax}));
  Root root;
  const JsonAt at{document.root(), nullptr, {}, {}};
  if (document.root().kind() != JsonKind::object) {
    return fail(ErrorCode::invalid_argument, at.wrong_type("an object").to_string());
  }
  if (const auto fault = read_object<Root>(at, kRootMembers, root)) {
    return fail(ErrorCode::invalid_argument, fault->to_string());
  }
  if (!root.has_nodes) return fail(ErrorCode::invalid_argument, "nodes: it is missing");
  return std::move(root.file);
}

}  // namespace croft::wire

namespace croft::edge {

namespace {

/// Clocks of two machines differ by so much without anything being wrong. Never more than the facts may be old, by far:
/// what is of the future stays fresh for that much longer.
std::chrono::nanoseconds future_max(std::chrono::nanoseconds age_max) {
  return std::min<std::chrono::nanoseconds>(std::chrono::minutes{1}, age_max / 4);
}

}  // namespace

Result<core::collect::Facts> StaticFacts::facts() {
  core::collect::Facts facts;
  facts.taken_at = clock_.now();
  // Before it is read: what takes its place meanwhile must not lend it its time.
  const auto written = os::modification_time(path_);
  if (!written) return fail(written.error().in("facts " + path_));
  auto bytes = os::read_file(path_, wire::kFactsBytesMax);
  if (!bytes) return fail(bytes.error().in("facts " + path_));
  auto file = wire::parse_facts(*bytes);
  if (!file) return fail(file.error().in("facts " + path_));
  bytes->clear();
  bytes->shrink_to_fit();

  for (const auto& node : file->nodes) facts.add_node(node);
  if (file->pods) {
    facts.set_pods_known();
    for (const auto& pod : *file->pods) facts.add_pod(pod);
  }
  facts.cluster = std::move(file->cluster);
  facts.complete = file->complete;
  if (!file->complete) facts.incomplete_because = path_ + ": complete is not true";
  const WallTime as_of = file->time.value_or(*written);
  // Not by their difference: a time of three hundred years ago has none that fits.
  if (as_of < facts.taken_at.wall - age_max_ || as_of > facts.taken_at.wall + future_max(age_max_)) {
    facts.complete = false;
    facts.incomplete_because =
        fmt::format("{}: {} {}, more than {} s ago or in the future", path_,
                    file->time ? "its time is" : "it says no time and was written", rfc3339_rounded_up(as_of),
                    std::chrono::duration_cast<std::chrono::seconds>(age_max_).count());
  }
  facts.freeze();
  return facts;
}

}  // namespace croft::edge
