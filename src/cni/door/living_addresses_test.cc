#include "cni/door/living_addresses.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "ipam/use/assign.h"
#include "ipam/use/inspect.h"
#include "ipam/use/pools.h"
#include "ipam/use/release.h"
#include "register/quarantine.h"
#include "store/memory/memory_store.h"

namespace croft::edge {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using namespace std::chrono_literals;

/// ADDs of one node on a register in memory, and a kernel that leads to some addresses.
class Living : public testing::Test {
 protected:
  Living() {
    for (const auto& [name, cidr, length] :
         {std::tuple("four", "10.1.0.0/27", 27), std::tuple("six", "fd00::/123", 123)}) {
      const core::PoolSpec spec{name,   net::Prefix::parse(cidr).value(),
                                length, core::GatewayChoice{core::GatewayChoice::Kind::none, {}},
                                0s,     {}};
      EXPECT_TRUE(engine::create_pool(context(), spec));
    }
    probe_.device_of = [this](const net::Address& address) -> Result<std::optional<std::string>> {
      ++questions_;
      if (deaf_) return fail(*deaf_);
      const auto found = routes_.find(address.to_string());
      return found == routes_.end() ? std::optional<std::string>() : std::optional(found->second);
    };
    probe_.pause_by = [this](std::chrono::nanoseconds span) {
      clock_.advance(span);
      ++pauses_;
      if (on_pause_) on_pause_();
    };
  }
  engine::Context context() { return {store_, clock_, random_}; }
  core::AssignRequest request(const std::string& container) const {
    core::AssignRequest request;
    request.owner = {"net", container, "eth0"};
    request.node = {core::AffinityOwner::Type::host, "n1"};
    request.count = count_;
    request.addresses = wanted_;
    if (!wanted_.empty()) request.count = {0, 0};
    return request;
  }
  Result<core::Assigned> add(const std::string& container) {
    const core::AssignRequest asked = request(container);
    const auto assign = [&]() -> Result<AssignedOnce> {
      ++tries_;
      TRY(auto answer, engine::assign(context(), asked));
      if (const auto* refusal = std::get_if<core::Refusal>(&answer)) return fail(core::to_error(*refusal));
      return AssignedOnce{std::get<core::Assigned>(std::move(answer)), agent_gave_up_};
    };
    const auto open = [&]() -> Result<std::unique_ptr<store::Store>> {
      ++opened_;
      if (broken_) return fail(*broken_);
      return std::make_unique<store::MemoryStore>(store_.data());
    };
    return assign_past_living({probe_, clock_, random_, asked.owner, "n1", wanted_, assign, open,
                               [&](const std::string& what) { warnings_.push_back(what); },
                               [&] { return has_agent_; }});
  }
  static std::vector<std::string> texts(const Result<core::Assigned>& assigned) {
    std::vector<std::string> texts;
    if (!assigned) return {assigned.error().message};
    for (const auto& one : assigned->addresses)
      texts.push_back(one.address.to_string() + (one.held_before ? " again" : ""));
    return texts;
  }
  /// "10.1.0.0 croft-quarantine-10-1-0-0", of all that is taken.
  std::vector<std::string> taken() {
    std::vector<std::string> texts;
    const auto all = engine::list_addresses(context());
    EXPECT_TRUE(all);
    for (const auto& one : *all) {
      const bool is_shown = one.state == core::AddressState::held || one.state == core::AddressState::quarantined;
      if (is_shown) texts.push_back(one.address.to_string() + " " + one.handle_id);
    }
    return texts;
  }

