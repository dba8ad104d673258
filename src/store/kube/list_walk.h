#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "store/kube/api.h"
#include "wire/kube/api.h"
#include "wire/kube/requests.h"

namespace croft::store::kube {

/// Keeps a list that is read page by page within bounds, whatever the server answers: a page that is too large is asked
/// for again in smaller parts, and a list that has no end is given up.
class ListWalk {
 public:
  static constexpr std::int64_t kPagesMax = 20'000;
  /// A server forgets a list's moment after some minutes.
  static constexpr std::chrono::minutes kTimeMax{10};

  ListWalk(wire::kube::ApiListQuery& query, const Clock& clock)
      : query_(query), clock_(clock), end_(Deadline::after(clock.now(), kTimeMax)) {}

  /// Whether an answer was too much at once, and may be less by a smaller page: then the query has one.
  [[nodiscard]] bool asks_for_less(const Answer& answer) {
    return answer.outcome == Answer::Outcome::not_done && answer.error.code == ErrorCode::invalid_argument &&
           asks_for_less();
  }
  /// The same of what its decoder says.
  [[nodiscard]] bool asks_for_less(const Error& error) {
    return error.code == wire::kube::kTooLarge && asks_for_less();
  }
  /// To be called with the token of each page. Error: corrupt, deadline_exceeded.
  [[nodiscard]] Result<void> go_on(const std::string& token) {
    const bool has_no_end = !token.empty() && (token == query_.continue_token || ++pages_ >= kPagesMax);
    query_.continue_token = token;
    if (has_no_end) return fail(ErrorCode::corrupt, "the API server's list has no end; look at the server");
    if (token.empty() || !end_.passed(clock_.now())) return {};
    return fail(ErrorCode::deadline_exceeded, "the API server took more than ten minutes for a list");
  }

 private:
  [[nodiscard]] bool asks_for_less() {
    if (query_.limit == 1) return false;
    query_.limit = query_.limit > 8 ? query_.limit / 8 : 1;
    return true;
  }

  wire::kube::ApiListQuery& query_;
  const Clock& clock_;
  const Deadline end_;
  std::int64_t pages_ = 0;
};

}  // namespace croft::store::kube
