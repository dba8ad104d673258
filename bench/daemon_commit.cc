#include "daemon_commit.h"

#include <array>
#include <cstdint>

#include <fmt/format.h>

#include "agent_process.h"
#include "commit_sample.h"

namespace croft::bench {
namespace {

constexpr int kCommits = 200;
constexpr auto kPatience = std::chrono::seconds(20);

void commit(store::Store& store, const Clock& clock, const std::vector<store::Write>& writes) {
  static std::uint8_t token = 0;
  const auto done = store.commit(writes, {{++token, 1}}, Deadline::after(clock.now(), kPatience));
  if (!done) bench::give_up("bench", "a commit: " + done.error().message);
}

}  // namespace

Milliseconds commit_of_daemon(store::Store& store, const Clock& clock) {
  std::vector<Milliseconds> samples;
  std::vector<core::Key> made;
  for (int i = 0; i < kCommits; ++i) {
    const auto writes = commit_sample(clock.now(), fmt::format("{:064x}", i));
    samples.push_back(time_of([&] { commit(store, clock, writes); }));
    if (made.empty()) made.push_back(writes.front().key);
    made.push_back(writes.back().key);
  }
  // Its block is in no pool: it goes before anything looks at the store.
  for (const core::Key& key : made) commit(store, clock, {{key, std::nullopt, store::Condition::always(), false}});
  return median(samples);
}

}  // namespace croft::bench
