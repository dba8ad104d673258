#include "collector/use/sweep.h"

#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "collector/use/node_facts.h"
#include "ipam/use/nodes.h"
#include "ipam/use/pools.h"
#include "ipam/use/test_world.h"
#include "store/forwarding_store.h"

namespace croft::engine {

/// Facts set by hand.
struct TestFacts final : FactSource {
  explicit TestFacts(const Clock& clock_of_test) : clock(clock_of_test) {}

  const Clock& clock;
  std::vector<core::collect::NodeFact> nodes;
  std::optional<std::vector<core::collect::PodFact>> pods{std::vector<core::collect::PodFact>()};
  bool complete = true;
  std::optional<Error> failure;
  // What asking for one shows.
  bool one_by_one = false;
  std::vector<core::collect::PodFact> there;  ///< and those listed
  std::vector<std::string> nodes_there;       ///< and those listed
  std::vector<std::string> asked;             ///< names of pods, as they were asked for
  std::optional<Error> refusal;               ///< of all pods
  std::map<std::string, Error> odd;           ///< of pods, by name

  void node(const std::string& name) { nodes.push_back({name, {}, {}}); }
  static core::collect::PodFact fact(const std::string& name, const std::vector<net::Address>& addresses,
                                     const std::string& node = "node-a") {
    return {"ns", name, "", node, "Running", "", addresses, false};
  }
  void pod(const std::string& name, const std::vector<net::Address>& addresses, const std::string& node = "node-a") {
    pods->push_back(fact(name, addresses, node));
  }
  void remove_pod(const std::string& name) {
    std::erase_if(*pods, [&](const core::collect::PodFact& p) { return p.name == name; });
  }
  void remove_node(const std::string& name) {
    std::erase_if(nodes, [&](const core::collect::NodeFact& n) { return n.name == name; });
  }

  [[nodiscard]] bool answers_one_by_one() const override { return one_by_one; }
  [[nodiscard]] Result<std::optional<core::collect::PodFact>> pod(const std::string& /*namespace_name*/,
                                                                  const std::string& name) override {
    asked.push_back(name);
    if (refusal) return fail(*refusal);
    if (const auto found = odd.find(name); found != odd.end()) return fail(found->second);
    for (const auto* all : {&there, &*pods}) {
      const auto found = std::ranges::find(*all, name, &core::collect::PodFact::name);
      if (found != all->end()) return std::optional(*found);
    }
    return std::optional<core::collect::PodFact>();
  }
  [[nodiscard]] Result<bool> has_node(const std::string& name) override {
    return std::ranges::find(nodes_there, name) != nodes_there.end() ||
           std::ranges::find(nodes, name, &core::collect::NodeFact::name) != nodes.end();
  }

  [[nodiscard]] Result<core::collect::Facts> facts() override {
    if (failure) return fail(*failure);
    core::collect::Facts facts;
    facts.taken_at = clock.now();
    for (const auto& fact : nodes) facts.add_node(fact);
    if (pods) facts.set_pods_known();
    for (const auto& fact : pods.value_or(std::vector<core::collect::PodFact>())) facts.add_pod(fact);
    facts.complete = complete;
    facts.freeze();
    return facts;
  }
};

namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::UnorderedElementsAre;

using Texts = std::vector<std::string>;

Texts texts_of(const SweepReport& report) {
  Texts texts;
  for (const auto& evidence : report.released) {
    texts.push_back(std::string(name_of(evidence.what)) + " " + evidence.subject + " " + evidence.reason);
  }
  return texts;
}
Texts alarms_of(const SweepReport& report) {
  Texts texts;
  for (const auto& alarm : report.alarms) texts.emplace_back(name_of(alarm.kind));
  return texts;
}

/// A collector over the world's store.
struct Collector {
  Context context;
  TestFacts& facts;
  SweepOptions options{};
  core::collect::Memory memory{};

