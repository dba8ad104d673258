#include "daemon_commit.h"

#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "agent_process.h"
#include "commit_sample.h"

namespace croft::bench {
namespace {

constexpr int kCommits = 200;

class StoreCommit final : public BareCommit {
 public:
  StoreCommit(store::Store& store, const Clock& clock) : store_(store), clock_(clock) {}

  Milliseconds once() override {
    const auto writes = commit_sample(clock_.now(), fmt::format("{:064x}", made_.size()));
    if (made_.empty()) made_.push_back(writes.front().key);
    made_.push_back(writes.back().key);
    return time_of([&] { commit(writes); });
  }
  void remove_all() {
    for (const core::Key& key : made_) commit({{key, std::nullopt, store::Condition::always(), false}});
    made_.clear();
  }

 private:
  void commit(const std::vector<store::Write>& writes) {
    store::WriteToken token;
    token.bytes.front() = ++commits_;
    const auto done = store_.commit(writes, token, Deadline::after(clock_.now(), std::chrono::seconds(20)));
    if (!done) bench::give_up("bench", "a commit: " + done.error().message);
  }

  store::Store& store_;
  const Clock& clock_;
  std::vector<core::Key> made_;
  std::uint8_t commits_ = 0;
};

}  // namespace

std::unique_ptr<BareCommit> bare_commit(store::Store& store, const Clock& clock) {
  return std::make_unique<StoreCommit>(store, clock);
}

Milliseconds commit_of_daemon(store::Store& store, const Clock& clock) {
  StoreCommit commits(store, clock);
  std::vector<Milliseconds> samples;
  for (int i = 0; i < kCommits; ++i) samples.push_back(commits.once());
  commits.remove_all();
  return median(samples);
}

}  // namespace croft::bench
