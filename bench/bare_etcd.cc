#include <fmt/format.h>

#include "agent_process.h"
#include "commit_sample.h"
#include "daemon_commit.h"
#include "os/random.h"
#include "store/etcd/client.h"
#include "wire/records/records.h"

namespace croft::bench {

Milliseconds bare_etcd_transaction(const std::string& endpoint, const Clock& clock) {
  namespace etcd = store::etcd;
  os::SystemRandom random;
  etcd::ClientOptions options;
  options.endpoints = {endpoint};
  const auto client = etcd::Client::make(std::move(options), clock, random);
  if (!client) bench::give_up("bench", client.error().message);
  const auto sample = commit_sample(clock.now(), "bare");
  const std::string value = wire::encode_record(*sample.front().value);
  const std::string key = "croft-bench/bare";
  etcd::Revision last = 0;
  std::vector<Milliseconds> samples;
  for (int i = 0; i <= 200; ++i) {
    etcd::TxnRequest request;
    request.compares = {last == 0 ? wire::etcd::Compare::absent(key) : wire::etcd::Compare::unchanged(key, last)};
    request.success = {wire::etcd::PutRequest{key, value}};
    const Milliseconds time = time_of([&] {
      const auto done = (*client)->txn(request, Deadline::after(clock.now(), std::chrono::seconds(20)));
      if (!done || !done->succeeded) bench::give_up("bench", "a bare transaction of etcd failed");
      last = done->revision;
    });
    if (i > 0) samples.push_back(time);  // the first one connects
  }
  etcd::TxnRequest removal;
  removal.success = {wire::etcd::DeleteRequest{key, ""}};
  if (!(*client)->txn(removal, Deadline::after(clock.now(), std::chrono::seconds(20)))) {
    bench::give_up("bench", "a key of etcd stays behind");
  }
  return median(samples);
}

}  // namespace croft::bench
