#include "store/kube/protobuf_lists.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "store/kube/format/builtin_lists.h"

namespace croft::store::kube {
namespace {

constexpr std::array<std::string_view, 5> kLists = {"/api/v1/nodes", "/api/v1/namespaces", "/api/v1/services",
                                                    "/apis/networking.k8s.io/v1/ipaddresses",
                                                    "/apis/networking.k8s.io/v1/servicecidrs"};

[[nodiscard]] bool is_builtin_list(const Request& request) {
  const std::string_view path = std::string_view(request.path).substr(0, request.path.find('?'));
  return request.method == Request::Method::get && request.accept == Request().accept &&
         std::ranges::find(kLists, path) != kLists.end();
}

/// The objects that a list is asked for with at most; 0 where it says nothing.
[[nodiscard]] std::int64_t limit_of(const Request& request) {
  std::string_view query = request.path;
  query.remove_prefix(std::min(query.find('?'), query.size()));
  constexpr std::string_view kName = "limit=";
  for (std::size_t at = query.find(kName); at != query.npos; at = query.find(kName, at + 1)) {
    if (query[at - 1] != '?' && query[at - 1] != '&') continue;
    std::int64_t limit = 0;
    const std::string_view text = query.substr(at + kName.size());
    const auto read = std::from_chars(text.data(), text.data() + text.size(), limit);
    return read.ec == std::errc() ? limit : 0;
  }
  return 0;
}

class ProtobufLists final : public Api {
 public:
  explicit ProtobufLists(std::unique_ptr<Api> api) : api_(std::move(api)) {}

  [[nodiscard]] Answer call(const Request& request, Deadline deadline) override {
    if (!is_builtin_list(request)) return explained(request, api_->call(request, deadline), deadline);
    return explained(request, in_json(request, api_->call(in_protobuf(request), deadline)), deadline);
  }
  [[nodiscard]] std::vector<Answer> call_all(std::span<const Request> requests, Deadline deadline) override {
    if (std::ranges::none_of(requests, is_builtin_list)) return api_->call_all(requests, deadline);
    std::vector<Request> asked;
    for (const Request& request : requests) {
      asked.push_back(is_builtin_list(request) ? in_protobuf(request) : request);
    }
    std::vector<Answer> answers = api_->call_all(asked, deadline);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (is_builtin_list(requests[i]))
        answers[i] = explained(requests[i], in_json(requests[i], std::move(answers[i])), deadline);
    }
    return answers;
  }
  [[nodiscard]] WatchAnswer watch(const std::string& path, Deadline deadline) override {
    return api_->watch(path, deadline);
  }

 private:
  [[nodiscard]] static Request in_protobuf(Request request) {
    request.accept = std::string(wire::kube::kAcceptBuiltin);
    return request;
  }
  /// Who is asked for protobuf says also in protobuf why not. It is asked once more, in JSON, which the client reads.
  [[nodiscard]] Answer explained(Request request, Answer answer, Deadline deadline) {
    const bool is_unread = answer.outcome == Answer::Outcome::refused && answer.status.reason.empty();
    if (!is_unread || !request.is_read()) return answer;
    request.accept = Request().accept;
    return api_->call(request, deadline);
  }
  [[nodiscard]] static Answer in_json(const Request& request, Answer answer) {
    if (answer.outcome != Answer::Outcome::done) return answer;
    auto body = wire::kube::json_of_builtin_list(std::move(answer.body), limit_of(request));
    if (body) {
      answer.body = *std::move(body);
      return answer;
    }
    answer.outcome = Answer::Outcome::not_done;
    answer.body.clear();
    answer.error = body.error();
    return answer;
  }

  const std::unique_ptr<Api> api_;
};

}  // namespace

std::unique_ptr<Api> lists_in_protobuf(std::unique_ptr<Api> api) {
  return std::make_unique<ProtobufLists>(std::move(api));
}

}  // namespace croft::store::kube
