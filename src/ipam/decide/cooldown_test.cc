#include <array>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/clock.h"
#include "ipam/decide/assign.h"
#include "register/block.h"
#include "register/pool.h"

namespace croft::core {
namespace {

using net::Ordinal;
using namespace std::chrono_literals;
using std::chrono::nanoseconds;

const net::Prefix kBlockCidr = net::Prefix::parse("10.10.0.16/30").value();
const Owner kOwner{"net", "a", "eth0"};

/// A block of which one address was released at `now`.
Block cooling_block(const Cooldowns& cooldowns, const Instant& now) {
  Block block = new_block(kBlockCidr, {}, now, {});
  Attribute attribute;
  attribute.handle_id = handle_of(kOwner);
  block = take_next(std::move(block), attribute, [](const net::Address&) { return false; })->block;
  return release(block, held_by(block, kOwner), cooldowns, now);
}
bool is_cooling(const Block& block) { return state_of(block, Ordinal(0)) == AddressState::cooling; }
const Cooling& cooling_of(const Block& block) { return *attribute_of(block, Ordinal(0))->cooling; }
/// What a machine makes of the block when it writes it.
Block written(Block block, const Cooldowns& cooldowns, const Instant& now) {
  return with_clock_marks(with_cooled_freed(std::move(block), cooldowns, now), now);
}

/// A pool's cooldown may be another one later, or of another pool over the same addresses: the longer counts.
TEST(Cooldown, TheOneThatHeldAtTheReleaseCountsToo) {
  ManualClock clock;
  const Block block = cooling_block(Cooldowns(600s), clock.now());
  EXPECT_EQ(cooling_of(block).cooldown, 600s);
  clock.advance(599s);
  EXPECT_TRUE(is_cooling(with_cooled_freed(block, Cooldowns(0s), clock.now())));
  EXPECT_TRUE(is_cooling(with_cooled_freed(block, Cooldowns(900s), clock.now())));
  clock.advance(1s);
  EXPECT_FALSE(is_cooling(with_cooled_freed(block, Cooldowns(30s), clock.now())));
  EXPECT_TRUE(is_cooling(with_cooled_freed(block, Cooldowns(900s), clock.now())));
  EXPECT_EQ(cooling_of(cooling_block(Cooldowns(kUnknownCooldown), clock.now())).cooldown, kCooldownMax)
      << "of a damaged pool nobody knows";
  EXPECT_EQ(cooling_of(cooling_block(Cooldowns(30s, 60s), clock.now())).cooldown, 0s) << "in Calico's way";
}

/// What ipam/scenarios/testdata/cooldown does not say.
TEST(Cooldown, IsHonestUnderClockJumps) {
  using Between = void (*)(ManualClock&);
  const std::tuple<const char*, Between, bool> rows[] = {
      {"29 s", [](ManualClock& c) { c.advance(29s); }, false},
      {"30 s", [](ManualClock& c) { c.advance(30s); }, true},
      {"wall set a year ahead", [](ManualClock& c) { c.jump_wall(8760h); }, false},
      {"reboot, an hour and 30 s", [](ManualClock& c) { c.reboot(1h), c.advance(30s); }, true},
      {"reboot after two hours, at once", [](ManualClock& c) { c.reboot(2h); }, false},
      {"reboot into the past", [](ManualClock& c) { c.jump_wall(-87600h), c.reboot(), c.advance(2h); }, false},
  };
  for (const auto& [what, between, ended] : rows) {
    ManualClock clock;
    Cooling cooling;
    cooling.released_at = clock.now();
    between(clock);
    EXPECT_EQ(cooldown_ended(cooling, 30s, clock.now()), ended) << what;
    EXPECT_EQ(cooldown_end(cooling, 30s, clock.now()) <= clock.now().wall, ended) << what;
  }
}

TEST(Cooldown, CalicosWayIsByTheWallClocksAndNeedsThisBootsToo) {
  ManualClock clock;
  Cooling foreign;
  foreign.in_calicos_way = true;
  foreign.released_at.wall = clock.now().wall;  // no boot known
  EXPECT_FALSE(cooldown_ended(foreign, 30s, clock.now()));
  clock.advance(30s);
  EXPECT_TRUE(cooldown_ended(foreign, 30s, clock.now()));
  clock.reboot();
  EXPECT_FALSE(cooldown_ended(foreign, 30s, clock.now()));
}

/// The configuration may be taken back, or written anew without it by an older program.
TEST(Cooldown, APoolsCountsInCalicosWayToo) {
  Cooling cooling;
  cooling.in_calicos_way = true;
  EXPECT_EQ(Cooldowns(600s, 900s).of(cooling), 901s);
  EXPECT_EQ(Cooldowns(600s, 0s).of(cooling), 601s);
  EXPECT_EQ(Cooldowns(600s, 30s).of(cooling), 601s);
  EXPECT_EQ(Cooldowns(0s, 30s).of(cooling), 31s);
  EXPECT_EQ(Cooldowns(0s, 0s).of(cooling), 0s) << "nobody asks for one";
}

TEST(Cooldown, AMarkIsOneABootAndCountsFromTheFirst) {
  ManualClock here, there;
  there.reboot();
  Block block = cooling_block(30s, here.now());
  EXPECT_EQ(with_clock_marks(block, here.now()), block) << "its own boot needs none";
  there.advance(10s);
  block = with_clock_marks(std::move(block), there.now());
  ASSERT_EQ(cooling_of(block).seen.size(), 1U);
  const Block again = with_clock_marks(block, (there.advance(10s), there.now()));
  EXPECT_EQ(again, block);
  EXPECT_EQ(first_cooldown_end(block, 30s, there.now()), there.now().wall + 20s);
  for (int boots = 0; boots < 100; ++boots) block = with_clock_marks(std::move(block), (there.reboot(), there.now()));
  EXPECT_EQ(cooling_of(block).seen.size(), kClockMarksMax);
  EXPECT_TRUE(std::is_sorted(cooling_of(block).seen.begin(), cooling_of(block).seen.end()));
}

/// Numbers of a damaged record, or of another's: no overflow, no early end.
TEST(Cooldown, NumbersAtTheEndsOfTheirTypeEndNothing) {
  const ManualClock clock;
  for (const nanoseconds since : {nanoseconds::min(), nanoseconds(-1), nanoseconds::max()}) {
    for (const WallTime wall : {WallTime::max(), clock.now().wall}) {
      Cooling cooling;
      cooling.released_at = clock.now();
      cooling.released_at.wall = wall;
      cooling.released_at.since_boot = since;
      cooling.seen = {{clock.now().boot, since}};
      EXPECT_FALSE(cooldown_ended(cooling, 30s, clock.now()));
    }
  }
  Cooling of_old;
  of_old.released_at.wall = WallTime::min();
  EXPECT_TRUE(cooldown_ended(of_old, 30s, clock.now()));
}

/// True time, and machines whose wall clocks differ from it by up to half an hour, so from each other's by up to one.
class Machines {
 public:
  static constexpr std::size_t kCount = 4;