  store::MemoryStore store_;
  ManualClock clock_;
  SeededRandom random_{3};
  LivingProbe probe_;
  std::map<std::string, std::string> routes_;
  std::function<void()> on_pause_;
  std::optional<Error> deaf_, broken_;
  net::PerFamily<std::uint32_t> count_{1, 0};
  std::vector<net::Address> wanted_;
  std::vector<std::string> warnings_;
  bool agent_gave_up_ = false, has_agent_ = false;
  int questions_ = 0, pauses_ = 0, tries_ = 0, opened_ = 0;
};

TEST_F(Living, WhereNobodyLivesItCostsOneQuestionAnAddress) {
  count_ = {1, 1};
  EXPECT_THAT(texts(add("c1")), ElementsAre("10.1.0.1", "fd00::1"));
  EXPECT_EQ(questions_, 2);
  EXPECT_EQ(pauses_ + opened_, 0);
  EXPECT_THAT(warnings_, IsEmpty());
  // Asked again as the same owner: it may be its own route.
  routes_ = {{"10.1.0.1", "own"}, {"fd00::1", "own"}};
  EXPECT_THAT(texts(add("c1")), ElementsAre("10.1.0.1 again", "fd00::1 again"));
  EXPECT_EQ(questions_, 2);
}

TEST_F(Living, WhatLivesIsPassedOverAndInQuarantine) {
  routes_ = {{"10.1.0.1", "veth1"}, {"10.1.0.2", "veth2"}, {"10.1.0.4", "veth3"}};
  EXPECT_THAT(texts(add("c1")), ElementsAre("10.1.0.3"));
  EXPECT_THAT(taken(), ElementsAre("10.1.0.1 croft-quarantine-10-1-0-1", "10.1.0.2 croft-quarantine-10-1-0-2",
                                   "10.1.0.3 net.c1"));
  EXPECT_THAT(warnings_, ElementsAre(AllOf(StartsWith("10.1.0.1 "), HasSubstr("veth1"), HasSubstr("quarantine")),
                                     AllOf(StartsWith("10.1.0.2 "), HasSubstr("veth2"))));
  EXPECT_EQ(tries_, 3);
  // Nobody gets it while it is there, nor is it asked about again.
  questions_ = 0;
  EXPECT_THAT(texts(add("c2")), ElementsAre("10.1.0.5"));
  EXPECT_EQ(opened_, 3);
  // The container's own DEL leaves it.
  ASSERT_TRUE(engine::release_owner(context(), {"net", "c1", "eth0"}));
  EXPECT_EQ(taken().size(), 4U);
}

TEST_F(Living, OfTwoFamiliesTheOtherStays) {
  count_ = {1, 1};
  routes_ = {{"fd00::1", "veth1"}};
  EXPECT_THAT(texts(add("c1")), ElementsAre("10.1.0.1", "fd00::2"));
  EXPECT_THAT(taken(), ElementsAre("10.1.0.1 net.c1", "fd00::1 croft-quarantine-fd000000000000000000000000000001",
                                   "fd00::2 net.c1"));
}

TEST_F(Living, WhoIsLetGoMeanwhileDidNotLive) {
  routes_ = {{"10.1.0.1", "veth1"}};
  on_pause_ = [&] {
    if (pauses_ == 3) routes_.clear();
  };
  EXPECT_THAT(texts(add("c1")), ElementsAre("10.1.0.1"));
  EXPECT_THAT(taken(), ElementsAre("10.1.0.1 net.c1"));
  EXPECT_EQ(opened_, 0);
}

TEST_F(Living, AWantedAddressThatLivesIsRefusedAndInQuarantine) {
  wanted_ = {net::Address::parse("10.1.0.8").value()};
  routes_ = {{"10.1.0.8", "cali1"}};
  const auto refused = add("c1");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr("requested address 10.1.0.8"), HasSubstr("cali1"),
                                             HasSubstr("restore-kubernetes-api.md")));
  EXPECT_THAT(taken(), ElementsAre("10.1.0.8 croft-quarantine-10-1-0-8"));
}

TEST_F(Living, OneAddPassesOverSomeAndTheNextGoesOnBehindThem) {
  for (int i = 1; i <= 20; ++i) routes_["10.1.0." + std::to_string(i)] = "veth" + std::to_string(i);
  count_ = {1, 1};
  const auto refused = add("c1");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("16 addresses"), HasSubstr("10.1.0.16"), HasSubstr("veth16"), HasSubstr("restore-")));
  // What else it had got is given back.
  EXPECT_EQ(taken().size(), static_cast<std::size_t>(kLivingMax));
  EXPECT_LT(clock_.now().since_boot - ManualClock().now().since_boot, 3s);
  EXPECT_EQ(texts(add("c1")).front(), "10.1.0.21");
}

