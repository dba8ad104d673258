#include "vpc/door/stock_server.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <ctime>
#include <map>
#include <set>
#include <string_view>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/grpc_channel.h"
#include "http/test_certificates.h"
#include "http/tls.h"
#include "http/unix_listener.h"
#include "os/clock.h"
#include "os/scratch_directory.h"
#include "store/memory/memory_store.h"
#include "vpc/door/agent_client.h"
#include "vpc/use/test_stock_node.h"

namespace croft::edge {
namespace {

using namespace std::chrono_literals;
namespace vpc = wire::vpc;
using vpc::Method;

/// An agent with a keeper of its own, on a store in memory, behind a real socket.
class StockServerTest : public testing::Test {
 protected:
  void begin(core::warm::Marks marks, std::chrono::seconds cooldown = 30s, bool keeps = true) {
    engine::KeeperOptions options;
    options.marks = marks;
    options.node = "node-1";
    options.reconcile.cooldown = cooldown;
    options.looks_first = looks_first_;
    engine::KeeperWorld keeper_world{store_, clock_, random_, provider_};
    keeper_world.probe = &wire_;
    keeper_world.host = [this](Deadline deadline) { return host_.use(deadline); };
    keeper_world.log = [](const std::string&) {};
    keeper_ = std::make_unique<engine::StockKeeper>(keeper_world, options);
    server_ = std::make_unique<StockServer>(world());
    socket_ = scratch_.file("ipamd.sock");
    auto listener = os::UnixListener::listen(socket_, {{::geteuid()}}, clock_);
    ASSERT_TRUE(listener) << listener.error().message;
    ASSERT_TRUE(server_->open_door(*std::move(listener), {}));
    static_cast<void>(keeper_->step());
    if (looks_first_) keeper_->look_before_serving();
    if (keeps) keeper_->actor().start_rounds([this] { return keeper_->step(); }, nullptr);
  }
  [[nodiscard]] StockWorld world() {
    StockWorld world{clock_, random_, *keeper_};
    world.fixed = fixed_;
    world.show = []() -> Result<vpc::ShowAnswer> { return vpc::ShowAnswer{{{"node", "node-1"}}}; };
    return world;
  }
  void end() {
    if (server_) server_->stop(soon());
    EXPECT_TRUE(keeper_ == nullptr || keeper_->actor().end_rounds(20s));
  }
  ~StockServerTest() override {
    end();
    server_.reset();
  }
  [[nodiscard]] Deadline soon() const { return Deadline::after(clock_.now(), 20s); }
  [[nodiscard]] std::shared_ptr<os::GrpcChannel> connect(const std::string& path) const {
    os::Endpoint endpoint;
    endpoint.kind = os::Endpoint::Kind::unix_socket;
    endpoint.path = path;
    auto channel = os::GrpcChannel::connect(endpoint, nullptr, {}, clock_, soon());
    EXPECT_TRUE(channel) << channel.error().message;
    return *channel;
  }
  os::GrpcReply call(Method method, const std::string& message, std::chrono::nanoseconds limit = 20s) {
    return connect(socket_)->call(vpc::path_of(method), message, Deadline::after(clock_.now(), limit));
  }
  static std::string add_of(const std::string& container, bool is_crofts = true) {
    vpc::AddPodNetworkRequest request;
    request.is_crofts = is_crofts;
    request.pod_name = container;
    request.pod_namespace = "shop";
    request.sandbox_id = container;
    request.netns = "/run/netns/" + container;
    request.interface_name = "eth0";
    return vpc::encode(request);
  }
  /// The address that an ADD gets.
  std::string add(const std::string& container) {
    const auto reply = call(Method::add_pod_network, add_of(container));
    EXPECT_TRUE(reply.status.ok()) << reply.status.message;
    const auto network = network_of(reply);
    return network ? network->ip : "";
  }
  static std::optional<vpc::PodNetwork> network_of(const os::GrpcReply& reply) {
    const auto answer = vpc::decode<vpc::NetworkAnswer>(reply.message);
    return answer ? answer->network : std::nullopt;
  }
  /// The record of what a pod has.
  std::optional<vpc::PodNetwork> record_of(const std::string& container, std::chrono::nanoseconds limit = 20s) {
    const auto reply =
        call(Method::get_pod_network_record, vpc::encode(vpc::RecordKey{container, "shop", container}), limit);
    EXPECT_TRUE(reply.status.ok()) << reply.status.message;
    return network_of(reply);
  }
  os::GrpcReply del(const std::string& container) {
    vpc::DelPodNetworkRequest request;
    request.pod_network.emplace();
    request.pod_network->pod_name = container;
    request.pod_network->pod_namespace = "shop";
    request.pod_network->sandbox_id = container;
    return call(Method::del_pod_network, vpc::encode(request));
  }
  vpc::StockAnswer describe() {
    const auto reply = call(Method::describe_pool, "");
    const auto answer = vpc::decode<vpc::StockAnswer>(reply.message);
    EXPECT_TRUE(answer);
    return answer ? *answer : vpc::StockAnswer{};
  }

