#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "http/transport.h"
#include "store/etcd/kv.h"

namespace croft::store::etcd {

struct ClientOptions {
  /// Where the members are: `http://10.0.0.1:2379`, `https://[fd00::1]:2379`, `unix:/path`. Numeric, 1 to 16.
  std::vector<std::string> endpoints;
  /// For https: http/tls.h, `os::make_tls(files)`.
  std::shared_ptr<const os::TransportSecurity> security;
  std::string user;  ///< empty: no authentication by password
  std::string password;
  /// Gives the password at each login instead, so that one that was changed is used from then on.
  std::function<Result<std::string>()> read_password;
  /// How long a member has to take the connection and to show that it speaks HTTP/2.
  std::chrono::nanoseconds dial_timeout = std::chrono::milliseconds{1000};
  /// How long one member has to answer, within the deadline of the call. A read goes to another member then, if there
  /// is one; a write ends with an unknown outcome.
  std::chrono::nanoseconds request_timeout = std::chrono::seconds{5};
  std::chrono::nanoseconds read_timeout = std::chrono::seconds{2};
  std::size_t response_bytes_max = std::size_t{64} << 20;
};

/// A client of an etcd cluster. All calls share one connection at a time, made when the first call comes, to a member
/// chosen at random; when that fails, to the next. It starts no thread: whoever waits for an answer moves the answers
/// of the others too. No call is answered from memory.
///
/// A member whose answer is none (no message, too large, not what was asked for) is set aside for half a minute. A read
/// is asked of the next; a write ends with an unknown outcome.
///
/// An answer of another cluster than before, or of a revision below one that was seen before it was asked for, begins
/// another history().
class Client final : public Kv {
 public:
  /// Error: invalid_argument naming the endpoint that is none, or https without `security`. Connects nothing. `clock`
  /// and `random` must outlive the client, `clock` its watch streams too.
  [[nodiscard]] static Result<std::unique_ptr<Client>> make(ClientOptions options, const Clock& clock, Random& random);
  ~Client() override;

  [[nodiscard]] Result<RangeResponse> range(const RangeRequest& request, Deadline deadline) override;
  [[nodiscard]] Result<TxnResponse> txn(const TxnRequest& request, Deadline deadline) override;
  [[nodiscard]] std::uint64_t history() const override;
  /// On a connection of its own, which ends with the stream. It may outlive the client.
  [[nodiscard]] Result<std::unique_ptr<WatchStream>> open_watch(Deadline deadline) override;

  /// Forgets what is older than a revision, for everybody. Already forgotten is a success.
  [[nodiscard]] Result<void> compact(Revision revision, Deadline deadline);
  /// The status that the member which serves this client reports.
  [[nodiscard]] Result<StatusResponse> status(Deadline deadline);

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

}  // namespace croft::store::etcd
