#include "store/kube/format/api.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/hex.h"
#include "base/json/reader.h"
#include "base/printable.h"
#include "base/time_text.h"

namespace croft::wire::kube {
namespace {

constexpr std::size_t kAnswerDepthMax = 200;
constexpr std::size_t kWordBytesMax = 1024;     // names, reasons, versions
constexpr std::size_t kMessageBytesMax = 4096;  // a longer one is cut
constexpr std::int64_t kRetryAfterMax = 86'400;
constexpr ObjectRules kAnswerRules{.names = ObjectRules::Names::exact};
Error damaged(std::string_view what, std::string_view why) {
  return {ErrorCode::corrupt, fmt::format("{} of the API server: {}", what, why), {}};
}

MaybeFault read_word(const JsonAt& at, std::string& out) { return read_text(at, kWordBytesMax, out); }

// ---------------------------------------------------------------- statuses

std::int64_t number_in(const std::optional<JsonRef>& object, std::string_view name, std::int64_t max) {
  const auto found = member_of(object, name);
  const std::int64_t number = found ? found->integer().value_or(0) : 0;
  return number < 0 || number > max ? 0 : number;
}

/// A status is for persons first: one member that is odd must not hide the rest.
std::optional<ApiStatus> status_of(JsonRef object) {
  if (text_in(object, "kind") != "Status" || text_in(object, "apiVersion") != "v1") return {};
  const auto details = member_of(object, "details");
  ApiStatus status;
  status.code = static_cast<int>(number_in(object, "code", 999));
  status.reason = text_in(object, "reason").substr(0, kWordBytesMax);
  status.message = text_in(object, "message").substr(0, kMessageBytesMax);
  status.name = text_in(details, "name").substr(0, kWordBytesMax);
  const std::int64_t seconds = number_in(details, "retryAfterSeconds", kRetryAfterMax);
  if (seconds > 0) status.retry_after = std::chrono::seconds{seconds};
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

/// `is_whole`: an object has a name, a bookmark has not.
MaybeFault read_meta(const JsonAt& at, bool is_whole, ApiMeta& out) {
  if (at.value.kind() != JsonKind::object) return at.wrong_type("an object");
  const auto metadata = member_of(at.value, "metadata");
  if (!metadata) return at.bad_value("it has no metadata");
  if (auto fault = read_object<ApiMeta>({*metadata, &at, "metadata", {}}, kMetaMembers, out, kAnswerRules))
    return fault;
  if (is_whole && out.name.empty()) return at.bad_value("metadata.name is missing");
  if (out.resource_version.empty()) return at.bad_value("metadata.resourceVersion is missing");
  return {};
}

[[nodiscard]] Result<std::unique_ptr<const JsonDocument>> parse(std::string_view what, std::string_view json) {
  auto document = parse_json(json, {.bytes_max = kApiAnswerBytesMax, .depth_max = kAnswerDepthMax});
  if (!document) return fail(damaged(what, document.error().message));
  return std::make_unique<const JsonDocument>(*std::move(document));
}

// ---------------------------------------------------------------- lists

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

[[nodiscard]] Result<void> check_list(JsonRef list, const ApiListOf& of) {
  const std::string_view kind = text_in(list, "kind"), version = text_in(list, "apiVersion");
  const bool is_it = kind == of.kind + "List" && version == of.api_version;
  const bool is_metadata = of.may_be_metadata && kind == "PartialObjectMetadataList" && version == "meta.k8s.io/v1";
  if (is_it || is_metadata) return {};
  return fail(damaged("a list", fmt::format("asked for was the kind {}List of {}, and it is of the kind {} of {}",
                                            of.kind, of.api_version, echo(kind), echo(version))));
}

// ---------------------------------------------------------------- events

std::optional<ApiEvent::Type> type_of(std::string_view text) {
  using Type = ApiEvent::Type;
  if (text == "ADDED") return Type::added;
  if (text == "MODIFIED") return Type::modified;
  if (text == "DELETED") return Type::deleted;
  if (text == "BOOKMARK") return Type::bookmark;
  if (text == "ERROR") return Type::error;
  return {};
}

// ---------------------------------------------------------------- slices

constexpr std::size_t kNoEnd = std::string_view::npos;

[[nodiscard]] std::size_t behind_space(std::string_view text, std::size_t at) {
  return std::min(text.find_first_not_of(" \t\r\n", at), text.size());
}

/// Behind the string that begins at `at`.
[[nodiscard]] std::size_t behind_string(std::string_view text, std::size_t at) {
  const std::size_t begin = at++;
  for (;; ++at) {
    at = text.find('"', at);
    if (at == kNoEnd) return at;
    std::size_t before = at;
    while (before > begin + 1 && text[before - 1] == '\\') --before;
    if ((at - before) % 2 == 0) return at + 1;
  }
}

[[nodiscard]] std::size_t copy(std::string_view text, std::span<const Kept> kept, std::string& out) {
  const bool is_object = text.starts_with('{');
  bool is_first = true;
  out += is_object ? '{' : '[';
  const std::size_t length = each_slice(text, [&](std::string_view name, std::string_view value) {
    const auto found = std::ranges::find(kept, name, &Kept::name);
    if (is_object && found == kept.end()) return length_of_value(value);
    if (!is_first) out += ',';
    is_first = false;
    if (is_object) out.append("\"").append(name).append("\":");
    const auto parts = is_object ? found->parts : kept;
    if (!parts.empty() && (value.starts_with('{') || value.starts_with('['))) return copy(value, parts, out);
    const std::size_t whole = length_of_value(value);
    if (whole != kNoEnd) out += value.substr(0, whole);
    return whole;
  });
  out += is_object ? '}' : ']';
  return length;
}

}  // namespace

std::string_view text_in(std::optional<JsonRef> object, std::string_view name) {
  const auto text = member_of(object, name);
  return text && text->kind() == JsonKind::string ? text->text() : std::string_view();
}

bool is_true_in(std::optional<JsonRef> object, std::string_view name) {
  const auto value = member_of(object, name);
  return value && value->boolean();
}

std::optional<ApiStatus> decode_status(std::string_view json) {
  const auto document = parse("a status", json);
  return document ? status_of((*document)->root()) : std::nullopt;
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

Result<ApiListPage> decode_list(std::string_view json, const ApiListOf& of) {
  auto found = cut(json);
  if (!found) return fail(damaged("a list", "it is no JSON, is cut off or has no items"));
  TRY(const auto document, parse("a list", found->head));
  TRY_VOID(check_list(document->root(), of));
  const auto metadata = member_of(document->root(), "metadata");
  ApiListPage page{std::string(text_in(metadata, "resourceVersion")), {}, std::move(found->items)};
  if (page.resource_version.empty()) return fail(damaged("a list", "metadata.resourceVersion is missing"));
  if (const auto token = member_of(metadata, "continue"); token && !token->is_null()) {
    // Taken for the last page, what it cannot read would be missing.
    if (token->kind() != JsonKind::string) return fail(damaged("a list", "metadata.continue: it is no string"));
    page.continue_token = token->text();
  }
  return page;
}

Result<ApiObject> decode_item(std::string_view item, const ApiListOf& of) {
  return of.kept.empty() ? decode_object(item) : decode_object(with_only(item, of.kept));
}

Result<ApiEvent> decode_event(std::string_view line) {
  constexpr std::string_view kWhat = "an event";
  TRY(auto document, parse(kWhat, line));
  const auto object = member_of(document->root(), "object");
  const std::string_view text = text_in(document->root(), "type");
  const auto type = type_of(text);
  if (!type) return fail(damaged(kWhat, fmt::format("its type {} is not known", echo(text))));
  if (!object) return fail(damaged(kWhat, "it has no object"));
  ApiEvent event;
  event.type = *type;
  if (*type == ApiEvent::Type::error) {
    event.status = status_of(*object);
    if (!event.status) return fail(damaged(kWhat, "it is an error without a Status"));
    return event;
  }
  ApiMeta meta;
  if (const auto fault = read_meta({*object, nullptr, "object", {}}, *type != ApiEvent::Type::bookmark, meta)) {
    return fail(damaged(kWhat, fault->to_string()));
  }
  event.object = ApiObject{std::move(document), *object, std::move(meta)};
  return event;
}

void WatchLines::add(std::string_view bytes) {
  // Bytes that were given out are dropped only here, and not for each line anew.
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

// ---------------------------------------------------------------- slices

std::size_t length_of_value(std::string_view text) {
  if (text.starts_with('"')) return behind_string(text, 0);
  if (!text.starts_with('{') && !text.starts_with('[')) {
    const std::size_t end = std::min(text.find_first_of(",]} \t\r\n"), text.size());
    return end == 0 ? kNoEnd : end;
  }
  std::size_t depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') {
      at = behind_string(text, at);
      if (at == kNoEnd) return at;
      --at;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return at + 1;
    }
  }
  return kNoEnd;
}

std::size_t each_slice(std::string_view text, const TakeSlice& take) {
  const bool is_object = text.starts_with('{');
  if (!is_object && !text.starts_with('[')) return kNoEnd;
  const char close = is_object ? '}' : ']';
  std::size_t at = behind_space(text, 1);
  if (text.substr(at).starts_with(close)) return at + 1;
  for (;;) {
    std::string_view name;
    if (is_object) {
      const std::size_t end = text.substr(at).starts_with('"') ? behind_string(text, at) : kNoEnd;
      if (end == kNoEnd) return kNoEnd;
      name = text.substr(at + 1, end - at - 2);
      at = behind_space(text, end);
      if (!text.substr(at).starts_with(':')) return kNoEnd;
      at = behind_space(text, at + 1);
    }
    const std::size_t length = take(name, text.substr(at));
    if (length == kNoEnd) return kNoEnd;
    at = behind_space(text, at + length);
    if (text.substr(at).starts_with(close)) return at + 1;
    if (!text.substr(at).starts_with(',')) return kNoEnd;
    at = behind_space(text, at + 1);
  }
}

std::string with_only(std::string_view text, std::span<const Kept> kept) {
  std::string out;
  return copy(text, kept, out) == kNoEnd ? std::string(text) : out;
}

namespace {

constexpr std::size_t kSegmentBytesMax = 253;

class Query {
 public:
  explicit Query(std::string_view path) : path_(path) {}
  void add(std::string_view name, std::string_view value) {
    if (value.empty()) return;
    path_ += std::exchange(separator_, '&');
    path_.append(name).append("=").append(percent_encoded(value));
  }
  void add(const ApiSelection& select) {
    add("labelSelector", select.label_selector);
    add("fieldSelector", select.field_selector);
  }
  [[nodiscard]] std::string take() && { return std::move(path_); }

