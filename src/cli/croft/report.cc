#include "cli/croft/report.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/time_text.h"
#include "cli/croft/json_text.h"

namespace croft::app {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const std::map<std::string, std::string>& map, const char* key) {
  const auto it = map.find(key);
  return it == map.end() ? "" : it->second;
}

Json owners_json(const core::audit::Allocation& one) {
  Json owners = Json::array();
  for (const auto* owner : {&one.attributes.get(), &one.alternate_owner.get()}) {
    if (owner->empty()) continue;
    Json json = Json::object();
    for (const auto& [key, value] : *owner) json[key] = value;
    owners.push_back(std::move(json));
  }
  return owners;
}

Json allocation_json(const core::audit::Allocation& one) {
  const std::string pod = text_of(one.attributes, core::kPodKey);
  const std::string type = text_of(one.attributes, "type");
  return {{"ip", one.address.to_string()},
          {"handle", one.handle_id},
          {"sequenceNumber", number_64_json(one.sequence_number.value)},
          {"pod", pod},
          {"namespace", text_of(one.attributes, core::kNamespaceKey)},
          {"node", one.node()},
          {"type", type.empty() && !pod.empty() ? "pod" : type},
          {"creationTimestamp", text_of(one.attributes, core::kTimestampKey)},
          {"inUse", !one.cooling && !one.unattached && !one.gone},
          {"unusedBy", one.unattached ? Json("runtime")
                       : one.gone     ? Json("cluster")
                                      : Json()},
          {"borrowed", one.borrowed()},
          {"coolingDown", one.cooling},
          {"owners", owners_json(one)}};
}

Error wrong(std::string_view member, std::string_view what) {
  return {ErrorCode::invalid_argument, fmt::format("report: {}: {}", member, what), {}};
}

using Read = nlohmann::json;
using Event = Read::parse_event_t;