  SweepReport pass() {
    auto report = sweep(context, facts, memory, options);
    EXPECT_TRUE(report) << report.error().message;
    return report ? *std::move(report) : SweepReport{};
  }
};

class Sweep : public testing::Test, public World {
 protected:
  void SetUp() override {
    facts.node("node-a");
    facts.node("node-b");
    for (int i = 0; i < 10; ++i) facts.pod("crowd-" + std::to_string(i), {ip("192.0.2.1")});
  }
  /// An ADD for a pod, whose address is not known to the facts unless `alive`.
  std::string add_pod(const std::string& name, const std::string& node = "node-a", bool alive = false) {
    auto wanted = request("c-" + name, node);
    wanted.pod = {name, "ns", ""};
    const std::string address = add(wanted).front();
    if (alive) facts.pod(name, {ip(address.c_str())}, node);
    return address;
  }
  /// Behind a first pass, and the grace.
  SweepReport second_pass() {
    collector.pass();
    clock.advance(collector.options.settings.grace);
    facts.asked.clear();
    return collector.pass();
  }
  Texts after_grace() { return texts_of(second_pass()); }
  bool is_held(const std::string& address) {
    return show_address(context, ip(address.c_str()))->state == core::AddressState::held;
  }

  TestFacts facts{clock};
  Collector collector{context, facts};
};

TEST_F(Sweep, ReleasesALeakWithEvidenceIntoCooling) {
  pool("a", "10.1.0.0/28", 29);
  const std::string dead = add_pod("dead");
  const std::string alive = add_pod("alive", "node-a", true);
  EXPECT_THAT(after_grace(), ElementsAre("address " + dead + " pod_gone"));
  EXPECT_EQ(show_address(context, ip(dead.c_str()))->state, core::AddressState::cooling);
  EXPECT_TRUE(is_held(alive));
  EXPECT_THAT(findings(), IsEmpty());
}

// ---------------------------------------------------------------- what a list says is asked for one by one

class AskingSweep : public Sweep {
 protected:
  void SetUp() override {
    Sweep::SetUp();
    pool("a", "10.1.0.0/28", 29);
    facts.one_by_one = true;
  }
};

TEST_F(AskingSweep, APodThatTheListLeavesOutKeepsItsAddress) {
  const std::string dead = add_pod("dead");
  const std::string alive = add_pod("alive");
  facts.there.push_back(TestFacts::fact("alive", {ip(alive.c_str())}));
  collector.pass();
  EXPECT_THAT(facts.asked, IsEmpty()) << "in the first look nothing is to be freed";
  clock.advance(collector.options.settings.grace);
  const SweepReport report = collector.pass();
  EXPECT_THAT(texts_of(report), ElementsAre("address " + dead + " pod_gone"));
  EXPECT_THAT(report.released.at(0).facts, Contains("asked for by itself, it is so"));
  EXPECT_THAT(facts.asked, ElementsAre("alive", "dead"));
  EXPECT_TRUE(is_held(alive));
  ASSERT_THAT(alarms_of(report), ElementsAre("pods_differ"));
  EXPECT_THAT(report.alarms.at(0).text, HasSubstr("ns/alive"));
  EXPECT_EQ(report.changed_meanwhile, 1U);
  EXPECT_FALSE(report.failure);
}

TEST_F(AskingSweep, ADryRunAsksToo) {
  collector.options.dry_run = true;
  const std::string alive = add_pod("alive");
  facts.there.push_back(TestFacts::fact("alive", {ip(alive.c_str())}));
  EXPECT_THAT(after_grace(), IsEmpty());
  EXPECT_THAT(facts.asked, ElementsAre("alive"));
}

TEST_F(AskingSweep, APodThatCannotBeAskedForKeepsItsAddress) {
  const std::string dead = add_pod("dead");
  facts.refusal = Error{ErrorCode::permission_denied, "get a pod: no; `get` and `list` of pods", {}};
  const SweepReport report = second_pass();
  EXPECT_THAT(texts_of(report), IsEmpty());
  EXPECT_TRUE(report.failure);
  ASSERT_THAT(alarms_of(report), ElementsAre("not_done"));
  EXPECT_THAT(report.alarms.at(0).text, HasSubstr("pod ns/dead: get a pod: no"));
  EXPECT_TRUE(is_held(dead));
  // What is wrong with one pod keeps what others held from nobody.
  facts.refusal = Error{ErrorCode::corrupt, "another pod came", {}};
  const SweepReport later = collector.pass();
  EXPECT_FALSE(later.failure);
  EXPECT_TRUE(is_held(dead));
  facts.refusal.reset();
  EXPECT_THAT(texts_of(collector.pass()), ElementsAre("address " + dead + " pod_gone"));
}

/// As a proxy before the API may have it: the pod it is odd about is left unsure, and the others are freed.
TEST_F(AskingSweep, AnOddAnswerAboutOnePodIsAboutThatPod) {
  for (const ErrorCode code : {ErrorCode::not_found, ErrorCode::conflict, ErrorCode::too_old, ErrorCode::corrupt,
                               ErrorCode::invalid_argument, ErrorCode::refused_by_configuration}) {
    const std::string odd = add_pod("a-odd"), dead = add_pod("b-dead");
    facts.odd.emplace("a-odd", Error{code, "get a pod: 410 Gone", {}});
    const SweepReport report = second_pass();
    EXPECT_THAT(texts_of(report), ElementsAre("address " + dead + " pod_gone")) << name_of(code);
    EXPECT_FALSE(report.failure) << name_of(code);
    ASSERT_THAT(alarms_of(report), ElementsAre("not_done"));
    EXPECT_THAT(report.alarms.at(0).text, HasSubstr("pod ns/a-odd: get a pod: 410 Gone; what is held for it is kept"));
    EXPECT_EQ(report.alarms.at(0).text.find("croft check"), std::string::npos) << "which asks for no pod";
    EXPECT_TRUE(is_held(odd));
    facts.odd.clear();
    EXPECT_THAT(texts_of(collector.pass()), ElementsAre("address " + odd + " pod_gone"));
  }
}

TEST_F(AskingSweep, ThreeInARowThatAreNotAnsweredForEndThePass) {
  for (int i = 0; i < 4; ++i) {
    const std::string name = "hangs-" + std::to_string(i);
    add_pod(name);
    facts.odd.emplace(name, Error{ErrorCode::deadline_exceeded, "get a pod: no answer", {}});
  }
  const std::string dead = add_pod("web");
  const SweepReport report = second_pass();
  EXPECT_THAT(texts_of(report), IsEmpty());
  EXPECT_TRUE(report.failure);
  EXPECT_THAT(facts.asked, ElementsAre("hangs-0", "hangs-1", "hangs-2"));
  EXPECT_TRUE(is_held(dead));
}

/// However they lie between others: each takes the time of an answer that does not come. What is proven is freed.
TEST_F(AskingSweep, AfterSomeThatAreNotAnsweredForNoneIsAskedForInThisPass) {
  for (int i = 0; i < 10; ++i) {
    const std::string name = "pod-" + std::to_string(i);
    add_pod(name);
    if (i % 2 == 0) facts.odd.emplace(name, Error{ErrorCode::deadline_exceeded, "get a pod: no answer", {}});
  }
  const SweepReport report = second_pass();
  EXPECT_FALSE(report.failure);
  EXPECT_THAT(facts.asked, SizeIs(9)) << "the fifth that hangs is the last";
  EXPECT_THAT(texts_of(report), SizeIs(4));
  EXPECT_THAT(report.alarms.back().text, HasSubstr("not asked for in this pass"));
}

TEST_F(AskingSweep, ANodeThatTheListLeavesOutIsNotGone) {
  const std::string on_b = add_pod("web", "node-b");
  collector.pass();
  facts.remove_node("node-b");
  facts.nodes_there.push_back("node-b");
  const auto of_address = [&](const Texts& texts) {
    return std::ranges::count_if(texts, [&](const std::string& text) { return text.starts_with("address"); });
  };
  EXPECT_EQ(of_address(after_grace()), 0);
  EXPECT_TRUE(is_held(on_b));
  facts.nodes_there.clear();
  EXPECT_THAT(texts_of(collector.pass()), Contains("address " + on_b + " node_gone"));
}

/// A restore took the record of node-b away; nobody did.
TEST_F(Sweep, WhatAnotherEpochHadIsNotGone) {
  pool("a", "10.1.0.0/28", 29);
  const std::string on_a = add_pod("one", "node-a", true);
  const std::string on_b = add_pod("two", "node-b", true);
  collector.pass();
  facts.remove_node("node-b");
  store.begin_epoch();
  EXPECT_THAT(alarms_of(collector.pass()), ElementsAre("register_replaced", "nodes_unknown"));
  clock.advance(collector.options.settings.grace);
  const SweepReport report = collector.pass();
  EXPECT_THAT(texts_of(report), IsEmpty());
  EXPECT_THAT(alarms_of(report), ElementsAre("nodes_unknown"));
  EXPECT_TRUE(is_held(on_a));
  EXPECT_TRUE(is_held(on_b));
}

TEST_F(Sweep, ADryRunSaysTheSameAndWritesNothing) {
  pool("a", "10.1.0.0/28", 29);
  const std::string dead = add_pod("dead");
  collector.options.dry_run = true;
  const auto commits = store.counts().commit;
  EXPECT_THAT(after_grace(), ElementsAre("address " + dead + " pod_gone"));
  EXPECT_EQ(store.counts().commit, commits);
  EXPECT_TRUE(is_held(dead));
}

TEST_F(Sweep, ReleasesInBatchesOfABlockAndNotOneByOne) {
  pool("a", "10.1.0.0/20", 26);
  for (int i = 0; i < 10; ++i) add_pod("dead-" + std::to_string(i));
  collector.pass();
  clock.advance(15min);
  const auto before = store.counts();
  EXPECT_EQ(collector.pass().released.size(), 10U);
  // Without atomic commits the handles go before.
  EXPECT_EQ(store.counts().commit - before.commit, store.capabilities().atomic_commit ? 1U : 11U);
}

/// Of who may not list nodes, in a dry run.
TEST_F(Sweep, WithoutARightToNodesThoseThatPodsNameAreThereAndStay) {
  class Hidden final : public store::ForwardingStore {
   public:
    using ForwardingStore::ForwardingStore;
    [[nodiscard]] Result<void> for_each(const store::ListRequest& request, const Until& until,
                                        const Take& take) override {
      if (request.kind != core::Kind::node) return ForwardingStore::for_each(request, until, take);
      return fail(ErrorCode::permission_denied, "cannot list nodes");
    }
  };
  class Pods final : public PodSource {
   public:
    [[nodiscard]] Result<std::optional<std::uint64_t>> pods(
        const std::function<void()>& begin, const std::function<void(const core::collect::PodFact&)>& take) override {
      begin();
      if (are_hidden) return fail(ErrorCode::permission_denied, "cannot list pods");
      for (const auto& pod : all) take(pod);
      return std::optional<std::uint64_t>();
    }
    [[nodiscard]] Result<std::optional<core::collect::PodFact>> pod(const std::string&, const std::string&) override {
      return std::optional<core::collect::PodFact>();
    }
    std::vector<core::collect::PodFact> all;
    bool are_hidden = false;
  };
  Hidden hidden(store);
  const Context of_hidden{hidden, clock, random};
  Pods pods;
  pods.all = {TestFacts::fact("alive", {})};
  EXPECT_EQ(NodeFacts(of_hidden, &pods).facts().error().code, ErrorCode::permission_denied);

  std::vector<std::string> denied;
  const auto note = [&](const std::string& what, const Error&) { denied.push_back(what); };
  NodeFacts facts_of_pods(of_hidden, &pods, note);
  ASSERT_TRUE(facts_of_pods.facts()->has_node("node-a"));
  EXPECT_THAT(denied, ElementsAre("nodes"));
  pods.all.clear();
  const auto later = facts_of_pods.facts();
  EXPECT_TRUE(later->has_node("node-a")) << "its last pod ended: the node is not gone by that";
  EXPECT_TRUE(later->pods_known());
  EXPECT_TRUE(facts_of_pods.has_node("node-a").value());
  pods.are_hidden = true;
  EXPECT_EQ(facts_of_pods.facts().error().code, ErrorCode::permission_denied) << "nothing is known then";
  denied.clear();
  EXPECT_FALSE(NodeFacts(context, &pods, note).facts()->pods_known());
  EXPECT_THAT(denied, ElementsAre("pods"));
}

TEST_F(Sweep, WhatANodeHeldThatWasRemovedGoesAndThenTheWordOfItToo) {
  if (!kMakesNodes) GTEST_SKIP() << "nodes of this store are made by others";
  pool("a", "10.1.0.0/26", 29, 0);
  const std::string alive = add_pod("alive", "node-a", true);
  const std::string dead = add_pod("dead", "node-c");
  EXPECT_EQ(remove_node(context, {"node-c", false, false}).error().code, ErrorCode::refused_for_safety);
  EXPECT_EQ(remove_node(context, {"node-c", true, true}).value().held, 1U);
  EXPECT_FALSE(store.get(core::removed_node_key("node-c"), Deadline{}).value());
  ASSERT_TRUE(remove_node(context, {"node-c", true, false}));
  EXPECT_TRUE(store.get(core::removed_node_key("node-c"), Deadline{}).value());
  const std::string later = add_pod("later", "node-c");  // it came back
  EXPECT_THAT(after_grace(), ElementsAre("address " + dead + " node_gone"));
  EXPECT_TRUE(is_held(alive) && is_held(later));
  EXPECT_THAT(alarms_of(collector.pass()), ElementsAre("nodes_unknown"));
  EXPECT_FALSE(store.get(core::removed_node_key("node-c"), Deadline{}).value());
}

TEST_F(Sweep, StrayClaimsAndHandlesGo) {
  pool("a", "10.1.0.0/26", 29);
  add_pod("alive", "node-a", true);
  const core::AffinityOwner b{core::AffinityOwner::Type::host, "node-b"};
  put(core::affinity_key(b, prefix("10.1.0.0/29")),
      core::Affinity{b, prefix("10.1.0.0/29"), core::AffinityState::pending, false});
  put(core::affinity_key(b, prefix("10.1.0.40/29")),
      core::Affinity{b, prefix("10.1.0.40/29"), core::AffinityState::confirmed, false});
  put(core::handle_key("net.lost"), core::Handle{"net.lost", {{"10.1.0.0/29", 1}}, false});
  EXPECT_THAT(after_grace(), UnorderedElementsAre("affinity host/node-b/ipv4/10.1.0.0/29 stray_affinity",
                                                  "affinity host/node-b/ipv4/10.1.0.40/29 stray_affinity",
                                                  "handle net.lost stray_handle"));
  EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(Sweep, EndedCooldownsAreWrittenDownAlsoWhenFactsAreMissing) {
  pool("a", "10.1.0.0/28", 29);
  add("c");
  del("c");
  facts.complete = false;
  EXPECT_EQ(collector.pass().cooled_blocks, 0U);
  clock.advance(30s);
  EXPECT_EQ(collector.pass().cooled_blocks, 1U);
  EXPECT_EQ(collector.pass().cooled_blocks, 0U);
}

TEST_F(Sweep, ACorruptBlockIsNamedAndLeftAlone) {
  pool("a", "10.1.0.0/26", 29);
  const std::string dead = add_pod("dead");
  add_pod("other", "node-b");
  put(core::handle_key("net.lost"), core::Handle{"net.lost", {{"10.1.0.0/29", 1}}, false});
  const std::vector<net::Prefix> cidrs = list_block_cidrs(context).value();
  for (const net::Prefix& cidr : cidrs) {
    if (!cidr.contains(ip(dead.c_str()))) store.damage(core::block_key(cidr));
  }
  const SweepReport report = second_pass();
  EXPECT_THAT(alarms_of(report), ElementsAre("block_corrupt"));
  // Handles and claims may be those of the block that can't be read: none goes.
  EXPECT_THAT(texts_of(report), ElementsAre("address " + dead + " pod_gone"));
}

TEST_F(Sweep, ADamagedHandleKeepsItsOwnAddressesAndNoOthers) {
  pool("a", "10.1.0.0/28", 29);
  const std::string one = add_pod("one");
  const std::string damaged = add_pod("damaged");
  const std::string two = add_pod("two");
  store.damage(core::handle_key(core::handle_of({"net", "c-damaged", "eth0"})));
  const SweepReport report = second_pass();
  EXPECT_THAT(texts_of(report), UnorderedElementsAre("address " + one + " pod_gone", "address " + two + " pod_gone"));
  EXPECT_TRUE(is_held(damaged));
  EXPECT_FALSE(report.failure);
  std::string not_done;
  for (const auto& alarm : report.alarms) {
    if (alarm.kind == core::collect::Alarm::Kind::not_done) not_done += alarm.text;
  }
  EXPECT_THAT(not_done, HasSubstr("net.c-damaged"));
  EXPECT_THAT(not_done, HasSubstr("croft check"));
  // Its record is gone: nothing is in the way any more.
  put(core::handle_key(core::handle_of({"net", "c-damaged", "eth0"})), std::nullopt);
  EXPECT_THAT(texts_of(collector.pass()), ElementsAre("address " + damaged + " pod_gone"));
}

/// On a Kubernetes API no object can have this name (src/ipam/CMakeLists.txt: the same test there).
TEST_F(Sweep, AHandleThatNoRecordCanHaveKeepsNothing) {
  pool("a", "10.1.0.0/28", 29);
  const std::string one = add_pod("one");
  std::vector<std::string> bad;
  for (const char* name : {"bad-1", "bad-2", "bad-3"}) bad.push_back(add_pod(name));
  const net::Prefix cidr = show_address(context, ip(one.c_str()))->block.value();
  core::Block block = std::get<core::Block>(*store.get(core::block_key(cidr), Deadline{}).value()->value);
  for (core::Attribute& attribute : block.attributes) {
    if (attribute.handle_id && attribute.handle_id->find("bad") != std::string::npos) {
      put(core::handle_key(*attribute.handle_id), std::nullopt);
      attribute.handle_id = "BAD HANDLE";
    }
  }
  put(core::block_key(cidr), block);
  // An operator's remedy, of one of several that the handle holds and of one alone.
  const auto released = release_addresses(context, {{ip(bad[0].c_str()), {}, {}, {}}});
  ASSERT_TRUE(released) << released.error().message;
  EXPECT_THAT(released->released, ElementsAre(ip(bad[0].c_str())));
  EXPECT_FALSE(is_held(bad[0]));
  EXPECT_THAT(after_grace(), UnorderedElementsAre("address " + one + " pod_gone", "address " + bad[1] + " pod_gone",
                                                  "address " + bad[2] + " pod_gone"));
}

TEST_F(Sweep, AStoreThatGoesAwayEndsThePassAndTheNextGoesOn) {
  pool("a", "10.1.0.0/28", 29);
  const std::string dead = add_pod("dead");
  collector.pass();
  clock.advance(15min);
  store.set_faults(store::FaultScript().on_commit(store.counts().commit + 1, store::Fault::unavailable));
  const SweepReport report = collector.pass();
  EXPECT_TRUE(report.failure);
  EXPECT_THAT(report.released, IsEmpty());
  EXPECT_THAT(alarms_of(report), ElementsAre("not_done"));
  store.set_faults({});
  EXPECT_THAT(texts_of(collector.pass()), ElementsAre("address " + dead + " pod_gone"));
}

TEST_F(Sweep, ASourceThatIsAwayLeavesTheMemory) {
  pool("a", "10.1.0.0/28", 29);
  const std::string dead = add_pod("dead");
  collector.pass();
  clock.advance(15min);
  facts.failure = Error{ErrorCode::unavailable, "away", {}};
  const auto failed = sweep(context, facts, collector.memory, collector.options);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::unavailable);
  facts.failure.reset();
  EXPECT_THAT(texts_of(collector.pass()), ElementsAre("address " + dead + " pod_gone"));
}

TEST_F(Sweep, TwoCollectorsAtOnceReleaseEverythingOnce) {
  pool("a", "10.1.0.0/26", 29);
  std::set<std::string> dead;
  for (int i = 0; i < 8; ++i) dead.insert("address " + add_pod("dead-" + std::to_string(i)) + " pod_gone");
  TestStore second_client(store.data());
  const Context second_context{second_client, clock, random};
  Collector second{second_context, facts};
  collector.pass();
  second.pass();
  clock.advance(15min);
  // The second one commits between the first one's decision and its commit.
  TestStore first_client(store.data());
  Meddler interfering(first_client);
  Texts seen;
  interfering.before_commit = [&] { seen = texts_of(second.pass()); };
  const Context first_context{interfering, clock, random};
  Collector first{first_context, facts, {}, collector.memory};
  const SweepReport report = first.pass();
  EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()), dead);
  EXPECT_THAT(texts_of(report), IsEmpty());
  EXPECT_EQ(report.changed_meanwhile, dead.size());
  EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(Sweep, ASuccessorOfTheAddressIsNotReleased) {
  pool("a", "10.1.0.0/30", 30, 0);  // two addresses
  const std::string address = add_pod("dead");
  collector.pass();
  clock.advance(15min);
  del("c-dead");
  std::string again;
  for (int i = 0; again != address && i < 4; ++i) again = add_pod("next-" + std::to_string(i), "node-a", false);
  ASSERT_EQ(again, address);
  EXPECT_THAT(texts_of(collector.pass()), Not(Contains(HasSubstr(address + " "))));
  EXPECT_TRUE(is_held(address));
}

