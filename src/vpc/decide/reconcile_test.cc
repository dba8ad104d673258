#include "vpc/decide/reconcile.h"

#include <map>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "vpc/decide/promised.h"
#include "vpc/decide/test_stock.h"

namespace croft::core::warm {
namespace {

using namespace std::chrono_literals;

/// A story of one stock in lines; addresses are last bytes of 10.9.0.0/24.
///   stock 7=a 8 9          records: pod a holds 7, the others are free
///   set aside 7 | releasing 7 | lent 7 | other card 7
///   cloud 7 8              its whole list; `denied 9`: asked by name, it does not have it; `cloud silent`
///   pods a=7 b             living pods with their addresses; `pods ended a`; `pods silent`
///   host 7 | host silent   what the host's own namespace uses; `said 7`: a pod's namespace says so
///   apart 7                a claim names it
///   asked                  an intent is open
///   pass 60s               time goes by, and a pass is made
///   then 7 held a, 8 free ?cloud     what there is, in order; `?` is what makes it unsure
class Story {
 public:
  void run(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string verb;
      if (words >> verb && verb.front() != '#') step(verb, words, line);
    }
  }

 private:
  static net::Address at(const std::string& byte) { return address_of("10.9.0." + byte); }
  static std::vector<std::string> rest(std::istringstream& words) {
    return {std::istream_iterator<std::string>(words), std::istream_iterator<std::string>()};
  }
  void put(StockAddress record) { stock_.records.put(warm_address_key(record.address), std::move(record)); }
  void enter(const std::string& byte, StockAddressState state) {
    const StockAddress* known = stock_.find("10.9.0." + byte);
    put(entered(known != nullptr ? *known : taken_in(given("10.9.0." + byte, true), stock_.clock.now()), state,
                stock_.clock.now()));
  }

  void step(const std::string& verb, std::istringstream& words, const std::string& line) {
    const std::vector<std::string> names = rest(words);
    const bool is_silent = !names.empty() && names.front() == "silent";
    if (verb == "stock") {
      for (const std::string& one : names) hold(one);
    } else if (verb == "set" || verb == "releasing" || verb == "lent") {
      const StockAddressState state = verb == "set"    ? StockAddressState::quarantined
                                      : verb == "lent" ? StockAddressState::lent
                                                       : StockAddressState::releasing;
      enter(names.back(), state);
    } else if (verb == "other") {
      StockAddress record = *stock_.find("10.9.0." + names.back());
      record.mac = kOtherMac;
      put(std::move(record));
    } else if (verb == "cloud") {
      look_.cloud.emplace();
      for (const std::string& one : names) {
        if (!is_silent) look_.cloud->push_back(given("10.9.0." + one));
      }
      if (is_silent) look_.cloud.reset();
    } else if (verb == "pods") {
      set_pods(names, is_silent);
    } else if (verb == "host" || verb == "said" || verb == "denied" || verb == "apart") {
      std::set<net::Address> all;
      for (const std::string& one : names) {
        if (!is_silent) all.insert(at(one));
      }
      if (verb == "denied") look_.denied = all;
      if (verb == "apart") look_.apart = all;
      if (verb == "said") look_.said_by_pods = all;
      if (verb == "host") look_.host = is_silent ? std::nullopt : std::optional(all);
      if (verb == "said") look_.host->insert(all.begin(), all.end());
    } else if (verb == "asked") {
      StockIntent intent;
      intent.id = std::string(32, '0');
      stock_.records.put(warm_intent_key(intent.id), intent);
    } else if (verb == "pass") {
      stock_.clock.advance(std::chrono::seconds(std::stoi(names.at(0))));
      pass();
    } else if (verb == "then") {
      EXPECT_EQ("then " + shown(), line) << "unlike the story";
    } else {
      FAIL() << line;
    }
    // The agent has seen the records as they are before its first pass.
    if (verb == "stock" || verb == "set" || verb == "releasing" || verb == "lent" || verb == "other") {
      memory_.note(stock_.all(), stock_.clock.now());
    }
  }

  void hold(const std::string& one) {
    const std::size_t equals = one.find('=');
    stock_.take({given("10.9.0." + one.substr(0, equals), true)});
    if (equals == std::string::npos) return;
    const Request request = request_of(one.substr(equals + 1));
    const auto key = warm_address_key(at(one.substr(0, equals)));
    StockAddress held = entered(*stock_.records.get(key), StockAddressState::held, stock_.clock.now());
    held.owner = request.owner;
    held.pod = request.pod;
    held.netns = request.netns;
    stock_.records.put(key, held);
  }

