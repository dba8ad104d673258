#include "agent/daemon/open_register.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "os/random.h"
#include "store/memory/memory_store.h"
#include "store/seal.h"

namespace croft::app {
namespace {

using core::Seal;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class OpenRegister : public testing::Test {
 protected:
  Result<void> check(Seal::End end, Seal::Phase phase) {
    const Deadline soon = Deadline::after(clock_.now(), std::chrono::seconds(5));
    const auto there = store_.seal(soon).value();
    EXPECT_TRUE(store_.put_seal(
        there, {end, phase, std::string(32, 'a'), "etcd:http://10.0.0.9:2379", WallTime{}, false}, soon));
    return check_is_open(context_);
  }

  ManualClock clock_;
  os::SystemRandom random_;
  store::MemoryStore store_;
  engine::Context context_{store_, clock_, random_};
};

TEST_F(OpenRegister, OneThatIsOpenIs) { EXPECT_TRUE(check_is_open(context_)); }

TEST_F(OpenRegister, OneThatWasMovedNamesWhere) {
  const auto done = check(Seal::End::source, Seal::Phase::moved);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::refused_by_configuration);
  EXPECT_THAT(done.error().message, AllOf(HasSubstr("moved to \"etcd:http://10.0.0.9:2379\""), HasSubstr("--store"),
                                          Not(HasSubstr("again"))));
}

TEST_F(OpenRegister, OneThatIsClosedForAWhileIsTriedAgain) {
  for (const auto& [end, phase] : {std::pair{Seal::End::source, Seal::Phase::copying},
                                   {Seal::End::target, Seal::Phase::preparing},
                                   {Seal::End::target, Seal::Phase::copying}}) {
    const auto done = check(end, phase);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::unavailable) << "exit code 4: the init container tries again";
    EXPECT_THAT(done.error().message, AllOf(HasSubstr("croft migrate status"), HasSubstr("run it again")));
  }
}

TEST_F(OpenRegister, OneWhoseMoveWasGivenUpIsForAMoveAlone) {
  const auto done = check(Seal::End::target, Seal::Phase::given_up);
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, AllOf(HasSubstr("croft migrate store"), Not(HasSubstr("again then"))));
}

}  // namespace
}  // namespace croft::app
