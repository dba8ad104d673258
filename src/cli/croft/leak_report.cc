#include "cli/croft/leak_report.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json/reader.h"
#include "base/texts.h"
#include "base/time_text.h"
#include "cli/croft/json_output.h"

namespace croft::app {
namespace {

using Json = nlohmann::ordered_json;

Json owners_json(const core::audit::Allocation& one) {
  Json owners = Json::array();
  for (const auto* owner : {&one.attributes.get(), &one.alternate_owner.get()}) {
    if (!owner->empty()) owners.push_back(*owner);
  }
  return owners;
}

Json allocation_json(const core::audit::Allocation& one) {
  const std::string pod = core::member_of(one.attributes, core::kPodKey);
  const std::string type = core::member_of(one.attributes, "type");
  return {{"ip", one.address.to_string()},
          {"handle", one.handle_id},
          {"sequenceNumber", number_64_json(one.sequence_number.value)},
          {"pod", pod},
          {"namespace", core::member_of(one.attributes, core::kNamespaceKey)},
          {"node", one.node()},
          {"type", type.empty() && !pod.empty() ? "pod" : type},
          {"creationTimestamp", core::member_of(one.attributes, core::kTimestampKey)},
          {"inUse", !one.cooling && !one.unattached && !one.gone},
          {"unusedBy", one.unattached ? Json("runtime")
                       : one.gone     ? Json("cluster")
                                      : Json()},
          {"borrowed", one.borrowed()},
          {"coolingDown", one.cooling},
          {"owners", owners_json(one)}};
}

Error wrong(std::string_view member, std::string_view what) {
  return make_error(ErrorCode::invalid_argument, "report: {}: {}", member, what);
}

using wire::JsonKind;
using wire::JsonRef;

std::string text_in(JsonRef object, std::string_view member) {
  const auto value = wire::member_of(object, member);
  return value && value->kind() == JsonKind::string ? std::string(value->text()) : std::string();
}

/// A whole number, written as one or as text.
std::optional<std::uint64_t> number_in(JsonRef object, std::string_view member) {
  const auto value = wire::member_of(object, member);
  if (!value || (value->kind() != JsonKind::integer && value->kind() != JsonKind::string)) return {};
  const std::string_view text = value->text();
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = !text.empty() && error == std::errc() && end == text.data() + text.size();
  return is_whole ? std::optional(number) : std::nullopt;
}

bool flag_in(JsonRef object, std::string_view member, bool otherwise) {
  const auto value = wire::member_of(object, member);
  return value && value->kind() == JsonKind::boolean ? value->boolean() : otherwise;
}

/// Calls `take` for each element of an array, or member of an object.
template <class Take>
[[nodiscard]] Result<void> each_in(JsonRef list, JsonKind kind, std::string_view name, Take take) {
  if (list.kind() != kind) return fail(wrong(name, fmt::format("not {}", wire::name_of(kind))));
  for (auto child = list.first_child(); child; child = child->next_sibling()) TRY_VOID(take(*child));
  return {};
}

/// In doubt an address is in use.
[[nodiscard]] Result<void> take_allocation(const std::string& name, JsonRef one, ReportContent& content) {
  if (one.kind() != JsonKind::object) return fail(wrong("allocations." + name, "not an object"));
  if (flag_in(one, "inUse", true) || flag_in(one, "coolingDown", false)) return {};
  TRY(const net::Address address, net::Address::parse(name));
  const std::string handle = text_in(one, "handle");
  if (handle.empty()) return fail(wrong("allocations." + name + ".handle", "missing"));
  const auto sequence = number_in(one, "sequenceNumber");
  if (!sequence) return fail(wrong("allocations." + name + ".sequenceNumber", "not a whole number"));
  content.unused.push_back({address, handle, core::SequenceNumber(*sequence)});
  if (text_in(one, "unusedBy") == "cluster") content.by_cluster.insert(address);
  return {};
}

[[nodiscard]] Result<void> take_handle(JsonRef one, ReportContent& content) {
  const std::string id = text_in(one, "ID");
  const auto revision = number_in(one, "Revision");
  if (id.empty() || !revision) {
    return fail(wrong("leakedHandles", "an element has no ID, or a Revision that is no number"));
  }
  content.leaked_handles.push_back({id, store::Revision(*revision)});
  return {};
}

auto key_of(const core::AddressToRelease& one) { return std::tie(one.address, one.handle_id, one.sequence_number); }
auto key_of(const engine::LeakedHandle& one) { return std::tie(one.id, one.revision); }
constexpr auto kKey = [](const auto& one) { return key_of(one); };

/// Each once, ascending.
template <class T>
std::vector<T> as_set(std::vector<T> items) {
  std::ranges::sort(items, {}, kKey);
  const auto repeated = std::ranges::unique(items, {}, kKey);
  items.erase(repeated.begin(), repeated.end());
  return items;
}

template <class T>
std::vector<T> intersection_of(const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<T> result;
  std::ranges::set_intersection(a, b, std::back_inserter(result), {}, kKey, kKey);
  return result;
}

}  // namespace

std::string cluster_of(const std::string& store_url) { return "croft:" + store_url; }

std::string report_of(const engine::AuditReport& report, const ReportOrigin& origin) {
  Json allocations = Json::object();
  for (const core::audit::Allocation& one : report.allocations) {
    // They come in order: no looking for the member among all before it.
    auto& members = allocations.get_ref<Json::object_t&>();
    const std::string address = one.address.to_string();
    if (members.empty() || members.back().first != address) members.emplace_back(address, Json::array());
    members.back().second.push_back(allocation_json(one));
  }
  const auto handle_json = [](const engine::LeakedHandle& handle) -> Json {
    return {{"ID", handle.id}, {"UID", nullptr}, {"Revision", std::to_string(handle.revision.value)}};
  };
  const auto finding_json = [](const core::audit::Finding& finding) -> Json {
    return {{"finding", finding.id},
            {"subject", finding.subject},
            {"evidence", finding.what},
            {"remedy", finding.remedy},
            {"since", text_or_null(finding.since)},
            {"looks", finding.looks > 0 ? Json(finding.looks) : Json()}};
  };
  const Json ours = {{"store", origin.store},
                     {"checkedAt", rfc3339_rounded_up(origin.checked_at)},
                     {"comparedWithRuntime", origin.compared},
                     {"comparedWithCluster", origin.compared_with_cluster},
                     {"findings", array_json(report.findings, finding_json)}};
  return printed_json({{"version", origin.version},
                       {"clusterGUID", cluster_of(origin.store)},
                       {"datastoreLocked", false},
                       {"clusterInformationRevision", ""},
                       {"clusterType", "croft"},
                       {"allocations", std::move(allocations)},
                       {"leakedHandles", array_json(report.leaked_handles, handle_json)},
                       {"croft", ours}});
}

Result<ReportContent> parse_report(std::string_view text) {
  if (text.size() > kReportBytesMax) return fail(wrong("file", "too long"));
  const auto document = wire::parse_json(text, {.bytes_max = kReportBytesMax, .depth_max = kReportBytesMax});
  if (!document || document->root().kind() != JsonKind::object) return fail(wrong("file", "not a JSON object"));
  const JsonRef root = document->root();
  ReportContent content{text_in(root, "version"), text_in(root, "clusterGUID"), {}, {}};
  const auto allocations = wire::member_of(root, "allocations");
  if (!allocations) return fail(wrong("allocations", "not an object"));
  TRY_VOID(each_in(*allocations, JsonKind::object, "allocations", [&](JsonRef address) {
    const std::string name(address.key());
    return each_in(address, JsonKind::array, "allocations." + name,
                   [&](JsonRef one) { return take_allocation(name, one, content); });
  }));
  const auto handles = wire::member_of(root, "leakedHandles");
  if (handles && !handles->is_null()) {
    TRY_VOID(
        each_in(*handles, JsonKind::array, "leakedHandles", [&](JsonRef one) { return take_handle(one, content); }));
  }
  content.unused = as_set(std::move(content.unused));
  content.leaked_handles = as_set(std::move(content.leaked_handles));
  return content;
}

ReportContent intersection_of(const std::vector<ReportContent>& reports) {
  ReportContent result = reports.front();
  for (const ReportContent& other : reports) {
    result.unused = intersection_of(result.unused, other.unused);
    result.leaked_handles = intersection_of(result.leaked_handles, other.leaked_handles);
    result.by_cluster.insert(other.by_cluster.begin(), other.by_cluster.end());
  }
  return result;
}

}  // namespace croft::app
