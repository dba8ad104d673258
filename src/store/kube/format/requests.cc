#include "store/kube/format/requests.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/net/echo.h"

namespace croft::wire::kube {
namespace {

constexpr std::size_t kSegmentBytesMax = 253;

/// RFC 3986, of a segment of a path or a value of a query.
std::string percent_encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool is_unreserved = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                               std::string_view("-._~").find(c) != std::string_view::npos;
    out += is_unreserved ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

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

Result<std::string> collection_path(const ApiResource& resource, std::string_view name_space) {
  std::string path = resource.group.empty()
                         ? fmt::format("/api/{}", resource.version)
                         : fmt::format("/apis/{}/{}", percent_encoded(resource.group), resource.version);
  if (!name_space.empty()) {
    if (!is_path_segment(name_space)) {
      return fail(invalid_argument(fmt::format("{} can be no namespace", net::echo(name_space))));
    }
    path.append("/namespaces/").append(percent_encoded(name_space));
  }
  return path.append("/").append(percent_encoded(resource.resource));
}

Result<std::string> object_path(const ApiResource& resource, std::string_view name_space, std::string_view name) {
  TRY(std::string path, collection_path(resource, name_space));
  if (!is_path_segment(name)) {
    return fail(invalid_argument(fmt::format("{} can be no name in Kubernetes", net::echo(name))));
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
