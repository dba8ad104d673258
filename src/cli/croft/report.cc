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

std::optional<std::uint64_t> whole_number(const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

/// Takes out of a report what is acted on, event by event: nothing else is ever kept. `depth_` counts the arrays and
/// objects around an event.
class ReportReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit ReportReader(ReportContent& content) : content_(content) {}

  /// Why it ended before the end; nothing when the text is no JSON.
  [[nodiscard]] const std::optional<Error>& fault() const { return fault_; }
  /// The checks that only the end allows.
  [[nodiscard]] Result<void> finish() const {
    if (!has_allocations_) return fail(wrong("allocations", "not an object"));
    return {};
  }

  bool null() override { return is_at(1, Part::leaked_handles) || scalar(); }
  bool boolean(bool value) override {
    if (depth_ == 4 && member_ == "inUse") in_use_ = value;
    if (depth_ == 4 && member_ == "coolingDown") cooling_ = value;
    return scalar();
  }
  bool number_integer(number_integer_t) override { return scalar(); }
  bool number_unsigned(number_unsigned_t value) override {
    if (depth_ == 4 && member_ == "sequenceNumber") sequence_ = value;
    return scalar();
  }
  bool number_float(number_float_t, const string_t&) override { return scalar(); }
  bool binary(binary_t&) override { return scalar(); }
  bool string(string_t& value) override {
    if (depth_ == 1 && member_ == "version") content_.version = value;
    if (depth_ == 1 && member_ == "clusterGUID") content_.cluster = value;
    if (depth_ == 3 && member_ == "ID") id_ = value;
    if (depth_ == 3 && member_ == "Revision") revision_ = value;
    if (depth_ == 4 && member_ == "handle") handle_ = value;
    if (depth_ == 4 && member_ == "unusedBy") by_cluster_ = value == "cluster";
    if (depth_ == 4 && member_ == "sequenceNumber") sequence_ = whole_number(value);
    return scalar();
  }

  bool key(string_t& name) override {
    if (depth_ == 1) {
      part_ = name == "allocations" ? Part::allocations : name == "leakedHandles" ? Part::leaked_handles : Part::other;
      if (part_ == Part::allocations && std::exchange(has_allocations_, true))
        return stop("allocations", "given twice");
    }
    if (depth_ == 2 && part_ == Part::allocations) address_ = name;
    const bool is_looked_at =
        depth_ == 1 || (depth_ == 3 && part_ == Part::leaked_handles) || (depth_ == 4 && part_ == Part::allocations);
    member_ = is_looked_at ? name : string_t();
    if (is_looked_at) forget(member_);
    return true;
  }
  bool start_object(std::size_t) override {
    if (is_at(1, Part::leaked_handles)) return stop("leakedHandles", "not an array");
    if (is_at(2, Part::allocations)) return stop("allocations." + address_, "not an array");
    const bool is_element = is_at(3, Part::allocations) || is_at(2, Part::leaked_handles);
    if (is_element) forget_element();
    return enter();
  }
  bool start_array(std::size_t) override {
    if (depth_ == 0) return false;
    if (is_at(1, Part::allocations)) return stop("allocations", "not an object");
    if (is_at(3, Part::allocations)) return stop("allocations." + address_, "not an object");
    if (is_at(2, Part::leaked_handles)) return stop("leakedHandles", "an element is not an object");
    return enter();
  }
  bool end_object() override {
    --depth_;
    if (is_at(3, Part::allocations)) return take_allocation();
    if (is_at(2, Part::leaked_handles)) return take_handle();
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  enum class Part : std::uint8_t { other, allocations, leaked_handles };

  [[nodiscard]] bool is_at(int depth, Part part) const { return depth_ == depth && part_ == part; }

  bool stop(std::string_view member, std::string_view what) {
    fault_ = wrong(member, what);
    return false;
  }
  bool enter() {
    ++depth_;
    member_.clear();
    return true;
  }

  /// A value that is no array or object, where there must be one.
  bool scalar() {
    if (depth_ == 0) return false;
    if (is_at(1, Part::allocations)) return stop("allocations", "not an object");
    if (is_at(2, Part::allocations)) return stop("allocations." + address_, "not an array");
    if (is_at(3, Part::allocations)) return stop("allocations." + address_, "not an object");
    if (is_at(1, Part::leaked_handles)) return stop("leakedHandles", "not an array");
    if (is_at(2, Part::leaked_handles)) return stop("leakedHandles", "an element is not an object");
    return true;
  }

  void forget_element() {
    for (const char* member : {"inUse", "coolingDown", "sequenceNumber", "handle", "unusedBy", "ID", "Revision"})
      forget(member);
  }
  /// The last of repeated members counts; in doubt an address is in use.
  void forget(std::string_view member) {
    if (member == "inUse") in_use_ = true;
    if (member == "coolingDown") cooling_ = false;
    if (member == "sequenceNumber") sequence_.reset();
    if (member == "handle") handle_.clear();
    if (member == "unusedBy") by_cluster_ = false;
    if (member == "ID") id_.clear();
    if (member == "Revision") revision_.clear();
  }

  bool take_allocation() {
    if (in_use_ || cooling_) return true;
    const auto address = net::Address::parse(address_);
    if (!address) {
      fault_ = address.error();
      return false;
    }
    if (handle_.empty()) return stop("allocations." + address_ + ".handle", "missing");
    if (!sequence_) return stop("allocations." + address_ + ".sequenceNumber", "not a whole number");
    content_.unused.push_back({*address, handle_, core::SequenceNumber(*sequence_)});
    if (by_cluster_) content_.by_cluster.insert(*address);
    return true;
  }

  bool take_handle() {
    const std::optional<std::uint64_t> number = whole_number(revision_);
    if (id_.empty() || !number) {
      return stop("leakedHandles", "an element has no ID, or a Revision that is no number");
    }
    content_.leaked_handles.push_back({id_, store::Revision(*number)});
    return true;
  }

  ReportContent& content_;
  std::optional<Error> fault_;
  int depth_ = 0;
  Part part_ = Part::other;
  bool has_allocations_ = false;
  string_t address_, member_;
  // The element at hand:
  bool in_use_ = true, cooling_ = false, by_cluster_ = false;
  std::optional<std::uint64_t> sequence_;
  string_t handle_, id_, revision_;
};

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
    findings.push_back({{"finding", core::audit::name_of(finding.kind)},
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
  if (is_too_deep(text)) return fail(wrong("file", "arrays and objects are too deep inside each other"));
  ReportContent content;
  ReportReader reader(content);
  const bool is_whole = nlohmann::json::sax_parse(text, &reader);
  if (reader.fault()) return fail(*reader.fault());
  if (!is_whole) return fail(wrong("file", "not a JSON object"));
  TRY_VOID(reader.finish());
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