  void pass(nanoseconds span) {
    truth_ += span;
    for (ManualClock& clock : clocks_) clock.advance(span);
  }
  void reboot(std::size_t i) {
    clocks_[i].reboot();
    boot_[i] = ++boots_;
  }
  void set(std::size_t i, nanoseconds off) {
    clocks_[i].jump_wall(off - off_[i]);
    off_[i] = off;
  }
  [[nodiscard]] Instant now(std::size_t i) const {
    Instant now = clocks_[i].now();
    now.boot = BootId{};
    now.boot.bytes = {static_cast<std::uint8_t>(1 + i), static_cast<std::uint8_t>(boot_[i] >> 8),
                      static_cast<std::uint8_t>(boot_[i])};
    return now;
  }
  [[nodiscard]] nanoseconds truth() const { return truth_; }

 private:
  nanoseconds truth_{};
  std::array<ManualClock, kCount> clocks_;
  std::array<nanoseconds, kCount> off_{};
  std::array<unsigned, kCount> boot_{};
  unsigned boots_ = 0;
};

RC_GTEST_PROP(CooldownProperty, NoSkewUpToAnHourAndNoRebootShortensOne, ()) {
  const std::chrono::seconds cooldown = *rc::gen::element(1s, 30s, 600s, 1200s);
  Machines machines;
  for (std::size_t i = 0; i < Machines::kCount; ++i)
    machines.set(i, std::chrono::seconds(*rc::gen::inRange(-1800, 1801)));
  machines.pass(std::chrono::seconds(*rc::gen::inRange(0, 7200)));
  const auto machine = [] { return *rc::gen::inRange<std::size_t>(0, Machines::kCount); };
  Block block = cooling_block(cooldown, machines.now(machine()));
  const nanoseconds released = machines.truth();
  const int steps = *rc::gen::inRange(0, 40);
  for (int step = 0; step < steps && is_cooling(block); ++step) {
    const std::size_t i = machine();
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        machines.pass(std::chrono::milliseconds(*rc::gen::inRange(0, 400'000)));
        break;
      case 1:
        machines.reboot(i);
        break;
      case 2:
        machines.set(i, std::chrono::seconds(*rc::gen::inRange(-1800, 1801)));
        break;
      default:
        block = written(std::move(block), cooldown, machines.now(i));
        RC_ASSERT(check_block(block).has_value());
    }
    if (!is_cooling(block)) RC_ASSERT(machines.truth() - released >= cooldown);
  }
  if (!is_cooling(block)) return;
  // And it ends: for who has written it within a cooldown, for all within that and two hours.
  const std::size_t i = machine();
  const Block marked = written(block, cooldown, machines.now(i));
  const bool has_place = !is_cooling(marked) || cooling_of(marked).seen.size() < kClockMarksMax;
  machines.pass(cooldown);
  if (has_place) RC_ASSERT(!is_cooling(written(marked, cooldown, machines.now(i))));
  machines.pass(2h);
  for (std::size_t k = 0; k < Machines::kCount; ++k) RC_ASSERT(!is_cooling(written(block, cooldown, machines.now(k))));
}

}  // namespace
}  // namespace croft::core