  void set_pods(const std::vector<std::string>& names, bool is_silent) {
    look_.pods.emplace();
    const bool has_ended = !names.empty() && names.front() == "ended";
    for (std::size_t i = has_ended ? 1 : 0; i < names.size(); ++i) {
      const std::size_t equals = names[i].find('=');
      LivePod pod{{names[i].substr(0, equals), "shop", ""}, {}, has_ended};
      if (equals != std::string::npos) pod.addresses = {at(names[i].substr(equals + 1))};
      look_.pods->push_back(std::move(pod));
    }
    if (is_silent) look_.pods.reset();
  }

  void pass() {
    look_.begun = stock_.clock.now();
    std::vector<StockIntent> intents;
    for (const auto& [key, value] : stock_.records.records()) {
      if (const auto* intent = std::get_if<StockIntent>(&value)) intents.push_back(*intent);
    }
    memory_.note(stock_.all(), look_.begun);
    Findings found = reconcile(look_, stock_.all(), intents, memory_, policy_, stock_.clock.now());
    memory_ = std::move(found.memory);
    const auto done = stock_.records.decide<std::vector<Correction>>(
        [&](const Snapshot& snapshot) { return plan_corrections(snapshot, found.corrections); });
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->size(), found.corrections.size());
  }

  [[nodiscard]] std::string shown() const {
    std::map<net::Address, std::string> all;
    for (const StockAddress& one : stock_.all()) {
      const std::string text = one.address.to_string();
      std::string& out = all[one.address];
      out = fmt::format("{} {}", text.substr(text.rfind('.') + 1), kStates.at(one.state));
      if (one.state == StockAddressState::held) out += " " + one.pod.name;
      for (const StockDoubt doubt : one.doubts) out += " ?" + kDoubts.at(doubt);
    }
    std::string text;
    for (const auto& [address, one] : all) text += (text.empty() ? "" : ", ") + one;
    const bool is_open = stock_.records.get(warm_intent_key(std::string(32, '0'))) != nullptr;
    return (text.empty() ? "nothing" : text) + (is_open ? ", asked" : "");
  }

  const std::map<StockAddressState, std::string> kStates{
      {StockAddressState::probing, "probing"},     {StockAddressState::free, "free"},
      {StockAddressState::held, "held"},           {StockAddressState::cooling, "cooling"},
      {StockAddressState::releasing, "releasing"}, {StockAddressState::lending, "lending"},
      {StockAddressState::lent, "lent"},           {StockAddressState::quarantined, "aside"}};
  const std::map<StockDoubt, std::string> kDoubts{
      {StockDoubt::not_in_cloud, "cloud"}, {StockDoubt::used_by_host, "host"}, {StockDoubt::used_by_pod, "pod"}};
  TestStock stock_;
  Look look_;
  Memory memory_;
  ReconcilePolicy policy_;
};

struct Told {
  const char* name;
  const char* text;
};
class WarmReconcile : public testing::TestWithParam<Told> {};
TEST_P(WarmReconcile, Story) { Story().run(GetParam().text); }

