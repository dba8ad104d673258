#include "app/croft/report.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/croft/json_text.h"
#include "base/time_text.h"
#include "net/echo.h"

namespace croft::app {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const std::map<std::string, std::string>& map, const char* key) {
  const auto it = map.find(key);
  return it == map.end() ? "" : it->second;
}

Json owners_json(const engine::Allocation& one) {
  Json owners = Json::array();
  for (const auto* owner : {&one.attributes, &one.alternate_owner}) {
    if (owner->empty()) continue;
    Json json = Json::object();
    for (const auto& [key, value] : *owner) json[key] = value;
    owners.push_back(std::move(json));
  }
  return owners;
}

Json allocation_json(const engine::Allocation& one) {
  const std::string pod = text_of(one.attributes, core::kPodKey);
  const std::string type = text_of(one.attributes, "type");
  return {{"ip", one.address.to_string()},
          {"handle", one.handle_id},
          {"sequenceNumber", one.sequence_number.value},
          {"pod", pod},
          {"namespace", text_of(one.attributes, core::kNamespaceKey)},
          {"node", one.node()},
          {"type", type.empty() && !pod.empty() ? "pod" : type},
          {"creationTimestamp", text_of(one.attributes, core::kTimestampKey)},
          {"inUse", !one.cooling && !one.unattached},
          {"borrowed", one.borrowed()},
          {"coolingDown", one.cooling},
          {"owners", owners_json(one)}};
}

Error wrong(std::string_view member, std::string_view what) {
  return {ErrorCode::invalid_argument, fmt::format("report: {}: {}", member, what), {}};
}

/// A member as text; empty when it is absent or no text.
std::string member_text(const Json& object, const char* name) {
  const auto it = object.find(name);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

bool member_flag(const Json& object, const char* name, bool otherwise) {
  const auto it = object.find(name);
  return it != object.end() && it->is_boolean() ? it->get<bool>() : otherwise;
}

[[nodiscard]] Result<void> read_allocation(const std::string& address, const Json& json, ReportContent& content) {
  if (!json.is_object()) return fail(wrong("allocations." + address, "not an object"));
  // In doubt an address is in use.
  if (member_flag(json, "inUse", true) || member_flag(json, "coolingDown", false)) return {};
  core::AddressToRelease wanted;
  TRY(wanted.address, net::Address::parse(address));
  const std::string handle = member_text(json, "handle");
  if (handle.empty()) return fail(wrong("allocations." + address + ".handle", "missing"));
  wanted.handle_id = handle;
  const auto sequence = json.find("sequenceNumber");
  if (sequence == json.end() || !sequence->is_number_unsigned()) {
    return fail(wrong("allocations." + address + ".sequenceNumber", "not a whole number"));
  }
  wanted.sequence_number = core::SequenceNumber(sequence->get<std::uint64_t>());
  content.unused.push_back(std::move(wanted));
  return {};
}

[[nodiscard]] Result<void> read_handle(const Json& json, ReportContent& content) {
  if (!json.is_object()) return fail(wrong("leakedHandles", "an element is not an object"));
  const std::string id = member_text(json, "ID");
  const std::string revision = member_text(json, "Revision");
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(revision.data(), revision.data() + revision.size(), number);
  if (id.empty() || error != std::errc() || end != revision.data() + revision.size()) {
    return fail(wrong("leakedHandles", "an element has no ID, or a Revision that is no number"));
  }
  content.leaked_handles.push_back({id, store::Revision(number)});
  return {};
}

[[nodiscard]] Result<void> read_content(const Json& json, ReportContent& content) {
  const auto allocations = json.find("allocations");
  if (allocations == json.end() || !allocations->is_object()) return fail(wrong("allocations", "not an object"));
  for (const auto& [address, list] : allocations->items()) {
    if (!list.is_array()) return fail(wrong("allocations." + address, "not an array"));
    for (const Json& one : list) TRY_VOID(read_allocation(address, one, content));
  }
  const auto handles = json.find("leakedHandles");
  if (handles == json.end() || handles->is_null()) return {};
  if (!handles->is_array()) return fail(wrong("leakedHandles", "not an array"));
  for (const Json& one : *handles) TRY_VOID(read_handle(one, content));
  return {};
}

/// Whether arrays and objects are inside each other deeper than any report has them.
bool is_too_deep(std::string_view text) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kReportDepthMax) return true;
    } else if (c == ']' || c == '}') {
      depth -= depth > 0 ? 1 : 0;
    }
  }
  return false;
}