 private:
  std::string path_;
  char separator_ = '?';
};

}  // namespace

bool is_path_segment(std::string_view name) {
  return !name.empty() && name.size() <= kSegmentBytesMax && name != "." && name != ".." &&
         std::ranges::none_of(name, [](char c) { return c == '/' || c == '%' || c == '\0'; });
}

std::string ApiResource::api_version() const {
  return group.empty() ? std::string(version) : fmt::format("{}/{}", group, version);
}

Result<std::string> collection_path(const ApiResource& resource, std::string_view name_space) {
  std::string path = resource.group.empty()
                         ? fmt::format("/api/{}", resource.version)
                         : fmt::format("/apis/{}/{}", percent_encoded(resource.group), resource.version);
  if (!name_space.empty()) {
    if (!is_path_segment(name_space)) {
      return fail(invalid_argument(fmt::format("{} can be no namespace", echo(name_space))));
    }
    path.append("/namespaces/").append(percent_encoded(name_space));
  }
  return path.append("/").append(percent_encoded(resource.resource));
}

Result<std::string> object_path(const ApiResource& resource, std::string_view name_space, std::string_view name) {
  TRY(std::string path, collection_path(resource, name_space));
  if (!is_path_segment(name)) {
    return fail(invalid_argument(fmt::format("{} can be no name in Kubernetes", echo(name))));
  }
  return path.append("/").append(percent_encoded(name));
}

std::string list_path(std::string_view collection, const ApiListQuery& query) {
  Query made(collection);
  made.add(query.select);
  if (query.limit > 0) made.add("limit", fmt::format("{}", query.limit));
  made.add("continue", query.continue_token);
  if (query.continue_token.empty() && !query.resource_version.empty()) {
    made.add("resourceVersion", query.resource_version);
    made.add("resourceVersionMatch", "NotOlderThan");
  }
  return std::move(made).take();
}

std::string watch_path(std::string_view collection, const ApiWatchQuery& query) {
  Query made(collection);
  made.add("watch", "1");
  made.add("allowWatchBookmarks", "true");
  made.add(query.select);
  made.add("resourceVersion", query.resource_version);
  return std::move(made).take();
}

std::string encode_delete_options(const ApiPreconditions& only_if) {
  std::string conditions;
  const auto add = [&](std::string_view name, std::string_view value) {
    if (!value.empty()) conditions += fmt::format(R"({}"{}":"{}")", conditions.empty() ? "" : ",", name, value);
  };
  add("uid", only_if.uid);
  add("resourceVersion", only_if.resource_version);
  if (!conditions.empty()) conditions = fmt::format(R"(,"preconditions":{{{}}})", conditions);
  return fmt::format(R"({{"kind":"DeleteOptions","apiVersion":"v1"{}}})", conditions);
}

}  // namespace croft::wire::kube
