#include "store/kube/format/api.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/json/decode.h"
#include "base/net/echo.h"
#include "base/time_text.h"

namespace croft::wire::kube {
namespace {

constexpr std::size_t kAnswerDepthMax = 200;
constexpr std::size_t kWordBytesMax = 1024;  // names, reasons, versions
constexpr std::size_t kContinueBytesMax = std::size_t{64} << 10;
constexpr std::size_t kMessageBytesMax = 4096;  // a longer one is cut
constexpr std::int64_t kRetryAfterMax = 86'400;
constexpr ObjectRules kAnswerRules{.names = ObjectRules::Names::exact};
/// A status is for persons first: one member that is odd must not hide the rest.
constexpr ObjectRules kLenient{.names = ObjectRules::Names::exact, .on_fault = OnFault::skip};

Error damaged(std::string_view what, std::string_view why) {
  return {ErrorCode::corrupt, fmt::format("{} of the API server: {}", what, why), {}};
}

MaybeFault read_word(const JsonAt& at, std::string& out) { return read_text(at, kWordBytesMax, out); }

MaybeFault read_message(const JsonAt& at, std::string& out) {
  if (at.value.kind() == JsonKind::string) out = at.value.text().substr(0, kMessageBytesMax);
  return {};
}

// ---------------------------------------------------------------- statuses

constexpr std::array<JsonMember<ApiStatus::Cause>, 3> kCauseMembers{{
    {"reason", [](const JsonAt& at, ApiStatus::Cause& out) { return read_word(at, out.reason); }},
    {"message", [](const JsonAt& at, ApiStatus::Cause& out) { return read_message(at, out.message); }},
    {"field", [](const JsonAt& at, ApiStatus::Cause& out) { return read_word(at, out.field); }},
}};

MaybeFault read_causes(const JsonAt& at, ApiStatus& out) {
  return read_list<ApiStatus::Cause>(
      at, ApiStatus::kCausesMax,
      [](const JsonAt& element, ApiStatus::Cause& cause) {
        return read_object<ApiStatus::Cause>(element, kCauseMembers, cause, kLenient);
      },
      out.causes);
}

constexpr std::array<JsonMember<ApiStatus>, 5> kDetailsMembers{{
    {"name", [](const JsonAt& at, ApiStatus& out) { return read_word(at, out.name); }},
    {"kind", [](const JsonAt& at, ApiStatus& out) { return read_word(at, out.kind); }},
    {"uid", [](const JsonAt& at, ApiStatus& out) { return read_word(at, out.uid); }},
    {"causes", read_causes},
    {"retryAfterSeconds",
     [](const JsonAt& at, ApiStatus& out) -> MaybeFault {
       std::int64_t seconds = 0;
       if (auto fault = read_integer(at, 0, kRetryAfterMax, seconds)) return fault;
       if (seconds > 0) out.retry_after = std::chrono::seconds{seconds};
       return {};
     }},
}};

struct KindAndVersion {
  std::string kind;
  std::string api_version;
};

constexpr std::array<JsonMember<KindAndVersion>, 2> kTypeMembers{{
    {"kind", [](const JsonAt& at, KindAndVersion& out) { return read_word(at, out.kind); }},
    {"apiVersion", [](const JsonAt& at, KindAndVersion& out) { return read_word(at, out.api_version); }},
}};

constexpr std::array<JsonMember<ApiStatus>, 4> kStatusMembers{{
    {"code",
     [](const JsonAt& at, ApiStatus& out) -> MaybeFault {
       std::int64_t code = 0;
       if (auto fault = read_integer(at, 0, 999, code)) return fault;
       out.code = static_cast<int>(code);
       return {};
     }},
    {"reason", [](const JsonAt& at, ApiStatus& out) { return read_word(at, out.reason); }},
    {"message", [](const JsonAt& at, ApiStatus& out) { return read_message(at, out.message); }},
    {"details",
     [](const JsonAt& at, ApiStatus& out) { return read_object<ApiStatus>(at, kDetailsMembers, out, kLenient); }},
}};

std::optional<ApiStatus> status_of(const JsonAt& at) {
  KindAndVersion type;
  if (read_object<KindAndVersion>(at, kTypeMembers, type, kLenient)) return {};
  if (type.kind != "Status" || type.api_version != "v1") return {};
  ApiStatus status;
  if (read_object<ApiStatus>(at, kStatusMembers, status, kLenient)) return {};
  return status;
}

// ---------------------------------------------------------------- objects

constexpr std::array<JsonMember<ApiMeta>, 5> kMetaMembers{{
    {"name", [](const JsonAt& at, ApiMeta& out) { return read_word(at, out.name); }},
    {"namespace", [](const JsonAt& at, ApiMeta& out) { return read_word(at, out.name_space); }},
    {"uid", [](const JsonAt& at, ApiMeta& out) { return read_word(at, out.uid); }},
    {"resourceVersion", [](const JsonAt& at, ApiMeta& out) { return read_word(at, out.resource_version); }},
    {"deletionTimestamp",
     [](const JsonAt& at, ApiMeta& out) -> MaybeFault {
       std::string text;
       if (auto fault = read_word(at, text)) return fault;
       if (text.empty()) return {};
       // Whether it is set is what counts. Kubernetes' years end with 9999, ours earlier, and who deletes a pod chooses
       // the year (terminationGracePeriodSeconds): that must not make all that is told with it unreadable.
       out.deletion_timestamp = parse_rfc3339(text).value_or(WallTime::max());
       return {};
     }},
}};

struct Object {
  ApiMeta of;
  bool has_meta = false;
};

constexpr std::array<JsonMember<Object>, 1> kObjectMembers{{
    {"metadata",
     [](const JsonAt& at, Object& out) {
       out.has_meta = true;
       return read_object<ApiMeta>(at, kMetaMembers, out.of, kAnswerRules);
     }},
}};

/// `is_whole`: an object has a name, a bookmark has not.
MaybeFault read_meta(const JsonAt& at, bool is_whole, ApiMeta& out) {
  Object object;
  if (at.value.kind() != JsonKind::object) return at.wrong_type("an object");
  if (auto fault = read_object<Object>(at, kObjectMembers, object, kAnswerRules)) return fault;
  if (!object.has_meta) return at.bad_value("it has no metadata");
  if (is_whole && object.of.name.empty()) return at.bad_value("metadata.name is missing");
  if (object.of.resource_version.empty()) return at.bad_value("metadata.resourceVersion is missing");
  out = std::move(object.of);
  return {};
}

[[nodiscard]] Result<std::unique_ptr<const JsonDocument>> parse(std::string_view what, std::string_view json) {
  auto document = parse_json(json, {.bytes_max = kApiAnswerBytesMax, .depth_max = kAnswerDepthMax});
  if (!document) return fail(damaged(what, document.error().message));
  return std::make_unique<const JsonDocument>(*std::move(document));
}

// ---------------------------------------------------------------- lists

/// What a list says of itself.
struct List {
  KindAndVersion type;
  ApiListPage page;
};

constexpr std::array<JsonMember<ApiListPage>, 2> kListMetaMembers{{
    {"resourceVersion", [](const JsonAt& at, ApiListPage& out) { return read_word(at, out.resource_version); }},
    {"continue",
     [](const JsonAt& at, ApiListPage& out) { return read_text(at, kContinueBytesMax, out.continue_token); }},
}};

constexpr std::array<JsonMember<List>, 3> kListMembers{{
    {"kind", [](const JsonAt& at, List& out) { return read_word(at, out.type.kind); }},
    {"apiVersion", [](const JsonAt& at, List& out) { return read_word(at, out.type.api_version); }},
    {"metadata", [](const JsonAt& at,
                    List& out) { return read_object<ApiListPage>(at, kListMetaMembers, out.page, kAnswerRules); }},
}};

/// The list's own members, as an object, and the texts of its items; nothing where it is no JSON or has no items.
struct Cut {
  std::string head = "{";
  std::vector<std::string_view> items;
};
[[nodiscard]] std::optional<Cut> cut(std::string_view json) {
  Cut found;
  bool has_items = false;
  constexpr std::string_view kSpace = " \t\r\n";
  json.remove_prefix(std::min(json.find_first_not_of(kSpace), json.size()));
  const auto take_item = [&](std::string_view, std::string_view text) {
    const std::size_t length = length_of_value(text);
    found.items.push_back(text.substr(0, length));
    return length;
  };
  const std::size_t length = each_slice(json, [&](std::string_view name, std::string_view text) {
    if (name != "items") {
      const std::size_t whole = length_of_value(text);
      found.head.append(found.head.size() == 1 ? "\"" : ",\"").append(name).append("\":").append(text, 0, whole);
      return whole;
    }
    has_items = true;
    return text.starts_with('[') ? each_slice(text, take_item) : length_of_value(text);
  });
  found.head += '}';
  const bool is_whole =
      json.starts_with('{') && length != json.npos && json.find_first_not_of(kSpace, length) == json.npos;
  return has_items && is_whole ? std::optional(std::move(found)) : std::nullopt;
}

[[nodiscard]] Result<void> check_list(const KindAndVersion& type, const ApiListOf& of) {
  const bool is_it = type.kind == of.kind + "List" && type.api_version == of.api_version;
  const bool is_metadata =
      of.may_be_metadata && type.kind == "PartialObjectMetadataList" && type.api_version == "meta.k8s.io/v1";
  if (is_it || is_metadata) return {};
  return fail(
      damaged("a list", fmt::format("asked for was the kind {}List of {}, and it is of the kind {} of {}", of.kind,
                                    of.api_version, net::echo(type.kind), net::echo(type.api_version))));
}

// ---------------------------------------------------------------- events

struct Event {
  std::string type;
  std::optional<JsonRef> object;
};

constexpr std::array<JsonMember<Event>, 2> kEventMembers{{
    {"type", [](const JsonAt& at, Event& out) { return read_word(at, out.type); }},
    {"object",
     [](const JsonAt& at, Event& out) -> MaybeFault {
       out.object = at.value;
       return {};
     }},
}};

std::optional<ApiEvent::Type> type_of(std::string_view text) {
  using Type = ApiEvent::Type;
  if (text == "ADDED") return Type::added;
  if (text == "MODIFIED") return Type::modified;
  if (text == "DELETED") return Type::deleted;
  if (text == "BOOKMARK") return Type::bookmark;
  if (text == "ERROR") return Type::error;
  return {};
}

}  // namespace

std::optional<ApiStatus> decode_status(std::string_view json) {
  const auto document = parse_json(json, {.bytes_max = kApiAnswerBytesMax, .depth_max = kAnswerDepthMax});
  if (!document) return {};
  return status_of({document->root(), nullptr, {}, {}});
}

Result<ApiObject> decode_object(std::string_view json) {
  TRY(auto document, parse("an object", json));
  const JsonRef root = document->root();
  ApiMeta meta;
  if (const auto fault = read_meta({root, nullptr, {}, {}}, true, meta)) {
    return fail(damaged("an object", fault->to_string()));
  }
  return ApiObject{std::move(document), root, std::move(meta)};
}

namespace {

/// "Pod v1 shop/web-0"
std::string told(const ApiObjectOf& of) {
  return fmt::format("{} of {}, {}", net::echo(of.kind), net::echo(of.api_version),
                     net::echo(of.name_space.empty() ? of.name : of.name_space + "/" + of.name));
}

[[nodiscard]] ApiObjectOf identity_of(const ApiObject& object) {
  KindAndVersion type;
  // What can't be read is left empty, and then differs.
  static_cast<void>(read_object<KindAndVersion>({object.value, nullptr, {}, {}}, kTypeMembers, type, kLenient));
  return {std::move(type.api_version), std::move(type.kind), object.meta.name_space, object.meta.name};
}

}  // namespace

Result<void> check_object(const ApiObject& object, const ApiObjectOf& of) {
  const ApiObjectOf is = identity_of(object);
  const bool is_it =
      is.api_version == of.api_version && is.kind == of.kind && is.name_space == of.name_space && is.name == of.name;
  if (is_it) return {};
  return fail(damaged("an object", fmt::format("asked for was {}, and it is {}", told(of), told(is))));
}

Result<ApiObject> decode_object(std::string_view json, const ApiObjectOf& of) {
  TRY(ApiObject object, decode_object(json));
  TRY_VOID(check_object(object, of));
  return object;
}

Result<void> check_event(const ApiEvent& event, const ApiListOf& of, std::string_view name) {
  if (!event.object) return {};
  const ApiObjectOf is = identity_of(*event.object);
  const bool is_bookmark = event.type == ApiEvent::Type::bookmark;  // it has neither name nor namespace
  const bool is_it = is.api_version == of.api_version && is.kind == of.kind &&
                     (is_bookmark || ((name.empty() || is.name == name) && is.name_space.empty() != of.is_namespaced));
  if (is_it) return {};
  return fail(damaged("an event", fmt::format("watched is {} of {}{}, and it tells of {}", of.kind, of.api_version,
                                              name.empty() ? "" : ", " + net::echo(name), told(is))));
}

Result<ApiListPage> decode_list(std::string_view json, const ApiListOf& of) {
  auto found = cut(json);
  if (!found) return fail(damaged("a list", "it is no JSON, is cut off or has no items"));
  TRY(const auto document, parse("a list", found->head));
  List list;
  if (const auto fault = read_object<List>({document->root(), nullptr, {}, {}}, kListMembers, list, kAnswerRules)) {
    return fail(damaged("a list", fault->to_string()));
  }
  TRY_VOID(check_list(list.type, of));
  if (list.page.resource_version.empty()) return fail(damaged("a list", "metadata.resourceVersion is missing"));
  list.page.items = std::move(found->items);
  return std::move(list.page);
}

Result<ApiObject> decode_item(std::string_view item, const ApiListOf& of) {
  TRY(ApiObject object, of.kept.empty() ? decode_object(item) : decode_object(with_only(item, of.kept)));
  if (of.is_namespaced && object.meta.name_space.empty()) {
    return fail(damaged("a list", fmt::format("metadata.namespace of a {} is missing", of.kind)));
  }
  return object;
}

Result<ApiEvent> decode_event(std::string_view line) {
  constexpr std::string_view kWhat = "an event";
  TRY(auto document, parse(kWhat, line));
  const JsonAt at{document->root(), nullptr, {}, {}};
  Event found;
  if (at.value.kind() != JsonKind::object) return fail(damaged(kWhat, "it is no object"));
  if (const auto fault = read_object<Event>(at, kEventMembers, found, kAnswerRules)) {
    return fail(damaged(kWhat, fault->to_string()));
  }
  const auto type = type_of(found.type);
  if (!type) return fail(damaged(kWhat, fmt::format("its type {} is not known", net::echo(found.type))));
  if (!found.object) return fail(damaged(kWhat, "it has no object"));
  ApiEvent event;
  event.type = *type;
  const JsonAt object_at{*found.object, &at, "object", {}};
  if (*type == ApiEvent::Type::error) {
    event.status = status_of(object_at);
    if (!event.status) return fail(damaged(kWhat, "it is an error without a Status"));
    return event;
  }
  ApiMeta meta;
  if (const auto fault = read_meta(object_at, *type != ApiEvent::Type::bookmark, meta)) {
    return fail(damaged(kWhat, fault->to_string()));
  }
  event.object = ApiObject{std::move(document), *found.object, std::move(meta)};
  return event;
}

void WatchLines::add(std::string_view bytes) {
  // What was given out is forgotten only here, and not for each line anew.
  bytes_.erase(0, taken_);
  looked_ -= taken_;
  taken_ = 0;
  bytes_ += bytes;
}

Result<std::optional<std::string_view>> WatchLines::next() {
  for (;;) {
    const std::size_t end = bytes_.find('\n', looked_);
    const std::size_t stop = end == bytes_.npos ? bytes_.size() : end;
    if (stop - taken_ > line_bytes_max_) {
      return fail(damaged("a watch", fmt::format("an event has more than {} bytes", line_bytes_max_)));
    }
    looked_ = stop;
    if (end == bytes_.npos) return std::optional<std::string_view>();
    const std::string_view line = std::string_view(bytes_).substr(taken_, end - taken_);
    taken_ = looked_ = end + 1;
    if (line.find_first_not_of(" \t\r") != line.npos) return std::optional(line);
  }
}

}  // namespace croft::wire::kube
