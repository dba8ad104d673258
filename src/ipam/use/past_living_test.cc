#include <map>
#include <string>
#include <vector>

#include "ipam/use/assign.h"
#include "ipam/use/test_world.h"

namespace croft::engine {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// ADDs of one node on a register in memory, and a kernel that leads to some addresses.
class LivingTest : public testing::Test, public World {
 protected:
  void SetUp() override {
    for (core::PoolSpec one : {spec("four", "10.1.0.0/27", 27, 0), spec("six", "fd00::/123", 123, 0)}) {
      one.gateway = core::GatewayChoice{core::GatewayChoice::Kind::none, {}};
      ASSERT_TRUE(create_pool(context, one));
    }
    living.device_of = [this](const net::Address& address) -> Result<std::optional<std::string>> {
      ++questions;
      if (deaf) return fail(*deaf);
      const auto found = routes.find(address.to_string());
      return found == routes.end() ? std::optional<std::string>() : std::optional(found->second);
    };
    living.warn = [this](const std::string& line) { warnings.push_back(line); };
  }
  core::AssignRequest wanted_by(const std::string& container) {
    core::AssignRequest asked = request(container, "node-a");
    asked.count = wanted.empty() ? count : net::PerFamily<std::uint32_t>{0, 0};
    asked.addresses = wanted;
    return asked;
  }
  core::AssignAnswer answer_of(const std::string& container) {
    const auto answer = assign(context, wanted_by(container), {}, &living);
    EXPECT_TRUE(answer) << answer.error().message;
    return *answer;
  }
  /// The addresses, or the refusal's text.
  std::vector<std::string> add_past(const std::string& container) {
    const core::AssignAnswer answer = answer_of(container);
    if (const auto* refusal = std::get_if<core::Refusal>(&answer)) return {core::to_error(*refusal).message};
    std::vector<std::string> texts;
    for (const auto& one : std::get<core::Assigned>(answer).addresses) {
      texts.push_back(one.address.to_string() + (one.held_before ? " again" : ""));
    }
    return texts;
  }
  std::vector<std::string> taken() {
    std::vector<std::string> texts;
    const auto all = list_addresses(context);
    EXPECT_TRUE(all);
    for (const auto& one : *all) {
      if (one.state == core::AddressState::held) texts.push_back(one.address.to_string());
    }
    return texts;
  }

