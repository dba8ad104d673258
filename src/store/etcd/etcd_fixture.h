#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "http/grpc_channel.h"
#include "http/relay_fixture.h"
#include "os/clock.h"
#include "os/scratch_directory.h"
#include "store/etcd/client.h"

namespace croft::store::etcd {

inline constexpr const char* kEtcdProgram = "/usr/bin/etcd";

/// For the start of a test that needs a real etcd.
#define CROFT_NEEDS_ETCD()                                                                  \
  if (::access(::croft::store::etcd::kEtcdProgram, X_OK) != 0) {                            \
    GTEST_SKIP() << "no " << ::croft::store::etcd::kEtcdProgram << ": install etcd-server"; \
  }                                                                                         \
  static_assert(true)

/// Runs a program to its end; its exit code. For tests.
inline int run_program(const std::vector<std::string>& arguments) {
  std::vector<char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    const int null = ::open("/dev/null", O_RDWR);
    ::dup2(null, 1);
    ::dup2(null, 2);
    ::execv(pointers[0], pointers.data());
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// A real etcd of one member, in a directory of its own, which ends with the object. For tests.
class EtcdProcess {
 public:
  /// `arguments` are added; `scheme` is of the client's URL.
  explicit EtcdProcess(std::vector<std::string> arguments = {}, std::string scheme = "http")
      : scheme_(std::move(scheme)), arguments_(std::move(arguments)) {
    port_ = os::port_for_a_server();
    while (peer_port_ == 0 || peer_port_ == port_) peer_port_ = os::port_for_a_server();
  }
  EtcdProcess(const EtcdProcess&) = delete;
  EtcdProcess& operator=(const EtcdProcess&) = delete;
  ~EtcdProcess() { stop(); }

  /// Starts it, the second time with the data it had, and waits until it takes connections.
  void start() {
    ASSERT_EQ(pid_, -1);
    const std::string url = this->url();
    const std::string peer = "http://127.0.0.1:" + std::to_string(peer_port_);
    std::vector<std::string> all = {kEtcdProgram,
                                    "--data-dir",
                                    scratch_.file("data"),
                                    "--listen-client-urls",
                                    url,
                                    "--advertise-client-urls",
                                    url,
                                    "--listen-peer-urls",
                                    peer,
                                    "--initial-advertise-peer-urls",
                                    peer,
                                    "--initial-cluster",
                                    "default=" + peer,
                                    "--logger",
                                    "zap",
                                    "--log-level",
                                    "error",
                                    "--heartbeat-interval",
                                    "50",
                                    "--election-timeout",
                                    "500"};
    all.insert(all.end(), arguments_.begin(), arguments_.end());
    std::vector<char*> pointers;
    for (std::string& argument : all) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    const std::string log = scratch_.file("log");
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const int file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
      ::dup2(file, 1);
      ::dup2(file, 2);
      ::execv(kEtcdProgram, pointers.data());
      ::_exit(127);
    }
    wait_for_port();
  }
  /// As a crash would end it.
  void stop() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  /// It takes connections (the kernel does) and never answers, until thaw().
  void freeze() const {
    ::kill(pid_, SIGSTOP);
    int status = 0;
    ::waitpid(pid_, &status, WUNTRACED);
  }
  void thaw() const { ::kill(pid_, SIGCONT); }

  /// For `etcdctl snapshot restore`, into an empty directory while it does not run. Another token makes it another
  /// cluster.
  [[nodiscard]] std::vector<std::string> place_for_restore(const std::string& token) const {
    const std::string peer = "http://127.0.0.1:" + std::to_string(peer_port_);
    run_program({"/bin/rm", "-rf", scratch_.file("data")});
    return {"--data-dir",
            scratch_.file("data"),
            "--initial-cluster",
            "default=" + peer,
            "--initial-advertise-peer-urls",
            peer,
            "--initial-cluster-token",
            token};
  }

  [[nodiscard]] std::string url() const { return scheme_ + "://127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  /// It listens before it serves, so without TLS its first byte is waited for too.
  void wait_for_port() const {
    const os::SystemClock clock;
    os::Endpoint endpoint;
    endpoint.host = "127.0.0.1";
    endpoint.port = port_;
    for (int i = 0; i < 1000; ++i) {
      const Deadline deadline = Deadline::after(clock.now(), std::chrono::seconds{5});
      os::GrpcOptions options;
      options.http2.settings_timeout = std::chrono::seconds{5};
      const auto channel = os::GrpcChannel::connect(endpoint, nullptr, options, clock, deadline);
      if (channel && (scheme_ == "https" || (*channel)->wait_until_ready(deadline))) return;
      ASSERT_EQ(::waitpid(pid_, nullptr, WNOHANG), 0) << "etcd ended at once";
      std::this_thread::sleep_for(std::chrono::milliseconds{20});
    }
    FAIL() << "etcd does not listen";
  }

  std::string scheme_;
  std::vector<std::string> arguments_;
  os::ScratchDirectory scratch_;
  std::uint16_t port_ = 0;
  std::uint16_t peer_port_ = 0;
  pid_t pid_ = -1;
};

/// One etcd for all tests of a program.
inline EtcdProcess& shared_etcd() {
  static auto* const process = [] {
    auto* const started = new EtcdProcess();
    started->start();
    return started;
  }();
  return *process;
}
inline std::unique_ptr<Client> client_of(std::vector<std::string> endpoints, const Clock& clock, Random& random) {
  ClientOptions options;
  options.endpoints = std::move(endpoints);
  options.dial_timeout = std::chrono::milliseconds{500};
  auto made = Client::make(std::move(options), clock, random);
  EXPECT_TRUE(made) << made.error().message;
  return *std::move(made);
}
[[nodiscard]] inline TxnRequest put_txn(std::string key, std::string value) {
  TxnRequest txn;
  *txn.add_success() = wire::etcd::to_put(std::move(key), std::move(value));
  return txn;
}
/// Deletes all that an etcd has.
inline void clear(Client& client, Deadline deadline) {
  const std::string all(1, '\0');
  TxnRequest txn;
  *txn.add_success() = wire::etcd::to_delete(all);
  txn.mutable_success(0)->mutable_request_delete_range()->set_range_end(all);
  EXPECT_TRUE(client.txn(txn, deadline));
}

}  // namespace croft::store::etcd
