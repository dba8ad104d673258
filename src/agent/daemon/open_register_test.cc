#include "agent/daemon/open_register.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "os/random.h"
#include "store/memory/memory_store.h"
#include "store/pause.h"

namespace croft::app {
namespace {

using core::Pause;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class OpenRegister : public testing::Test {
 protected:
  Result<void> check(Pause::Phase phase) {
    const Deadline soon = Deadline::after(clock_.now(), std::chrono::seconds(5));
    const auto there = store_.pause(soon).value();
    EXPECT_TRUE(store_.change_pause(there, Pause{phase, "etcd:http://10.0.0.9:2379", WallTime{}}, soon));
    return check_is_open(context_);
  }

  ManualClock clock_;
  os::SystemRandom random_;
  store::MemoryStore store_;
  engine::Context context_{store_, clock_, random_};
};

TEST_F(OpenRegister, OneThatIsOpenIs) { EXPECT_TRUE(check_is_open(context_)); }

TEST_F(OpenRegister, OneThatWasMovedNamesWhere) {
  const auto done = check(Pause::Phase::moved);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::refused_by_configuration);
  EXPECT_THAT(done.error().message, AllOf(HasSubstr("moved to \"etcd:http://10.0.0.9:2379\""), HasSubstr("--store"),
                                          Not(HasSubstr("again"))));
}

TEST_F(OpenRegister, OneThatIsPausedForAWhileIsTriedAgain) {
  for (const auto phase : {Pause::Phase::copying, Pause::Phase::filling}) {
    const auto done = check(phase);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::unavailable) << "exit code 4: the init container tries again";
    EXPECT_THAT(done.error().message, AllOf(HasSubstr("croft store copy"), HasSubstr("run it again")));
  }
}

}  // namespace
}  // namespace croft::app