  Living living;
  std::map<std::string, std::string> routes;
  std::optional<Error> deaf;
  net::PerFamily<std::uint32_t> count{1, 0};
  std::vector<net::Address> wanted;
  std::vector<std::string> warnings;
  int questions = 0;
};

TEST_F(LivingTest, ItCostsOneQuestionAnAddress) {
  count = {1, 1};
  EXPECT_THAT(add_past("c1"), ElementsAre("10.1.0.1", "fd00::1"));
  EXPECT_EQ(questions, 2);
  EXPECT_THAT(warnings, IsEmpty());
  // Asked again by the same owner: it may be its own route.
  routes = {{"10.1.0.1", "own"}, {"fd00::1", "own"}};
  EXPECT_THAT(add_past("c1"), ElementsAre("10.1.0.1 again", "fd00::1 again"));
  EXPECT_EQ(questions, 2);
}

TEST_F(LivingTest, AnAddressThatLivesIsPassedOverAndNothingIsWrittenForIt) {
  routes = {{"10.1.0.1", "veth1"}, {"10.1.0.2", "veth2"}, {"10.1.0.4", "veth3"}};
  EXPECT_THAT(add_past("c1"), ElementsAre("10.1.0.3"));
  EXPECT_THAT(taken(), ElementsAre("10.1.0.3"));
  EXPECT_THAT(warnings, ElementsAre(AllOf(HasSubstr("10.1.0.1 (device veth1) and 1 more"), HasSubstr("as free"))));
  EXPECT_THAT(add_past("c2"), ElementsAre("10.1.0.5"));
  // Once nobody lives with it, it is given.
  routes.clear();
  EXPECT_THAT(add_past("c3"), ElementsAre("10.1.0.1"));
}

TEST_F(LivingTest, OfTwoFamiliesTheOtherStays) {
  count = {1, 1};
  routes = {{"fd00::1", "veth1"}};
  EXPECT_THAT(add_past("c1"), ElementsAre("10.1.0.1", "fd00::2"));
  EXPECT_THAT(taken(), ElementsAre("10.1.0.1", "fd00::2"));
}

TEST_F(LivingTest, AFixedAddressThatLivesIsRefused) {
  wanted = {ip("10.1.0.8")};
  routes = {{"10.1.0.8", "cali1"}};
  const core::AssignAnswer answer = answer_of("c1");
  const auto& refusal = std::get<core::Refusal>(answer);
  EXPECT_EQ(refusal.code, ErrorCode::unavailable);
  EXPECT_THAT(refusal.summary,
              AllOf(HasSubstr("requested address 10.1.0.8"), HasSubstr("device cali1"),
                    HasSubstr("somebody on this node lives with"), HasSubstr("restore-kubernetes-api.md")));
  EXPECT_THAT(taken(), IsEmpty());
}

TEST_F(LivingTest, WhereNoOtherAddressIsLeftTheRefusalSaysWhatLives) {
  for (int i = 1; i <= 3; ++i) routes["10.1.0." + std::to_string(i)] = "veth1";
  for (int i = 4; i <= 30; ++i) ASSERT_EQ(add_past("c" + std::to_string(i)).size(), 1U);
  const std::vector<std::string> refused = add_past("c1");
  EXPECT_THAT(refused, ElementsAre(AllOf(HasSubstr("every usable pool is full"),
                                         HasSubstr("lives with 10.1.0.1 (device veth1) and 2 more, which"))));
  // Nothing of two families stays when one is refused.
  count = {1, 1};
  const std::size_t before = taken().size();
  EXPECT_EQ(add_past("c2").size(), 1U);
  EXPECT_EQ(taken().size(), before);
}

TEST_F(LivingTest, WithoutAKernelToAskItGoesOnAndSaysSoOnce) {
  count = {1, 1};
  deaf = Error{ErrorCode::permission_denied, "no netlink here", {}};
  EXPECT_THAT(add_past("c1"), ElementsAre("10.1.0.1", "fd00::1"));
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("no netlink here")));
  EXPECT_EQ(questions, 1);
  living.device_of = nullptr;
  EXPECT_THAT(add_past("c2"), ElementsAre("10.1.0.2", "fd00::2"));
}

/// The block stays one with room: an address that lived is given as soon as nobody lives with it.
TEST_F(LivingTest, TheHintOfRoomCountsAddressesThatLive) {
  for (int i = 1; i <= 2; ++i) routes["10.1.0." + std::to_string(i)] = "veth1";
  for (int i = 3; i <= 30; ++i) ASSERT_EQ(add_past("c" + std::to_string(i)).size(), 1U);
  routes.clear();
  EXPECT_THAT(add_past("c1"), ElementsAre("10.1.0.1"));
}

TEST_F(LivingTest, ABatchPassesThemOverToo) {
  routes = {{"10.1.0.1", "veth1"}};
  const core::AssignRequest asked = wanted_by("c1");
  const std::vector<core::PoolSpec> pools;
  core::Assigned assigned;
  BatchedCall call = assign_in_batch(asked, pools, {}, assigned, &living);
  commit_together(context, store, {&call, 1});
  ASSERT_EQ(call.fate, BatchFate::done);
  EXPECT_EQ(assigned.addresses.front().address, ip("10.1.0.2"));
  // What is refused goes alone.
  wanted = {ip("10.1.0.1")};
  const core::AssignRequest fixed = wanted_by("c2");
  BatchedCall refused = assign_in_batch(fixed, pools, {}, assigned, &living);
  commit_together(context, store, {&refused, 1});
  EXPECT_EQ(refused.fate, BatchFate::alone);
  EXPECT_THAT(taken(), ElementsAre("10.1.0.2"));
}

}  // namespace
}  // namespace croft::engine