TEST_F(Living, WhereNoOtherIsLeftItSaysWhatLives) {
  for (int i = 1; i <= 3; ++i) routes_["10.1.0." + std::to_string(i)] = "veth1";
  for (int i = 4; i <= 30; ++i) {
    wanted_ = {net::Address::v4(0x0a010000U + static_cast<std::uint32_t>(i))};
    ASSERT_TRUE(add("c" + std::to_string(i)));
  }
  wanted_.clear();
  const auto refused = add("c1");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr("10.1.0.1 lives on this node"), HasSubstr("veth1"),
                                             HasSubstr("every usable pool is full")));
}

/// Nobody else sees that he is gone.
TEST_F(Living, WithoutAnAgentWhoIsInWantGivesBackWhatNobodyLivesWithAnyMore) {
  routes_ = {{"10.1.0.1", "veth1"}, {"10.1.0.2", "veth2"}};
  ASSERT_TRUE(add("c0"));
  for (int i = 4; i <= 30; ++i) {
    wanted_ = {net::Address::v4(0x0a010000U + static_cast<std::uint32_t>(i))};
    ASSERT_TRUE(add("c" + std::to_string(i)));
  }
  wanted_.clear();
  routes_.erase("10.1.0.1");
  clock_.advance(14min);
  EXPECT_THAT(texts(add("c1")), ElementsAre(HasSubstr("full")));  // young
  clock_.advance(1min);
  has_agent_ = true;
  EXPECT_THAT(texts(add("c1")), ElementsAre(HasSubstr("full")));  // the agent does it, by more looks
  has_agent_ = false;
  deaf_ = Error{ErrorCode::permission_denied, "no netlink here", {}};
  EXPECT_THAT(texts(add("c1")), ElementsAre(HasSubstr("full")));
  deaf_.reset();
  warnings_.clear();
  EXPECT_THAT(texts(add("c1")), ElementsAre("10.1.0.1"));
  EXPECT_THAT(warnings_, ElementsAre(AllOf(StartsWith("10.1.0.1 "), HasSubstr("given back"))));
  // The other one lives.
  EXPECT_THAT(texts(add("c2")), ElementsAre(HasSubstr("full")));
  // Who wants that very address asks, too.
  routes_.clear();
  wanted_ = {net::Address::v4(0x0a010002U)};
  EXPECT_THAT(texts(add("c2")), ElementsAre("10.1.0.2"));
}

TEST_F(Living, WhoComesBackWhileItLooksLives) {
  routes_ = {{"10.1.0.1", "veth1"}};
  wanted_ = {net::Address::v4(0x0a010001U)};
  ASSERT_FALSE(add("c0"));
  routes_.clear();
  clock_.advance(1h);
  on_pause_ = [&] { routes_ = {{"10.1.0.1", "veth2"}}; };
  warnings_.clear();
  EXPECT_THAT(texts(add("c1")), ElementsAre("requested address 10.1.0.1 cannot be assigned"));
  EXPECT_THAT(warnings_, IsEmpty());
  EXPECT_THAT(taken(), ElementsAre("10.1.0.1 croft-quarantine-10-1-0-1"));
}

TEST_F(Living, WhatAnAgentThatWasGivenUpMayHaveAssignedIsOfThisCall) {
  ASSERT_TRUE(engine::assign(context(), request("c1")));
  agent_gave_up_ = true;
  routes_ = {{"10.1.0.1", "veth1"}};
  EXPECT_THAT(texts(add("c1")), ElementsAre("10.1.0.2"));
}

TEST_F(Living, WithoutAKernelToAskItGoesOnAndSaysSoOnce) {
  count_ = {1, 1};
  deaf_ = Error{ErrorCode::permission_denied, "no netlink here", {}};
  EXPECT_THAT(texts(add("c1")), ElementsAre("10.1.0.1", "fd00::1"));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("no netlink here")));
  EXPECT_EQ(questions_, 1);
  probe_.device_of = nullptr;
  EXPECT_THAT(texts(add("c2")), ElementsAre("10.1.0.2", "fd00::2"));
}

TEST_F(Living, WhatCannotBePutInQuarantineIsNotGivenEither) {
  routes_ = {{"10.1.0.1", "veth1"}};
  broken_ = Error{ErrorCode::unavailable, "the store is away", {}};
  const auto refused = add("c1");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("10.1.0.1"), HasSubstr("veth1"), HasSubstr("the store is away")));
  EXPECT_THAT(taken(), ElementsAre("10.1.0.1 net.c1"));
}

}  // namespace
}  // namespace croft::edge
