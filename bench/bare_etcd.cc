#include <utility>

#include "agent_process.h"
#include "commit_sample.h"
#include "daemon_commit.h"
#include "os/clock.h"
#include "register/format/records.h"
#include "store/etcd/client.h"

namespace croft::bench {
namespace {

constexpr const char* kBareKey = "croft-bench/bare";

class EtcdTransaction final : public BareCommit {
 public:
  EtcdTransaction(const std::string& endpoint, const Clock& clock)
      : clock_(clock), value_(wire::encode_record(*commit_sample(clock.now(), "bare").front().value)) {
    store::etcd::ClientOptions options;
    options.endpoints = {endpoint};
    auto client = store::etcd::Client::make(std::move(options), clock, random_);
    if (!client) bench::give_up("bench", client.error().message);
    client_ = *std::move(client);
    put();  // connects
  }
  ~EtcdTransaction() override {
    store::etcd::TxnRequest removal;
    *removal.add_success() = wire::etcd::to_delete(kBareKey);
    if (!client_->txn(removal, soon())) bench::give_up("bench", "a key of etcd stays behind");
  }

  Milliseconds once() override {
    return time_of([&] { put(); });
  }

 private:
  [[nodiscard]] Deadline soon() const { return Deadline::after(clock_.now(), std::chrono::seconds(20)); }
  void put() {
    store::etcd::TxnRequest request;
    *request.add_compare() = last_ == 0 ? wire::etcd::absent(kBareKey) : wire::etcd::unchanged(kBareKey, last_);
    *request.add_success() = wire::etcd::to_put(kBareKey, value_);
    const auto done = client_->txn(request, soon());
    if (!done || !done->succeeded()) bench::give_up("bench", "a bare transaction of etcd failed");
    last_ = done->header().revision();
  }

  const Clock& clock_;
  const std::string value_;
  os::SystemRandom random_;
  std::unique_ptr<store::etcd::Client> client_;
  wire::etcd::Revision last_ = 0;
};

}  // namespace

std::unique_ptr<BareCommit> bare_etcd_transaction(const std::string& endpoint, const Clock& clock) {
  return std::make_unique<EtcdTransaction>(endpoint, clock);
}

}  // namespace croft::bench
