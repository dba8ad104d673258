#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "ipam/use/assign.h"
#include "ipam/use/audit.h"
#include "ipam/use/inspect.h"
#include "ipam/use/pools.h"
#include "ipam/use/release.h"
#include "store/forwarding_store.h"
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
    const auto report = audit(context, {live});
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

/// Remembers what a store was asked, so that tests can hold use cases to their number of reads.
class Asked final : public store::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  [[nodiscard]] std::size_t requests() const { return reads_.size() + lists_.size(); }
  /// How often records of a kind, or their keys, were listed.
  [[nodiscard]] std::size_t lists_of(core::Kind kind) const {
    const auto is_of_kind = [&](const auto& one) { return one.kind == kind; };
    const auto has = [&](const core::Missing& read) {
      return std::ranges::any_of(read.lists, is_of_kind) || std::ranges::any_of(read.keys, is_of_kind);
    };
    return static_cast<std::size_t>(std::ranges::count_if(reads_, has) + std::ranges::count_if(lists_, is_of_kind));
  }
  [[nodiscard]] std::size_t lists_of(const core::Listing& listing) const {
    return static_cast<std::size_t>(std::ranges::count_if(reads_, [&](const core::Missing& read) {
      return read.lists.contains(listing) || read.keys.contains(listing);
    }));
  }
  [[nodiscard]] std::size_t reads_of(const core::Key& key) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(reads_, [&](const core::Missing& read) { return read.records.contains(key); }));
  }
  void forget() {
    reads_.clear();
    lists_.clear();
  }

  [[nodiscard]] Result<store::ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override {
    reads_.push_back(wanted);
    return ForwardingStore::read(wanted, deadline);
  }
  [[nodiscard]] Result<void> for_each(const store::ListRequest& request, const Until& until,
                                      const Take& take) override {
    lists_.push_back(request);
    return ForwardingStore::for_each(request, until, take);
  }

 private:
  std::vector<core::Missing> reads_;
  std::vector<store::ListRequest> lists_;
};

/// A store of which this account may not read some kinds. As an etcd it refuses what asks for one of them as a whole.
class Forbidding final : public store::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  std::set<core::Kind> forbidden;

  [[nodiscard]] Result<store::ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override {
    for (const core::Key& key : wanted.records) TRY_VOID(check(key.kind));
    for (const core::Listing& listing : wanted.lists) TRY_VOID(check(listing.kind));
    return ForwardingStore::read(wanted, deadline);
  }
  [[nodiscard]] Result<void> for_each(const store::ListRequest& request, const Until& until,
                                      const Take& take) override {
    TRY_VOID(check(request.kind));
    return ForwardingStore::for_each(request, until, take);
  }

 private:
  [[nodiscard]] Result<void> check(core::Kind kind) const {
    if (!forbidden.contains(kind)) return {};
    return fail(ErrorCode::permission_denied, std::string("cannot list ") + std::string(core::name_of(kind)));
  }
};

/// A client of a store in whose reads and writes somebody else comes between. Each hook is called once, and may use the
/// store behind.
class Meddler : public store::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  std::function<void()> after_read;     ///< of records alone: the snapshot of the ranges
  std::function<void()> before_commit;  ///< all has been read and decided
  std::function<void()> after_commit;   ///< done, and the caller does not know it yet
  bool lose_reply = false;              ///< of the next commit, behind after_commit

  [[nodiscard]] Result<store::ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override {
    auto answer = ForwardingStore::read(wanted, deadline);
    if (wanted.records.size() > 1 && wanted.lists.empty()) once(after_read);
    return answer;
  }
  [[nodiscard]] Result<store::Revision> commit(std::span<const store::Write> writes, const store::WriteToken& token,
                                               Deadline deadline) override {
    once(before_commit);
    auto committed = ForwardingStore::commit(writes, token, deadline);
    once(after_commit);
    if (std::exchange(lose_reply, false)) return fail(ErrorCode::unknown_outcome, "the reply was lost");
    return committed;
  }

 private:
  static void once(std::function<void()>& hook) {
    if (!hook) return;
    std::exchange(hook, nullptr)();
  }
};

}  // namespace croft::engine
