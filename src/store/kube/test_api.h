#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "store/kube/api.h"

// For tests: answers, and an API that gives them.
namespace croft::store::kube {

[[nodiscard]] inline Answer answered(std::string body = {}) {
  return {Answer::Outcome::done, 200, std::move(body), {}, {}};
}

/// The object's name is empty where the server does not know the kind.
[[nodiscard]] inline Answer refused(int http_status, ErrorCode code, std::string message = "no",
                                    std::string object = {}) {
  Answer answer;
  answer.outcome = Answer::Outcome::refused;
  answer.http_status = answer.status.code = http_status;
  answer.status.name = std::move(object);
  answer.error = {code, std::move(message), {}};
  return answer;
}

/// Gives each request to a function, and has no watches.
class AnsweringApi : public Api {
 public:
  using Respond = std::function<Answer(const Request& request)>;
  explicit AnsweringApi(Respond respond) : respond_(std::move(respond)) {}

  [[nodiscard]] Answer call(const Request& request, Deadline) override {
    asked.push_back(request);
    return respond_(request);
  }
  [[nodiscard]] WatchAnswer watch(const std::string&, Deadline) override { return {}; }

  std::vector<Request> asked;

 private:
  const Respond respond_;
};

}  // namespace croft::store::kube
