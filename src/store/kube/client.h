#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "http/tls.h"
#include "http/transport.h"
#include "store/kube/api.h"
#include "store/kube/format/kubeconfig.h"

namespace croft::store::kube {

struct ClientOptions {
  wire::kube::KubeAccess access;
  /// For https: os::make_tls. Absent: https is refused. Whether OpenSSL is linked is the program's choice.
  std::function<std::shared_ptr<const os::TransportSecurity>(os::TlsFiles)> make_security;
  /// The numeric addresses of a server's name, asked whenever a connection is made. Absent: names are refused, as the
  /// plugin, which is static, can look up none.
  std::function<Result<std::vector<std::string>>(const std::string& name, Deadline deadline)> look_up;
  /// How long a server has to take the connection and to show that it speaks HTTP/2.
  std::chrono::nanoseconds dial_timeout = std::chrono::milliseconds{1000};
  /// How long one server has to answer, within the deadline of the call. A write ends with an unknown outcome then.
  std::chrono::nanoseconds request_timeout = std::chrono::seconds{10};
  /// The same of a read, when there is another server to go to.
  std::chrono::nanoseconds read_timeout = std::chrono::seconds{5};
  /// How old a token from a file may be.
  std::chrono::nanoseconds token_age_max = std::chrono::minutes{1};
  /// How often a request that was told to wait (429, 503) is sent again; as client-go.
  int waits_max = 10;
  /// A longer answer, or event of a watch, is refused: invalid_argument, as `not_done` or, of a write, `unknown`.
  std::size_t answer_bytes_max = wire::kube::kApiAnswerBytesMax;
  /// How it waits. For tests; absent: the thread sleeps.
  std::function<void(std::chrono::nanoseconds)> sleep;
};

/// A client of a Kubernetes API with one or more servers: one connection at a time, shared by all calls and watches,
/// made when the first call comes, to a server chosen at random; when it fails, to the next. It starts no thread:
/// whoever waits for an answer moves the answers of the others too. No call is answered from memory.
///
/// What it does by itself (docs/reference/kubernetes-client.md): a request that surely nobody has processed is sent
/// again (no connection, REFUSED_STREAM, above the last stream of a GOAWAY); after GOAWAY the next request goes to the
/// next server; 429, and 503 with Retry-After, which the API server says before it looks at a request, are waited for
/// as long as they say, within the deadline, or another server is asked; after 401 the token's file is read once, and a
/// new token tried. A read is also sent again when its answer was lost, or was 500, 502, 503 or 504. A write never:
/// those end as `unknown`.
///
/// A server offers about 100 streams on a connection; each open watch is one of them.
class Client final : public Api {
 public:
  /// Connects nothing, reads no file. `clock` and `random` must outlive the client, `clock` its watches too.
  /// Error: invalid_argument: no servers or too many, a name without `look_up`, https without `make_security` or CA, an
  /// identity and no https, servers of both kinds.
  [[nodiscard]] static Result<std::unique_ptr<Client>> make(ClientOptions options, const Clock& clock, Random& random);
  ~Client() override;

  [[nodiscard]] Answer call(const Request& request, Deadline deadline) override;
  [[nodiscard]] std::vector<Answer> call_all(std::span<const Request> requests, Deadline deadline) override;
  [[nodiscard]] WatchAnswer watch(const std::string& path, Deadline deadline) override;

  /// Requests handed to the transport, each attempt counted, and connections begun. For tests and benchmarks.
  struct Counts {
    std::uint64_t requests = 0;
    std::uint64_t dials = 0;
  };
  [[nodiscard]] Counts counts() const;

 private:
  class Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace croft::store::kube
