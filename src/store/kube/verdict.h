#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "http/http2_connection.h"
#include "store/kube/api.h"

namespace croft::store::kube {

/// The result of one attempt, and what to do next (docs/notes/kubernetes-client.md#answers).
struct Verdict {
  Answer answer;  ///< if nothing else is done
  enum class Next : std::uint8_t {
    end,        ///< that is the answer
    elsewhere,  ///< nothing was changed, or it was a read: another server, or this one again, may answer
    wait,       ///< the server has done nothing, and says when to ask again: after `wait`
    log_in,     ///< the server has done nothing: the token is refused
  } next = Next::end;
  std::chrono::nanoseconds wait{0};
  bool server_is_bad = false;  ///< another one is asked from now on
};

/// For a whole answer, or, without its body, for a watch that begins.
[[nodiscard]] Verdict verdict_on_answer(const Request& request, const std::vector<os::Http2Header>& headers,
                                        std::string body);

/// For an answer that never came.
[[nodiscard]] Verdict verdict_on_failure(const Request& request, const os::Http2Failure& failure);

/// "GET", "POST", …
[[nodiscard]] std::string_view name_of(Request::Method method);

}  // namespace croft::store::kube