INSTANTIATE_TEST_SUITE_P(Stories, WarmReconcile,
                         testing::Values(Told{"AGonePodsAddressCools", R"(
stock 7=a 8=b
cloud 7 8
pods a=7
host 7
pass 121
pass 59
then 7 held a, 8 held b
pass 1
then 7 held a, 8 cooling)"},
                                         Told{"OneSourceIsNotEnough", R"(
stock 7=a
host silent
pods b
pass 121
pass 60
then 7 held a
host
pods silent
pass 60
pass 60
then 7 held a
# No pod at all is no list, and a pod's word keeps it.
pods
pass 60
pods b=7
pass 60
pass 60
then 7 held a ?pod)"},
                                         Told{"ASightOfThePodBeginsTheGraceAnew", R"(
stock 7=a
cloud 7
host
pods b
pass 121
pods a
pass 60
pods b
pass 60
then 7 held a
pass 60
then 7 cooling)"},
                                         Told{"ManyGoneAtOnceStayForAnHour", R"(
stock 10=a 11=b 12=c 13=d 14=e 15=f 16=g
cloud 10 11 12 13 14 15 16
host
pods z
pass 121
pass 60
then 10 held a, 11 held b, 12 held c, 13 held d, 14 held e, 15 held f, 16 held g
pass 3600
then 10 cooling, 11 cooling, 12 cooling, 13 cooling, 14 cooling, 15 cooling, 16 cooling)"},
                                         Told{"WhatTheCloudDoesNotHaveIsUnsureAtOnceAndGoes", R"(
stock 7=a 8 9 10
cloud 7 9 10
host 7
pods a=7
pass 121
pass 60
then 7 held a, 8 free, 9 free, 10 free
denied 8
pass 1
then 7 held a, 8 free ?cloud, 9 free, 10 free
# A silent cloud takes nothing back.
cloud silent
pass 60
then 7 held a, 8 free ?cloud, 9 free, 10 free
cloud 7 9 10
pass 60
pass 60
then 7 held a, 9 free, 10 free)"},
                                         Told{"WhatIsThereAgainIsFree", R"(
stock 7 8 9
cloud 8 9
denied 7
host
pods
pass 121
then 7 free ?cloud, 8 free, 9 free
denied
cloud 7 8 9
pass 5
then 7 free, 8 free, 9 free)"},
                                         Told{"WhatAListLeavesOutIsAskedForByName", R"(
stock 7 8 9=a
cloud 9
host 9
pods a=9
pass 121
pass 60
then 7 free, 8 free, 9 held a
denied 8
pass 60
then 7 free, 8 free ?cloud, 9 held a
denied
pass 60
then 7 free, 8 free ?cloud, 9 held a)"},
                                         Told{"AHeldAddressIsNeverTakenFromItsPod", R"(
stock 7=a 8 9
cloud 8 9
denied 7
host 7
pods a=7
pass 121
pass 60
pass 3600
then 7 held a ?cloud, 8 free, 9 free)"},
                                         Told{"WhatAPodAndTheHostUseIsItsOwn", R"(
stock 7 8
cloud 7 8
host 7
pods a=7
pass 121
then 7 free ?host ?pod, 8 free
pass 60
then 7 held a, 8 free)"},
                                         Told{"WhatTheHostAloneUsesIsSetAside", R"(
stock 7 8
cloud 7 8
host 7
pods silent
pass 121
pass 60
then 7 free ?host, 8 free
pods a
pass 60
then 7 aside, 8 free)"},
                                         Told{"ANamespacesWordMakesUnsureAndNoMore", R"(
stock 7
cloud 7
host
said 7
pods a
pass 121
pass 60
pass 60
then 7 free ?host
host
said
pass 60
then 7 free)"},
                                         Told{"WhatNobodyKnowsIsSetAsideOrItsPods", R"(
cloud 7 8
host 7
pods a=7
pass 1
then nothing
pass 60
then 7 held a, 8 aside)"},
                                         Told{"AClaimsAddressIsLeftAlone", R"(
cloud 7
apart 7
host
pods a
pass 1
pass 60
then nothing)"},
                                         Told{"AnOpenIntentExplainsWhatIsUnknownButNoPods", R"(
asked
cloud 7 8
host 8
pods a=8
pass 1
pass 60
then 8 held a, asked)"},
                                         Told{"AnotherCardsAddressesFollowOrAreUnsure", R"(
stock 7 8 9
other card 7
other card 8
cloud 7 9
denied 8
host
pods
pass 121
then 7 free, 8 free ?cloud, 9 free)"},
                                         Told{"WhatIsLeavingIsWitnessedByAPodAndTheHost", R"(
stock 7 8
releasing 7
cloud 7 8
host 7
pods a=7
pass 121
pass 60
then 7 held a, 8 free)"},
                                         Told{"WhatCameBackFromALoanIsUnknown", R"(
stock 7 8
lent 7
cloud 7 8
host
pods
pass 1
pass 60
then 7 aside, 8 free)"},
                                         Told{"ALoanIsForgottenAfterAnHour", R"(
stock 7 8
lent 7
cloud 8
host
pods
pass 1
then 7 lent, 8 free
pass 3600
then 8 free)"},
                                         Told{"WhatNobodyKnowsStaysHere", R"(
stock 7 8
set aside 7
cloud 7 8
host
pods a
pass 3600
then 7 aside, 8 free)"}),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(WarmMovesOf, TheFirstLooksListCountsHoweverMuchItLacks) {
  TestStock stock;
  stock.take({given("10.9.0.2", true), given("10.9.0.3", true)});
  Look look;
  look.begun = stock.clock.now();
  look.cloud.emplace();
  Memory memory;
  memory.note(stock.all(), look.begun);
  EXPECT_TRUE(reconcile(look, stock.all(), {}, memory, {}, stock.clock.now()).corrections.empty());
  look.is_first = true;
  EXPECT_EQ(reconcile(look, stock.all(), {}, memory, {}, stock.clock.now()).corrections.size(), 2U);
}

/// Its plugin asked the cloud by itself while no agent was there.
TEST(WarmMovesOf, WhatALivingPodHasIsItsFromTheFirstLookOn) {
  TestStock stock;
  Look look;
  look.begun = stock.clock.now();
  look.cloud = {given("10.9.0.2", true), given("10.9.0.3", true)};
  look.pods = std::vector{LivePod{{"web", "shop", "uid"}, {address_of("10.9.0.2")}}};
  const auto corrections = [&] { return reconcile(look, {}, {}, {}, {}, stock.clock.now()).corrections; };
  EXPECT_TRUE(corrections().empty()) << "a later look may show a pod that has just ended";
  look.is_first = true;
  ASSERT_EQ(corrections().size(), 1U);
  EXPECT_EQ(corrections().front().address, address_of("10.9.0.2"));
  EXPECT_EQ(corrections().front().after->state, StockAddressState::held);
  EXPECT_EQ(corrections().front().after->pod.name, "web");
}

/// What the look speaks of is the address: that its holder let go of it between the look and the commit is no news.
TEST(WarmMovesOf, WhatHasChangedMeanwhileKeepsItsDoubt) {
  TestStock stock;
  stock.take({given("10.9.0.2", true), given("10.9.0.3", true), given("10.9.0.4", true)});
  ASSERT_EQ(stock.address_for(request_of("a")), "10.9.0.2");
  Look look;
  look.begun = stock.clock.now();
  look.cloud.emplace();
  look.host = std::set{address_of("10.9.0.3")};
  for (const StockAddress& one : stock.all()) look.denied.insert(one.address);
  Memory memory;
  memory.note(stock.all(), look.begun);
  const Findings found = reconcile(look, stock.all(), {}, memory, {}, stock.clock.now());
  ASSERT_EQ(found.corrections.size(), 3U);
  stock.clock.advance(1s);
  stock.release("a");
  ASSERT_EQ(stock.address_for(request_of("b")), "10.9.0.3");
  ASSERT_TRUE(stock.records.decide<Changed>([&](const Snapshot& snapshot) {
    return plan_return_to_cloud(snapshot, {.addresses = {address_of("10.9.0.4")}}, stock.clock.now());
  }));
  const auto written = stock.records.decide<std::vector<Correction>>(
      [&](const Snapshot& snapshot) { return plan_corrections(snapshot, found.corrections); });
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(stock.find("10.9.0.2")->state, StockAddressState::cooling);
  EXPECT_EQ(stock.find("10.9.0.2")->doubts, std::vector{StockDoubt::not_in_cloud});
  EXPECT_EQ(stock.find("10.9.0.3")->doubts, std::vector{StockDoubt::not_in_cloud}) << "the host may use it for its pod";
  EXPECT_TRUE(stock.find("10.9.0.4")->doubts.empty()) << "it goes back";
}

TEST(WarmMovesOf, WhatNamespacesSay) {
  Look look;
  std::vector<net::Address> many;
  for (int i = 0; i < 9; ++i) many.push_back(address_of("10.9.0." + std::to_string(100 + i)));
  take_host(look, {address_of("10.9.0.1")},
            {{address_of("10.9.0.1"), address_of("10.9.0.7"), address_of("127.0.0.1")}, many},
            net::Prefix::parse("10.9.0.0/24").value());
  EXPECT_EQ(*look.host, (std::set{address_of("10.9.0.1"), address_of("10.9.0.7")}));
  EXPECT_EQ(look.said_by_pods, std::set{address_of("10.9.0.7")});
}

/// Whatever the wall clock does between two passes.
TEST(WarmMemory, NobodyMakesARecordOlderOrYoungerByTheWallClock) {
  TestStock stock;
  Memory memory;
  stock.take({given("10.9.0.7", true)});
  stock.clock.jump_wall(1h);
  memory.note(stock.all(), stock.clock.now());
  const StockAddress record = *stock.find("10.9.0.7");
  EXPECT_EQ(memory.seen_for(record, stock.clock.now()), 0s);
  stock.clock.jump_wall(-100h);
  stock.clock.advance(60s);
  EXPECT_EQ(memory.seen_for(record, stock.clock.now()), 60s);
}

}  // namespace
}  // namespace croft::core::warm