std::string text_in(const Read& object, const char* member) {
  const auto it = object.find(member);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

/// A whole number, written as one or as text.
std::optional<std::uint64_t> number_in(const Read& object, const char* member) {
  if (const auto it = object.find(member); it != object.end() && it->is_number_unsigned()) {
    return it->get<std::uint64_t>();
  }
  const std::string text = text_in(object, member);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = !text.empty() && error == std::errc() && end == text.data() + text.size();
  return is_whole ? std::optional(number) : std::nullopt;
}

bool flag_in(const Read& object, const char* member, bool otherwise) {
  const auto it = object.find(member);
  return it != object.end() && it->is_boolean() ? it->get<bool>() : otherwise;
}

/// Takes out of a report what is acted on, an element at a time: of none the parser keeps anything afterwards.
class ReportReader {
 public:
  explicit ReportReader(ReportContent& content) : content_(content) {}

  [[nodiscard]] Result<void> read(std::string_view text) {
    const Read rest = Read::parse(
        text, [this](int depth, Event event, Read& value) { return is_kept(depth, event, value); }, false);
    if (fault_) return fail(*fault_);
    if (!rest.is_object()) return fail(wrong("file", "not a JSON object"));
    if (!rest.contains("allocations")) return fail(wrong("allocations", "not an object"));
    content_.version = text_in(rest, "version");
    content_.cluster = text_in(rest, "clusterGUID");
    return {};
  }

 private:
  /// As the parser asks; `depth` counts the arrays and objects around the event.
  bool is_kept(int depth, Event event, const Read& value) {
    if (fault_) return false;
    if (event == Event::key) {
      if (depth == 1) part_ = value.get<std::string>();
      if (depth == 2) name_ = value.get<std::string>();
      return true;
    }
    if (depth == 0) return true;
    const bool is_allocations = part_ == "allocations", is_handles = part_ == "leakedHandles";
    if (event == Event::object_end || event == Event::array_end) {
      if (is_allocations && depth == 3) take_allocation(value);
      if (is_handles && depth == 2) take_handle(value);
      return depth == 1;
    }
    const bool is_object = event == Event::object_start, is_array = event == Event::array_start;
    if (is_allocations) {
      if (depth == 1 && !is_object) return stop("allocations", "not an object");
      if (depth == 2 && !is_array) return stop("allocations." + name_, "not an array");
      if (depth == 3 && !is_object) return stop("allocations." + name_, "not an object");
    }
    if (is_handles && depth == 1 && !is_array && !value.is_null()) return stop("leakedHandles", "not an array");
    if (is_handles && depth == 2 && !is_object) return stop("leakedHandles", "an element is not an object");
    const int depth_of_members = is_allocations ? 4 : is_handles ? 3 : 1;
    return depth < depth_of_members || event == Event::value;
  }

  bool stop(std::string_view member, std::string_view what) {
    fault_ = wrong(member, what);
    return false;
  }

  /// In doubt an address is in use.
  void take_allocation(const Read& one) {
    if (flag_in(one, "inUse", true) || flag_in(one, "coolingDown", false)) return;
    const auto address = net::Address::parse(name_);
    const std::string handle = text_in(one, "handle");
    const auto sequence = number_in(one, "sequenceNumber");
    if (!address) {
      fault_ = address.error();
    } else if (handle.empty()) {
      stop("allocations." + name_ + ".handle", "missing");
    } else if (!sequence) {
      stop("allocations." + name_ + ".sequenceNumber", "not a whole number");
    } else {
      content_.unused.push_back({*address, handle, core::SequenceNumber(*sequence)});
      if (text_in(one, "unusedBy") == "cluster") content_.by_cluster.insert(*address);
    }
  }

  void take_handle(const Read& one) {
    const std::string id = text_in(one, "ID");
    const auto revision = number_in(one, "Revision");
    if (id.empty() || !revision) {
      stop("leakedHandles", "an element has no ID, or a Revision that is no number");
    } else {
      content_.leaked_handles.push_back({id, store::Revision(*revision)});
    }
  }

  ReportContent& content_;
  std::optional<Error> fault_;
  std::string part_, name_;  ///< of the report; of the allocation at hand, its address
};

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
std::vector<T> common(const std::vector<T>& a, const std::vector<T>& b) {
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
  Json handles = Json::array();
  for (const engine::LeakedHandle& handle : report.leaked_handles) {
    handles.push_back({{"ID", handle.id}, {"UID", nullptr}, {"Revision", std::to_string(handle.revision.value)}});
  }
  Json findings = Json::array();
  for (const core::audit::Finding& finding : report.findings) {
    findings.push_back({{"finding", finding.id},
                        {"subject", finding.subject},
                        {"evidence", finding.what},
                        {"remedy", finding.remedy},
                        {"since", finding.since.empty() ? Json() : Json(finding.since)},
                        {"looks", finding.looks > 0 ? Json(finding.looks) : Json()}});
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
                   {"comparedWithRuntime", origin.compared},
                   {"comparedWithCluster", origin.compared_with_cluster}};
  json["croft"]["findings"] = std::move(findings);
  return printed_json(json);
}

Result<ReportContent> parse_report(std::string_view text) {
  if (text.size() > kReportBytesMax) return fail(wrong("file", "too long"));
  ReportContent content;
  TRY_VOID(ReportReader(content).read(text));
  content.unused = as_set(std::move(content.unused));
  content.leaked_handles = as_set(std::move(content.leaked_handles));
  return content;
}

ReportContent intersection_of(const std::vector<ReportContent>& reports) {
  ReportContent result = reports.front();
  for (const ReportContent& other : reports) {
    result.unused = common(result.unused, other.unused);
    result.leaked_handles = common(result.leaked_handles, other.leaked_handles);
    result.by_cluster.insert(other.by_cluster.begin(), other.by_cluster.end());
  }
  return result;
}

}  // namespace croft::app