  os::SystemClock clock_;
  os::SystemRandom random_;
  os::ScratchDirectory scratch_;
  engine::TestCloud cloud_{200};
  engine::Life life_;
  net::Mac mac_ = net::Mac::parse("52:54:00:00:00:01").value();
  engine::TestProvider provider_{cloud_, mac_, life_};
  engine::TestWire wire_{life_};
  engine::TestHost host_;
  store::MemoryStore store_;
  std::unique_ptr<engine::StockKeeper> keeper_;
  std::unique_ptr<StockServer> server_;
  std::string socket_;
  bool looks_first_ = false;
  engine::FixedAddresses* fixed_ = nullptr;
};

/// Promises as a cluster has them.
class TestFixed final : public engine::FixedAddresses {
 public:
  std::mutex mutex;
  std::set<std::string> keeps;                   ///< names of pods
  std::map<std::string, net::Address> promises;  ///< by name
  bool is_away = false;
  std::string elastic;  ///< the name of a pod that wants such an address
  int refuses_to_attach = 0;
  std::string hangs;  ///< questions for pods whose names begin so wait for let_go(); empty: none does
  std::map<std::string, int> asked, asking;  ///< by name: questions, and how many of them wait
  int asking_of_one_max = 0;
  std::condition_variable changed;
  void let_go() {
    const std::lock_guard lock(mutex);
    hangs.clear();
    changed.notify_all();
  }
  Result<Wish> wish_of(const core::PodIdentity& pod, Deadline) override {
    std::unique_lock lock(mutex);
    ++asked[pod.name];
    asking_of_one_max = std::max(asking_of_one_max, ++asking[pod.name]);
    changed.notify_all();
    changed.wait(lock, [&] { return hangs.empty() || !pod.name.starts_with(hangs); });
    --asking[pod.name];
    if (is_away) return fail(ErrorCode::unavailable, "the API server does not answer");
    if (pod.name == elastic) return fail(ErrorCode::refused_by_configuration, "no elastic addresses are served here");
    return Wish{keeps.contains(pod.name), "Never", "uid-of-" + pod.name};
  }
  Result<std::optional<Promise>> promise_to(const core::PodIdentity& pod, Deadline) override {
    const std::lock_guard lock(mutex);
    const auto found = promises.find(pod.name);
    if (found == promises.end()) return std::optional<Promise>();
    return std::optional(Promise{found->second, "subnet-1"});
  }
  Result<void> attach(const core::StockAddress& held, const Wish&, Deadline) override {
    const std::lock_guard lock(mutex);
    if (refuses_to_attach > 0) {
      --refuses_to_attach;
      return fail(ErrorCode::unavailable, "the API server does not answer");
    }
    promises.emplace(held.pod.name, held.address);
    return {};
  }
  Result<std::vector<net::Address>> all_fixed(Deadline) override { return std::vector<net::Address>(); }
  Result<std::vector<core::PodIdentity>> living_with(const net::Address&, Deadline) override {
    return std::vector<core::PodIdentity>();
  }
};

TEST_F(StockServerTest, APodThatKeepsItsAddressHasItAgain) {
  TestFixed fixed;
  fixed.keeps = {"web-0"};
  fixed_ = &fixed;
  begin({.low = 3, .high = 50}, 0s);
  const auto begun = clock_.now().since_boot;
  const std::string address = add("web-0");
  ASSERT_NE(address, "");
  EXPECT_EQ(fixed.promises.at("web-0").to_string(), address) << "promised before the pod heard of it";
  EXPECT_EQ(add("web-0"), address) << "asked again";
  EXPECT_TRUE(del("web-0").status.ok());
  std::set<std::string> others;
  for (int i = 0; i < 20; ++i) others.insert(add("p" + std::to_string(i)));
  EXPECT_FALSE(others.contains(address));
  EXPECT_EQ(add("web-0"), address);
  EXPECT_NE(add("job-7"), "") << "one of a name like it that keeps none";
  EXPECT_FALSE(fixed.promises.contains("job-7"));
  const auto tally = keeper_->actor().seen().calls;
  EXPECT_LE(tally.add_delays.sum, (clock_.now().since_boot - begun) * static_cast<std::int64_t>(tally.adds))
      << "none took longer than this test";
  end();
}

TEST_F(StockServerTest, WhatIsPromisedAndCannotBeHadIsNoOtherAddress) {
  TestFixed fixed;
  fixed.keeps = {"web-0"};
  fixed_ = &fixed;
  begin({.low = 3, .high = 50}, 0s);
  fixed.refuses_to_attach = 1;
  const auto refused = call(Method::add_pod_network, add_of("web-0"));
  // Nothing by which a plugin takes from the stock itself.
  EXPECT_EQ(refused.status.code, os::GrpcCode::internal) << refused.status.message;
  ASSERT_TRUE(del("web-0").status.ok());
  const std::string address = add("web-0");
  EXPECT_EQ(fixed.promises.at("web-0").to_string(), address);
  // Once what was taken is made good.
  const auto limit = soon();
  bool is_kept = false;
  while (!is_kept && !limit.passed(clock_.now())) is_kept = cloud_.of(mac_).size() == describe().pool.size() + 1;
  EXPECT_TRUE(is_kept) << "the first one was kept for it";
  fixed.is_away = true;
  EXPECT_EQ(call(Method::add_pod_network, add_of("web-1")).status.code, os::GrpcCode::internal)
      << "whether it keeps one is not guessed";
  EXPECT_NE(add("web"), "") << "a name that no StatefulSet gives waits for nobody";
  end();
}

/// ADDs of pods whose names end in a number, more than there are threads for them.
TEST_F(StockServerTest, AnApiThatHangsKeepsNobodyElseWaiting) {
  TestFixed fixed;
  fixed.hangs = "db-";
  fixed_ = &fixed;
  begin({.low = 12, .high = 50});
  const std::string address = add("c1");
  {
    std::vector<std::jthread> waiting;
    for (int i = 0; i < 40; ++i) waiting.emplace_back([&, i] { EXPECT_NE(add("db-" + std::to_string(i)), ""); });
    {
      std::unique_lock lock(fixed.mutex);
      ASSERT_TRUE(fixed.changed.wait_for(lock, 20s, [&] { return fixed.asked.size() >= 4; }));
    }
    EXPECT_NE(add("c2"), "");
    const auto read = record_of("c1", 5s);
    EXPECT_TRUE(read && read->ip == address);
    EXPECT_TRUE(call(Method::list_pod_network_record, "", 5s).status.ok());
    EXPECT_TRUE(call(Method::show_stock, "", 5s).status.ok());
    vpc::BorrowRequest borrow;
    borrow.mac = "52:54:00:00:00:02";
    borrow.request = "r1";
    const auto lent = call(Method::borrow_ip, vpc::encode(borrow), 5s);
    EXPECT_TRUE(lent.status.ok()) << lent.status.message;
    fixed.let_go();
  }
  end();
}

TEST_F(StockServerTest, ACloudThatHangsKeepsNeitherRecordsNorOtherAddsBack) {
  TestFixed fixed;
  fixed_ = &fixed;
  for (int i = 0; i < 8; ++i) {
    const std::string pod = "db-" + std::to_string(i);
    fixed.keeps.insert(pod);
    fixed.promises[pod] = cloud_.unowned().at(static_cast<std::size_t>(100 + i));
  }
  begin({.low = 3, .high = 50}, 30s, /*keeps=*/false);
  const std::string address = add("c1");
  std::mutex mutex;
  std::condition_variable changed;
  int hanging = 0;
  bool lets_go = false;
  cloud_.fate = [&] {
    std::unique_lock lock(mutex);
    ++hanging;
    changed.notify_all();
    changed.wait(lock, [&] { return lets_go; });
    return engine::CallFate::away;
  };
  {
    std::vector<std::jthread> waiting;
    for (int i = 0; i < 8; ++i) {
      waiting.emplace_back([&, i] {
        const auto refused = call(Method::add_pod_network, add_of("db-" + std::to_string(i)));
        EXPECT_FALSE(refused.status.ok()) << "another address than the promised one";
      });
    }
    {
      std::unique_lock lock(mutex);
      ASSERT_TRUE(changed.wait_for(lock, 20s, [&] { return hanging >= 4; }));
    }
    const auto read = record_of("c1", 5s);
    EXPECT_TRUE(read && read->ip == address);
    EXPECT_TRUE(call(Method::show_stock, "", 5s).status.ok());
    EXPECT_TRUE(call(Method::add_pod_network, add_of("web-9"), 5s).status.ok()) << "it needs the API alone";
    const std::lock_guard lock(mutex);
    lets_go = true;
    changed.notify_all();
  }
  cloud_.fate = [] { return engine::CallFate::done; };
  end();
}

/// kubelet makes one sandbox after the other.
TEST_F(StockServerTest, TheApiIsAskedOnceAtATimeForOnePod) {
  TestFixed fixed;
  fixed.keeps = {"db-0"};
  fixed.hangs = "db-";
  fixed_ = &fixed;
  begin({.low = 12, .high = 50});
  {
    std::vector<std::jthread> waiting;
    for (int i = 0; i < 20; ++i) {
      waiting.emplace_back([&, i] {
        vpc::AddPodNetworkRequest request;
        request.pod_name = "db-0";
        request.pod_namespace = "shop";
        request.sandbox_id = "s" + std::to_string(i);
        static_cast<void>(call(Method::add_pod_network, vpc::encode(request)));
      });
    }
    {
      std::unique_lock lock(fixed.mutex);
      ASSERT_TRUE(fixed.changed.wait_for(lock, 20s, [&] { return fixed.asked.contains("db-0"); }));
    }
    EXPECT_NE(add("job-1"), "") << "another pod's";
    fixed.let_go();
  }
  EXPECT_EQ(fixed.asking_of_one_max, 1);
  EXPECT_EQ(fixed.asked.at("db-0"), 20);
  end();
}

TEST_F(StockServerTest, AnAgentThatEndsAsksForNoPodAnyMore) {
  TestFixed fixed;
  fixed.hangs = "db-";
  fixed_ = &fixed;
  begin({.low = 3, .high = 50});
  server_.reset();  // what calls are under way is known here, without a door
  std::mutex mutex;
  std::map<os::GrpcCallId, os::GrpcCode> codes;
  {
    StockService service(world(), [&](const std::vector<os::GrpcAnswer>& answers) {
      const std::lock_guard lock(mutex);
      for (const os::GrpcAnswer& answer : answers) {
        if (answer.call < 40) codes.emplace(answer.call, answer.code);
      }
    });
    const auto request = [&](os::GrpcCallId id) {
      os::GrpcRequest made;
      made.call = id;
      made.message = add_of("db-" + std::to_string(id));
      made.deadline = soon();
      return made;
    };
    for (os::GrpcCallId i = 0; i < 40; ++i) EXPECT_FALSE(service.take(Method::add_pod_network, request(i)));
    service.go();
    {
      std::unique_lock lock(fixed.mutex);
      EXPECT_TRUE(fixed.changed.wait_for(lock, 20s, [&] { return fixed.asked.size() == 4; }));
    }
    const std::jthread ends([&] { service.stop(); });
    // Once a reader is refused, the others are too.
    const auto limit = soon();
    while (!limit.passed(clock_.now()) && !service.take(Method::describe_pool, request(40))) std::this_thread::yield();
    fixed.let_go();
  }
  EXPECT_EQ(fixed.asked.size(), 4U);
  EXPECT_EQ(codes.size(), 40U);
  for (const auto& [call, code] : codes) {
    // Not `unavailable`: the plugin alone would take from the stock itself, and knows of no promise.
    if (!fixed.asked.contains("db-" + std::to_string(call))) {
      EXPECT_EQ(code, os::GrpcCode::internal) << call;
    }
  }
}

TEST_F(StockServerTest, AConversationOfAnOldClient) {
  begin({.low = 3, .high = 50});
  EXPECT_TRUE(call(Method::ping, "").status.ok());
  const std::string address = add("c1");
  ASSERT_NE(address, "");
  EXPECT_EQ(add("c1"), address) << "asked again";
  // It sets the pod's network up, and tells that it did.
  const auto got = network_of(call(Method::add_pod_network, add_of("c1")));
  ASSERT_TRUE(got);
  vpc::DelPodNetworkRequest record{got, "", ""};
  record.pod_network->pod_uid = "uid-1";
  record.pod_network->netns = "/proc/4711/ns/net";
  EXPECT_TRUE(call(Method::add_pod_network_record, vpc::encode(record)).status.ok());
  const auto read = record_of("c1");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->ip, address);
  EXPECT_EQ(read->pod_uid, "uid-1");
  EXPECT_EQ(vpc::decode<vpc::NetworksAnswer>(call(Method::list_pod_network_record, "").message)->networks.size(), 1U);
  // And takes it down: with the record as it read it.
  vpc::DelPodNetworkRequest del{read, "", ""};
  EXPECT_TRUE(call(Method::del_pod_network, vpc::encode(del)).status.ok());
  EXPECT_TRUE(call(Method::del_pod_network_record, vpc::encode(vpc::RecordKey{"c1", "shop", "c1"})).status.ok());
  EXPECT_TRUE(call(Method::del_pod_network, vpc::encode(del)).status.ok()) << "again";
  EXPECT_EQ(describe().cooldown.size(), 1U);
  EXPECT_FALSE(record_of("c1"));
}

TEST_F(StockServerTest, ABurstIsWrittenInAFewCommits) {
  begin({.low = 110, .high = 110, .batch_max = 110}, 30s, false);
  while (describe().pool.size() < 110) static_cast<void>(keeper_->step());
  const auto channel = connect(socket_);
  ASSERT_TRUE(channel->wait_until_ready(soon()));
  const auto before = store_.counts().commit;
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::set<std::string> addresses;
  std::vector<std::shared_ptr<os::GrpcChannel>> channels;
  for (int i = 0; i < 110; ++i) channels.push_back(connect(socket_));
  for (int i = 0; i < 110; ++i) {
    threads.emplace_back([&, i] {
      const auto reply = channels[static_cast<std::size_t>(i)]->call(vpc::path_of(Method::add_pod_network),
                                                                     add_of("c" + std::to_string(i)), soon());
      const auto network = network_of(reply);
      const std::lock_guard lock(mutex);
      if (reply.status.ok() && network) addresses.insert(network->ip);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(addresses.size(), 110U);
  // In memory a commit takes no time, so hardly two calls meet; on a disk they do (bench).
  EXPECT_LE(store_.counts().commit - before, 110U);
  EXPECT_EQ(cloud_.of(mac_).size(), 110U) << "no call of the cloud on the way";
}

TEST_F(StockServerTest, AnEmptyStockMakesTheAddWaitAndServesIt) {
  begin({.low = 0, .high = 0});
  EXPECT_TRUE(describe().pool.empty());
  EXPECT_NE(add("c1"), "");
  EXPECT_EQ(keeper_->actor().seen().calls.waited, 1U);
}

TEST_F(StockServerTest, AnAddWaitsForTheLookAtFilesThatWereReplaced) {
  begin({.low = 3, .high = 3}, 30s, /*keeps=*/false);  // a round that hears the cloud is a look too
  store_.begin_epoch();
  std::string address;
  std::thread waiter([&] { address = add("c1"); });
  while (keeper_->actor().seen().calls.waiting == 0) std::this_thread::yield();
  EXPECT_EQ(describe().pool.size(), 3U);
  keeper_->look_before_serving();
  waiter.join();
  EXPECT_NE(address, "");
  EXPECT_EQ(cloud_.of(mac_).size(), 3U) << "and no more were asked for";
}

TEST_F(StockServerTest, AnAddThatWaitsIsServedByWhatCoolsOff) {
  begin({.low = 1, .high = 1, .node_max = 1}, 1s);
  const std::string address = add("c1");
  ASSERT_TRUE(del("c1").status.ok());
  EXPECT_EQ(add("c2"), address);
}

TEST_F(StockServerTest, WhoWaitsInVainIsToldWhy) {
  cloud_.fate = [] { return engine::CallFate::away; };
  begin({.low = 0, .high = 0});
  const auto reply = call(Method::add_pod_network, add_of("c1"), 2s);
  EXPECT_EQ(reply.status.code, os::GrpcCode::internal) << "as the protocol has it";
  EXPECT_NE(reply.status.message.find("does not answer"), std::string::npos) << reply.status.message;
}

/// UK8S' plugin holds one lock of its node for the whole ADD.
TEST_F(StockServerTest, WhereItsTermIsOverItTakesTheNextAndDoesTheCallsThatStillWait) {
  looks_first_ = true;
  begin({.low = 3, .high = 5});
  EXPECT_NE(add("c1"), "");
  core::warm::Release release;
  release.owner = {"", "c1", "eth0"};
  ASSERT_EQ(engine::release_to_stock({store_, clock_, random_}, release)->size(), 1U) << "a plugin alone";
  const auto left = call(Method::add_pod_network, add_of("c2"), 40ms);
  EXPECT_FALSE(left.status.ok()) << "its plugin does it alone";
  EXPECT_NE(add("c3"), "");
  const auto view = engine::view_stock({store_, clock_, random_});
  EXPECT_TRUE(std::ranges::none_of(view->addresses, [](const auto& one) { return one.owner.container_id == "c2"; }));
}

TEST_F(StockServerTest, ADelAloneTakesTheTermAlsoWhereItFindsNothing) {
  begin({.low = 3, .high = 5}, 30s, /*keeps=*/false);  // the keeper takes terms of its own
  EXPECT_NE(add("c1"), "");
  const auto term = [&] { return core::warm::term_of(&*engine::view_stock({store_, clock_, random_})->node); };
  const std::uint64_t before = term();
  core::warm::Release release;
  release.owner = {"", "c9", "eth0"};
  EXPECT_TRUE(engine::release_to_stock({store_, clock_, random_}, release)->empty())
      << "its ADD waits in an agent that hangs";
  EXPECT_EQ(term(), before + 1);
  EXPECT_NE(add("c2"), "");
  EXPECT_EQ(term(), before + 2) << "the agent's next";
  EXPECT_TRUE(del("c9").status.ok());
  EXPECT_EQ(term(), before + 2) << "its own DEL needs no other";
}

/// A question that nobody heard the end of is no hope for it either.
TEST_F(StockServerTest, AnOldClientIsRefusedWithinFiveSecondsAndAPluginOfOursWaits) {
  for (const engine::CallFate fate : {engine::CallFate::away, engine::CallFate::request_lost}) {
    cloud_.fate = [fate] { return fate; };
    begin({.low = 0, .high = 0});
    const auto since = clock_.now().since_boot;
    {
      std::jthread waiter([&] { static_cast<void>(call(Method::add_pod_network, add_of("c2"), 9s)); });
      const auto refused = call(Method::add_pod_network, add_of("c1", false), 60s);
      EXPECT_EQ(refused.status.code, os::GrpcCode::internal) << refused.status.message;
      EXPECT_EQ(keeper_->actor().seen().calls.waiting, 1U) << "9 s are not over";
    }
    EXPECT_GT(clock_.now().since_boot - since, 8s);
    EXPECT_EQ(engine::view_stock({store_, clock_, random_})->intents.empty(), fate != engine::CallFate::request_lost);
    end();
    server_.reset();
  }
}

TEST_F(StockServerTest, ARecordThatAnOldClientDeletesIsNotTheStocksAnyMore) {
  begin({.low = 3, .high = 50}, 30s, /*keeps=*/false);
  vpc::DelPodNetworkRequest record;
  record.pod_network.emplace();
  record.pod_network->pod_name = record.pod_network->sandbox_id = "c1";
  record.pod_network->pod_namespace = "shop";
  record.pod_network->ip = "10.9.0.200";
  record.pod_network->mac = mac_.to_string();
  const auto told = call(Method::add_pod_network_record, vpc::encode(record));
  EXPECT_TRUE(told.status.ok()) << "without a mask: " << told.status.message;
  const auto key = vpc::encode(vpc::RecordKey{"c1", "shop", "c1"});
  EXPECT_TRUE(call(Method::del_pod_network_record, key).status.ok());
  EXPECT_TRUE(call(Method::del_pod_network_record, key).status.ok()) << "again";
  EXPECT_FALSE(record_of("c1"));
  EXPECT_TRUE(describe().cooldown.empty());
  EXPECT_EQ(describe().pool.size(), 3U);
  end();
}

TEST_F(StockServerTest, AnOldClientsPodHasItsUidAndNoElasticAddress) {
  TestFixed fixed;
  fixed.elastic = "eip";
  fixed_ = &fixed;
  begin({.low = 3, .high = 50});
  const auto refused = call(Method::add_pod_network, add_of("eip", false));
  EXPECT_EQ(refused.status.code, os::GrpcCode::internal);
  EXPECT_NE(refused.status.message.find("no elastic addresses"), std::string::npos) << refused.status.message;
  const auto given = network_of(call(Method::add_pod_network, add_of("web", false)));
  ASSERT_TRUE(given);
  EXPECT_EQ(given->pod_uid, "uid-of-web");
  fixed.is_away = true;
  EXPECT_TRUE(call(Method::add_pod_network, add_of("later", false)).status.ok()) << "without an API pods start";
  end();
}

TEST_F(StockServerTest, ADelEndsTheAddThatWaits) {
  cloud_.fate = [] { return engine::CallFate::away; };
  begin({.low = 0, .high = 0});
  os::GrpcReply reply;
  std::thread waiter([&] { reply = call(Method::add_pod_network, add_of("c1")); });
  while (keeper_->actor().seen().calls.waiting == 0) std::this_thread::yield();
  EXPECT_TRUE(del("c1").status.ok());
  waiter.join();
  EXPECT_EQ(reply.status.code, os::GrpcCode::aborted);
  EXPECT_EQ(keeper_->actor().seen().calls.waiting, 0U);
  // The look that it waited for comes to nobody, and the loop sleeps.
  const auto busy = [] {
    timespec used{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
  };
  std::this_thread::sleep_for(std::chrono::milliseconds{1200});
  const auto before = busy();
  std::this_thread::sleep_for(std::chrono::milliseconds{600});
  EXPECT_LT(busy() - before, std::chrono::milliseconds{200});
}

TEST_F(StockServerTest, WhoWaitsWhenItEndsIsToldSo) {
  cloud_.fate = [] { return engine::CallFate::away; };
  begin({.low = 0, .high = 0});
  os::GrpcReply reply;
  std::thread waiter([&] { reply = call(Method::add_pod_network, add_of("c1")); });
  while (keeper_->actor().seen().calls.waiting == 0) std::this_thread::yield();
  end();
  waiter.join();
  EXPECT_EQ(reply.status.code, os::GrpcCode::unavailable);
  EXPECT_NE(::access(socket_.c_str(), F_OK), 0) << "the socket's file is gone";
}

TEST_F(StockServerTest, ADoorForPeersLendsAndNoMore) {
  begin({.low = 2, .high = 50});
  const std::string path = scratch_.file("peers.sock");
  auto listener = os::UnixListener::listen(path, {{::geteuid()}}, clock_);
  ASSERT_TRUE(listener);
  ASSERT_TRUE(server_->open_door(*std::move(listener), {.plugin = false, .operators = false}));
  const auto channel = connect(path);
  const auto ask = [&](Method method, const std::string& message) {
    return channel->call(vpc::path_of(method), message, soon());
  };
  EXPECT_TRUE(ask(Method::ping, "").status.ok());
  EXPECT_EQ(ask(Method::add_pod_network, add_of("c1")).status.code, os::GrpcCode::unimplemented);
  EXPECT_EQ(ask(Method::pop_pool, "").status.code, os::GrpcCode::unimplemented);
  EXPECT_EQ(ask(Method::borrow_ip, "").status.code, os::GrpcCode::invalid_argument) << "no MAC address";
  const vpc::BorrowRequest request{"52:54:00:00:00:02", "subnet-1", "r1"};
  const auto first = network_of(ask(Method::borrow_ip, vpc::encode(request)));
  const auto again = network_of(ask(Method::borrow_ip, vpc::encode(request)));
  ASSERT_TRUE(first && again);
  EXPECT_EQ(again->ip, first->ip) << "the same request";
  EXPECT_EQ(net::Mac::parse(first->mac).value().to_string(), request.mac) << "the borrower's";
}

/// A door for peers, and other nodes that come with their certificates.
class StockPeersTest : public StockServerTest {
 protected:
  void begin_lender(core::warm::Marks marks) {
    begin(marks, 30s, /*keeps=*/false);
    os::TlsListenerOptions how;
    how.host = "127.0.0.1";
    how.files = files_of("node-1");
    auto listener = os::TlsListener::listen(how, clock_);
    ASSERT_TRUE(listener) << listener.error().message;
    lender_ = {"node-1", fmt::format("127.0.0.1:{}", (*listener)->port()), 1};
    ASSERT_TRUE(server_->open_door(*std::move(listener), {.plugin = false, .operators = false}));
  }
  [[nodiscard]] os::TlsFiles files_of(const std::string& node) const {
    const WallTime now = clock_.now().wall;
    const auto made = os::make_certificate(&authority_, node, {now - 1h, now + 24h});
    os::TlsFiles files;
    files.ca_pem = authority_.certificate;
    files.certificate_pem = made.certificate;
    files.key_pem = made.key;
    return files;
  }
  [[nodiscard]] Result<cloud::CloudAddress> borrow(const std::string& node, const char* mac) {
    const auto security = [files = files_of(node)](const std::string& lender) {
      os::TlsFiles of_node = files;
      of_node.server_name = lender;
      return os::make_tls(std::move(of_node));
    };
    return borrow_by_agent(lender_, net::Mac::parse(mac).value(), "subnet-1", fmt::format("request {}", ++requests_),
                           security, clock_, soon());
  }
  engine::Peer lender_;

 private:
  int requests_ = 0;
  os::CertificateWithKey authority_ = os::make_authority("ours", {clock_.now().wall - 1h, clock_.now().wall + 24h});
};

/// A certificate speaks for its node alone.
TEST_F(StockPeersTest, ACertificateIsOfItsNode) {
  begin_lender({.low = 2, .high = 50});
  const auto from = [&](const std::string& lender) {
    lender_.node = lender;
    return borrow("node-2", "52:54:00:00:00:02");
  };
  const auto other_lender = from("node-4");
  ASSERT_FALSE(other_lender) << "it is node-1 that answers";
  EXPECT_EQ(other_lender.error().code, ErrorCode::permission_denied) << other_lender.error().message;
  EXPECT_EQ(describe().pool.size(), 2U) << "nothing was lent";
  EXPECT_TRUE(from("node-1"));
}

TEST_F(StockPeersTest, ACertificateBorrowsSoMuchAMinute) {
  begin_lender({.low = 40, .high = 50});
  ASSERT_TRUE(borrow("node-2", "52:54:00:00:00:02"));
  for (std::size_t i = 0; i < core::warm::kLoansAMinute; ++i) ASSERT_TRUE(borrow("node-x", "52:54:00:00:00:0c")) << i;
  EXPECT_EQ(borrow("node-x", "52:54:00:00:00:0c").error().code, ErrorCode::exhausted);
  EXPECT_TRUE(borrow("node-2", "52:54:00:00:00:02"));
}

/// A writer of the board leads the agent to no socket of its machine.
TEST_F(StockPeersTest, AnAddressThatIsNotNumericLeadsNowhere) {
  for (const char* address : {"unix:/run/other.sock", "unix:///run/other.sock", "http://10.0.0.3:7312",
                              "https://10.0.0.3:7312", "peer.example:7312", "localhost:7312", "10.0.0.3", "10.0.0.3:0",
                              "10.0.0.3:7312/", "10.0.0.3:7312/path", "fd00::3:7312", "evil\n:1"}) {
    lender_ = {"node-1", address, 1};
    EXPECT_EQ(borrow("node-2", "52:54:00:00:00:02").error().code, ErrorCode::invalid_argument) << address;
  }
}

/// It comes to clients, Events and terminals in the error of an ADD.
TEST_F(StockPeersTest, WhatAPeerSaysIsPrintableBeforeItIsAnError) {
  begin_lender({.low = 4, .high = 50});
  const std::string forged = "\x1b[31m\nforged\x7f";
  cloud_.words = forged;
  cloud_.fate = [] { return engine::CallFate::away; };
  const auto lent = borrow("node-2", "52:54:00:00:00:02");
  ASSERT_FALSE(lent);
  const std::string& told = lent.error().message;
  EXPECT_NE(told.find("forged"), std::string::npos) << "it is told: " << told;
  EXPECT_TRUE(std::ranges::none_of(told, [](unsigned char c) { return c < 0x20 || c == 0x7f; })) << told;
}

/// What is read of a message takes many times its size.
TEST_F(StockServerTest, LongMessagesAreRefusedUnread) {
  begin({.low = 1, .high = 50});
  const auto code_of = [&](Method method, std::size_t bytes) {
    std::string message;
    while (message.size() < bytes) message += std::string_view("\x0a\0", 2);  // an empty entry each
    return call(method, message).status.code;
  };
  for (const Method method : {Method::release_ip, Method::borrow_ip, Method::add_pod_network}) {
    EXPECT_EQ(code_of(method, vpc::kRequestBytesMax + 2), os::GrpcCode::invalid_argument) << vpc::path_of(method);
    EXPECT_EQ(code_of(method, 4U << 20), os::GrpcCode::resource_exhausted) << vpc::path_of(method);
  }
  EXPECT_NE(add("c1"), "");
}

TEST_F(StockServerTest, WhatOperatorsDo) {
  begin({.low = 2, .high = 50});
  const auto popped = network_of(call(Method::pop_pool, ""));
  ASSERT_TRUE(popped);
  const vpc::StockRequest that{popped->ip};
  // What is popped may be in the cloud's next answer, and so in stock again.
  EXPECT_EQ(call(Method::pop_pool, vpc::encode(vpc::StockRequest{"192.0.2.1"})).status.code, os::GrpcCode::internal);
  const auto answered = call(Method::push_pool, vpc::encode(that));
  ASSERT_TRUE(answered.status.ok()) << answered.status.message;
  EXPECT_EQ(network_of(answered)->ip, that.ip);
  EXPECT_TRUE(vpc::decode<vpc::NetworksAnswer>(call(Method::list_unuse, "").message)->networks.empty());
  const std::string address = add("c1");
  EXPECT_THAT(call(Method::push_pool, vpc::encode(vpc::StockRequest{address})).status.message,
              testing::HasSubstr("is a pod's already"));
  EXPECT_FALSE(call(Method::release_ip, vpc::encode(vpc::ReleaseRequest{{address}})).status.ok()) << "in use";
  cloud_.set_owner(cloud_.unowned().back(), mac_);
  std::vector<vpc::PodNetwork> unused;  // empty while a call is under way that may have brought it
  for (const auto limit = soon(); unused.empty() && !limit.passed(clock_.now());) {
    unused = vpc::decode<vpc::NetworksAnswer>(call(Method::list_unuse, "").message).value().networks;
  }
  ASSERT_EQ(unused.size(), 1U);
  EXPECT_NE(unused.front().why.find("there is no record"), std::string::npos) << unused.front().why;
  EXPECT_EQ(call(Method::push_pool, vpc::encode(vpc::StockRequest{"no address"})).status.code,
            os::GrpcCode::invalid_argument);
}

TEST_F(StockServerTest, TheAgentShowsItselfOnItsSocketAlone) {
  begin({.low = 3, .high = 50}, 300s);
  const auto shown = vpc::decode<vpc::ShowAnswer>(call(Method::show_stock, "").message);
  ASSERT_TRUE(shown) << shown.error().message;
  EXPECT_EQ(shown->properties.front().second, "node-1");
  const std::string path = scratch_.file("peers.sock");
  ASSERT_TRUE(server_->open_door(os::UnixListener::listen(path, {{::geteuid()}}, clock_).value(), {.plugin = false}));
  EXPECT_EQ(connect(path)->call(vpc::path_of(Method::show_stock), "", soon()).status.code, os::GrpcCode::unimplemented);
}

TEST_F(StockServerTest, GarbageIsAnsweredAsSuch) {
  begin({.low = 1, .high = 50});
  for (std::size_t i = 0; i < vpc::kMethodCount; ++i) {
    const auto method = static_cast<Method>(i);
    const auto reply = call(method, std::string("\xff\xff\xff\xff garbage"));
    if (method == Method::support_multi_subnet || method == Method::list_unuse || method == Method::describe_pool ||
        method == Method::list_pod_network_record || method == Method::show_stock || method == Method::ping) {
      continue;  // nothing of the message is read
    }
    EXPECT_EQ(reply.status.code, os::GrpcCode::invalid_argument) << vpc::path_of(method);
  }
}

}  // namespace
}  // namespace croft::edge
