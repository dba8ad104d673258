#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "http/http2_connection.h"
#include "http/tls.h"
#include "http/transport.h"
#include "store/kube/api.h"
#include "store/kube/format/kubeconfig.h"

namespace croft::store::kube {

/// Reads a kubeconfig, YAML or JSON, from its file. `context`: as wire::kube::decode_kubeconfig. Errors: as
/// os::read_file; those of kubeconfig_json and decode_kubeconfig, with the path; permission_denied, with the mode to
/// set, when the file holds a token or a key and others can read it.
[[nodiscard]] Result<wire::kube::KubeAccess> read_kubeconfig(const std::string& path, std::string_view context);

struct ClientOptions {
  wire::kube::KubeAccess access;
  /// For https: os::make_tls. Absent: https is refused. Whether OpenSSL is linked is the program's choice.
  std::function<std::shared_ptr<const os::TransportSecurity>(os::TlsFiles)> make_security;
  /// The numeric addresses of a server's name, asked whenever a connection is made. Absent: names are refused, as the
  /// plugin, which is static, can look up none.
  std::function<Result<std::vector<std::string>>(const std::string& name, Deadline deadline)> look_up;
  /// How long a server has to take the connection and to show that it speaks HTTP/2.
  std::chrono::nanoseconds dial_timeout = std::chrono::milliseconds{1000};
  /// How long one server has to answer, within the deadline of the call; half of it for a read, where there is another
  /// server to go to. A write ends with an unknown outcome then.
  std::chrono::nanoseconds request_timeout = std::chrono::seconds{10};
  /// The one bound of an answer, or of an event of a watch. A longer one is refused: invalid_argument, as `not_done`
  /// or, of a write, `unknown`.
  std::size_t answer_bytes_max = wire::kube::kApiAnswerBytesMax;
  /// How it waits. For tests; absent: the thread sleeps.
  std::function<void(std::chrono::nanoseconds)> sleep;
};

/// A client of a Kubernetes API with one or more servers. All calls and watches share one connection at a time, made
/// when the first call comes, to a server chosen at random; when it fails, to the next. It starts no thread: whoever
/// waits for an answer moves the answers of the others too. A server offers about 100 streams on a connection; each
/// open watch is one of them.
///
/// It repeats by itself (docs/notes/kubernetes-client.md#answers): a request that surely nobody has processed is sent
/// again. 429, and 503 with Retry-After, are waited for within the deadline, or another server is asked. After 401 the
/// token's file is read once, and a new token tried. A read is also sent again when its answer was lost, or was 500,
/// 502, 503 or 504. A write never: those end as `unknown`.
///
/// Connects nothing and reads no file before the first call. `clock` and `random` must outlive the client, `clock` its
/// watches too. Error: invalid_argument: as wire::kube::check_access; a name without `look_up`, https without
/// `make_security`.
[[nodiscard]] Result<std::unique_ptr<Api>> make_client(ClientOptions options, const Clock& clock, Random& random);

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
