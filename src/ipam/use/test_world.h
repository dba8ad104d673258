#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/manual_clock.h"
#include "ipam/use/assign.h"
#include "ipam/use/audit.h"
#include "ipam/use/inspect.h"
#include "ipam/use/pools.h"
#include "ipam/use/release.h"
#include "store/memory/memory_store.h"

// The store that a World is on: in memory, unless a test program is built for another
// (src/cli/stores/test_kube_store.h).
#ifdef CROFT_TEST_STORE_HEADER
#include CROFT_TEST_STORE_HEADER
#endif

namespace croft::engine {

#ifndef CROFT_TEST_STORE_HEADER
using TestStore = store::MemoryStore;
inline constexpr bool kMakesNodes = true;  ///< nodes are records that Croft writes
#endif

/// A clock by which every time limit is over once a store was given so many commits.
class LateClock final : public Clock {
 public:
  LateClock(const Clock& clock, const store::MemoryStore& store, std::uint64_t commits)
      : clock_(clock), store_(store), commits_(commits) {}
  [[nodiscard]] Instant now() const override {
    Instant now = clock_.now();
    if (static_cast<std::uint64_t>(store_.counts().commit) >= commits_) now.since_boot += std::chrono::hours(1);
    return now;
  }

 private:
  const Clock& clock_;
  const store::MemoryStore& store_;
  const std::uint64_t commits_;
};

/// From now on the store writes one record at a time.
inline void write_one_by_one(store::MemoryStore& store) {
  store::Capabilities can = store.capabilities();
  can.atomic_commit = false;
  store.set_capabilities(can);
}

/// A store, a clock moved by hand, and short words for what tests do all the time.
struct World {
  TestStore store;
  ManualClock clock;
  SeededRandom random{1};
  Context context{store, clock, random};

  static net::Address ip(const char* text) { return net::Address::parse(text).value(); }
  static net::Prefix prefix(const char* text) { return net::Prefix::parse(text).value(); }

  static core::PoolSpec spec(const std::string& name, const char* cidr, int block_length, int cooldown = 30) {
    return {name, prefix(cidr), block_length, {}, std::chrono::seconds(cooldown), {}};
  }
  void pool(const std::string& name, const char* cidr, int block_length, int cooldown = 30) {
    const auto created = create_pool(context, spec(name, cidr, block_length, cooldown));
    ASSERT_TRUE(created) << created.error().message;
  }

  /// Writes a record as it is, past all rules.
  void put(const core::Key& key, std::optional<core::Value> value) {
    const store::Write write{key, std::move(value), store::Condition::always()};
    const auto done = store.commit({&write, 1}, {}, Deadline{});
    ASSERT_TRUE(done) << done.error().message;
  }
  void node(const std::string& name, std::map<std::string, std::string> labels) {
    put(core::node_key(name), core::Node{name, std::move(labels), {}, {}});
  }
  /// Changes the stored switches.
  void config(const std::function<void(core::IpamConfig&)>& change) {
    core::IpamConfig config;
    if (const auto stored = store.get(core::ipam_config_key(), Deadline{}).value()) {
      config = std::get<core::IpamConfig>(*stored->value);
    }
    change(config);
    put(core::ipam_config_key(), config);
  }
  /// Changes a stored pool past all rules.
  void change_pool(const std::string& name, const std::function<void(core::Pool&)>& change) {
    core::Pool pool = std::get<core::Pool>(*store.get(core::pool_key(name), Deadline{}).value()->value);
    change(pool);
    put(core::pool_key(name), pool);
  }

  static core::AssignRequest request(const std::string& container, const std::string& node = "node-a") {
    core::AssignRequest result;
    result.owner = {"net", container, "eth0"};
    result.node = {core::AffinityOwner::Type::host, node};
    return result;
  }

  /// The addresses as text, or "CODE: message [details]".
  std::vector<std::string> add(const core::AssignRequest& wanted) {
    const auto answer = assign(context, wanted);
    if (!answer) return {std::string(name_of(answer.error().code)) + ": " + answer.error().message};
    if (const auto* refusal = std::get_if<core::Refusal>(&*answer)) {
      const Error error = core::to_error(*refusal);
      return {std::string(name_of(error.code)) + ": " + error.message + " [" + error.details + "]"};
    }
    std::vector<std::string> texts;
    for (const auto& a : std::get<core::Assigned>(*answer).addresses) texts.push_back(a.address.to_string());
    return texts;
  }
  std::string add(const std::string& container, const std::string& node = "node-a") {
    return add(request(container, node)).front();
  }
  std::size_t del(const std::string& container, const std::string& interface_name = "eth0") {
    const auto released = release_owner(context, {"net", container, interface_name});
    EXPECT_TRUE(released) << released.error().message;
    return released ? released->addresses.size() : 0;
  }

  /// A runtime whose cache has these, all alive.
  static core::audit::LiveAttachments runtime(const std::vector<core::Owner>& owners) {
    core::audit::LiveAttachments live;
    for (const core::Owner& owner : owners) {
      core::RuntimeAttachment& entry = live.entries.emplace_back();
      entry.owner = owner;
      entry.netns = core::RuntimeAttachment::Netns::present;
    }
    return live;
  }
  std::vector<std::string> findings(const std::optional<core::audit::LiveAttachments>& live = {}) {
    const auto report = audit(context, live);
    if (!report) return {report.error().message};
    std::vector<std::string> texts;
    for (const core::audit::Finding& f : report->findings)
      texts.push_back(std::string(f.id) + " " + f.subject + ": " + f.what);
    return texts;
  }
};

/// The kinds of stores that there are, as far as it matters to who assigns and releases: one machine's, etcd, a
/// Kubernetes API.
inline constexpr store::Capabilities kKindsOfStores[] = {
    {.atomic_commit = true, .foreign_writers = false},
    {.atomic_commit = true, .foreign_writers = true},
    {.atomic_commit = false, .foreign_writers = true},
};

}  // namespace croft::engine
