#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sim/run/cluster.h"

namespace croft::sim {

/// A run told as text: what it begins with, and what happens when. The same script is the same run, bit for bit.
///
///   store etcd seed=17 nodes=3 agents collect=20s grace=60s
///   pool a 10.0.0.0/26 block=28 cooldown=30s
///   pool b 10.1.0.0/28 block=29 cooldown=0s later
///   1500ms create web-1 n1
///   2000ms kill-agent n1 for=3000ms
///
/// The store comes first. Pools with `later` are made by create-pool. Where a verb takes no node, as `delete`, none is
/// named. `#` begins a comment, and empty lines mean nothing.
struct Script {
  Setup setup;
  std::vector<Step> steps;
};

/// Error: invalid_argument, naming the line.
[[nodiscard]] Result<Script> parse_script(std::string_view text);
[[nodiscard]] std::string to_text(const Script& script);
/// A script made of chance alone: a cluster, a load, and of all troubles some.
[[nodiscard]] Script script_of(std::uint64_t seed);

/// The result of a run.
struct Outcome {
  std::string violation;  ///< as the checker has it; empty: every promise was kept
  Span violated_at{0};
  std::uint64_t trace = 0;  ///< a hash of all that happened
  Counts counts;
  Traffic traffic;
  std::uint64_t events = 0;

  /// The kind of violation, without what it was about.
  [[nodiscard]] std::string kind() const { return violation.substr(0, violation.find(':')); }
};
/// `tell` takes a line for each thing that happens; `look` sees the cluster each 10 s until the last step.
[[nodiscard]] Outcome run(const Script& script, const std::function<void(const std::string&)>& tell = {},
                          const std::function<void(Cluster&)>& look = {});

/// The shortest script that can be found, in so many runs, which breaks the same promise.
[[nodiscard]] Script shrink(const Script& script, int runs_max = 400);

}  // namespace croft::sim