// ---------------------------------------------------------------- against a dumb model

/// Histories of pods and nodes that come and go, with DELs that happen or are lost, facts that are late, and a clock
/// that is set. Never is an address of a living pod freed; when all is calm, everything dead is.
TEST(SweepProperty, NeverFreesALiveAddressAndInTheEndEveryDeadOne) {
  EXPECT_TRUE(rc::check([] {
    World world;
    world.pool("a", "10.1.0.0/25", 29, *rc::gen::element(0, 10));
    TestFacts facts(world.clock);
    for (int i = 0; i < 6; ++i) facts.node("node-" + std::to_string(i));
    for (int i = 0; i < 12; ++i) facts.pod("crowd-" + std::to_string(i), {World::ip("192.0.2.1")});
    Collector one{world.context, facts};
    Collector two{world.context, facts};
    std::map<std::string, std::string> live;        // address -> pod
    std::map<std::string, std::string> unreported;  // pods whose address the list lacks so far
    int next = 0;
    // Both have seen every node: of one that was never listed they would never conclude anything.
    static_cast<void>(one.pass());
    static_cast<void>(two.pass());
    const auto check_live = [&] {
      for (const auto& [address, pod] : live) {
        const auto view = show_address(world.context, World::ip(address.c_str()));
        const bool held = view.has_value() && view->state == core::AddressState::held && view->pod == pod;
        RC_ASSERT(held);
      }
    };
    const auto kill = [&](std::map<std::string, std::string>::iterator victim) {
      const std::string pod = victim->second;
      live.erase(victim);
      facts.remove_pod(pod);
      unreported.erase(pod);
      if (*rc::gen::inRange(0, 3) == 0) world.del("c-" + pod);  // else the DEL is lost
    };
    const int steps = *rc::gen::inRange(1, 80);
    for (int i = 0; i < steps; ++i) {
      switch (*rc::gen::inRange(0, 9)) {
        case 0:
        case 1: {
          const std::string pod = "pod-" + std::to_string(next++);
          const std::string node = (*rc::gen::elementOf(facts.nodes)).name;
          auto wanted = World::request("c-" + pod, node);
          wanted.pod = {pod, "ns", ""};
          facts.pod(pod, {}, node);  // a pod is there before its address
          const auto answer = assign(world.context, wanted);
          if (!answer || !std::holds_alternative<core::Assigned>(*answer)) {
            facts.remove_pod(pod);
            break;
          }
          const std::string address = std::get<core::Assigned>(*answer).addresses.front().address.to_string();
          RC_ASSERT(!live.contains(address));
          live[address] = pod;
          unreported[pod] = address;
          break;
        }
        case 2: {
          if (unreported.empty()) break;
          const auto [pod, address] = *unreported.begin();
          unreported.erase(pod);
          for (auto& fact : *facts.pods) {
            if (fact.name == pod) fact.addresses = {World::ip(address.c_str())};
          }
          break;
        }
        case 3:
          if (!live.empty()) kill(std::next(live.begin(), *rc::gen::inRange<std::ptrdiff_t>(0, std::ssize(live))));
          break;
        case 4: {
          // A node's object goes and comes; its pods live on where they were.
          const std::string name = "node-" + std::to_string(*rc::gen::inRange(0, 6));
          const bool is_there = std::ranges::any_of(facts.nodes, [&](const auto& n) { return n.name == name; });
          // Pods that report nothing on a node that is gone for good don't exist; this node is to come back.
          const bool has_unreported =
              std::ranges::any_of(*facts.pods, [&](const auto& p) { return p.node == name && p.addresses.empty(); });
          if (is_there && !has_unreported && facts.nodes.size() > 4) facts.remove_node(name);
          if (!is_there) facts.node(name);
          break;
        }
        case 5:
          facts.complete = *rc::gen::inRange(0, 3) != 0;
          break;
        case 6:
          world.clock.jump_wall(std::chrono::hours(*rc::gen::inRange(-1000, 1000)));
          break;
        default:
          world.clock.advance(std::chrono::minutes(*rc::gen::inRange(1, 16)));
      }
      static_cast<void>(one.pass());
      if (*rc::gen::arbitrary<bool>()) static_cast<void>(two.pass());
      check_live();
    }
    // Calm: everything dead is freed, the brake lets at least ten a pass. A node that came back and went while no list
    // was whole was never listed as far as the collector remembers (Memory::listed_nodes), which is told: it is listed
    // once, as that text says.
    facts.complete = true;
    std::vector<std::string> away;
    for (int i = 0; i < 6; ++i) {
      const std::string name = "node-" + std::to_string(i);
      if (std::ranges::none_of(facts.nodes, [&](const auto& n) { return n.name == name; })) away.push_back(name);
    }
    for (const std::string& name : away) facts.node(name);
    static_cast<void>(one.pass());
    for (const std::string& name : away) facts.remove_node(name);
    for (int i = 0; i < 20; ++i) {
      static_cast<void>(one.pass());
      check_live();
      world.clock.advance(15min);
    }
    const auto overview = read_overview(world.context).value();
    std::size_t held = 0;
    for (const PoolView& pool : overview.pools) held += static_cast<std::size_t>(pool.usage.held);
    RC_ASSERT(held == live.size());
    RC_ASSERT(world.findings() == Texts());
  }));
}

}  // namespace
}  // namespace croft::engine