/// Lets through the members that are read, by the number of arrays and objects around them.
bool is_read(int depth, Json::parse_event_t event, const Json& parsed) {
  if (event != Json::parse_event_t::key) return true;
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, parsed.get_ref<const std::string&>()) != names.end();
  };
  switch (depth) {
    case 1:
      return is_one_of({"version", "clusterGUID", "allocations", "leakedHandles"});
    case 2:  // addresses
      return true;
    case 3:
      return is_one_of({"ID", "Revision"});
    case 4:
      return is_one_of({"inUse", "coolingDown", "handle", "sequenceNumber"});
    default:
      return false;
  }
}

bool same(const core::AddressToRelease& a, const core::AddressToRelease& b) {
  return a.address == b.address && a.handle_id == b.handle_id && a.sequence_number == b.sequence_number;
}
bool before(const core::AddressToRelease& a, const core::AddressToRelease& b) {
  return std::tie(a.address, a.handle_id, a.sequence_number) < std::tie(b.address, b.handle_id, b.sequence_number);
}
bool same(const engine::LeakedHandle& a, const engine::LeakedHandle& b) {
  return a.id == b.id && a.revision == b.revision;
}
bool before(const engine::LeakedHandle& a, const engine::LeakedHandle& b) {
  return std::tie(a.id, a.revision) < std::tie(b.id, b.revision);
}

/// Each once, ascending.
template <class T>
std::vector<T> as_set(std::vector<T> items) {
  std::sort(items.begin(), items.end(), [](const T& a, const T& b) { return before(a, b); });
  items.erase(std::unique(items.begin(), items.end(), [](const T& a, const T& b) { return same(a, b); }), items.end());
  return items;
}

template <class T>
std::vector<T> common(const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<T> result;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(result),
                        [](const T& x, const T& y) { return before(x, y); });
  return result;
}

}  // namespace

std::string cluster_of(const std::string& store_url) { return "croft:" + store_url; }

std::string report_of(const engine::AuditReport& report, const ReportOrigin& origin) {
  Json allocations = Json::object();
  for (const engine::Allocation& one : report.allocations) {
    allocations[one.address.to_string()].push_back(allocation_json(one));
  }
  Json handles = Json::array();
  for (const engine::LeakedHandle& handle : report.leaked_handles) {
    handles.push_back({{"ID", handle.id}, {"UID", nullptr}, {"Revision", std::to_string(handle.revision.value)}});
  }
  Json findings = Json::array();
  for (const engine::Finding& finding : report.findings) {
    findings.push_back({{"finding", engine::name_of(finding.kind)},
                        {"subject", finding.subject},
                        {"evidence", finding.what},
                        {"remedy", finding.remedy}});
  }
  Json json = Json::object();
  json["version"] = origin.version;
  json["clusterGUID"] = cluster_of(origin.store);
  json["datastoreLocked"] = false;
  json["clusterInformationRevision"] = "";
  json["clusterType"] = "croft";
  json["allocations"] = std::move(allocations);
  json["leakedHandles"] = std::move(handles);
  json["croft"] = {{"store", origin.store},
                   {"checkedAt", rfc3339_rounded_up(origin.checked_at)},
                   {"comparedWithRuntime", origin.compared}};
  json["croft"]["findings"] = std::move(findings);
  return printed_json(json);
}

Result<ReportContent> parse_report(std::string_view text) {
  if (text.size() > kReportBytesMax) return fail(wrong("file", "too long"));
  if (is_too_deep(text)) return fail(wrong("file", "arrays and objects are too deep inside each other"));
  const Json json = Json::parse(text, is_read, false);
  if (json.is_discarded() || !json.is_object()) return fail(wrong("file", "not a JSON object"));
  ReportContent content;
  content.version = member_text(json, "version");
  content.cluster = member_text(json, "clusterGUID");
  TRY_VOID(read_content(json, content));
  content.unused = as_set(std::move(content.unused));
  content.leaked_handles = as_set(std::move(content.leaked_handles));
  return content;
}

ReportContent intersection_of(const std::vector<ReportContent>& reports) {
  ReportContent result = reports.front();
  for (const ReportContent& other : reports) {
    result.unused = common(result.unused, other.unused);
    result.leaked_handles = common(result.leaked_handles, other.leaked_handles);
  }
  return result;
}

}  // namespace croft::app
