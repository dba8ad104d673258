// The question: what does the next Service address cost, in an empty range and in one that is all but full? Prints a
// line of JSON a row; bench/peers/kubernetes does the same work with Kubernetes' own allocator and prints the same
// rows, and bench/service_range.py puts them side by side.
//
// A range is filled by its own take_next() to the level of the row and kept there: only take_next() is timed, 64 calls
// at a time, and what they took is given back outside the time. So few are free in a small full range that the 64 calls
// go to several ranges of the same level.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "base/clock.h"
#include "os/clock.h"
#include "services/decide/service_bitmap.h"

namespace {

using croft::SeededRandom;
using croft::core::space::DenseBitmap;
using croft::core::space::Ordinal;
using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

constexpr std::uint32_t kCallsATime = 64;
constexpr std::size_t kRoundsMin = 32;
constexpr auto kTimed = std::chrono::milliseconds(300);

struct Shape {
  const char* name;
  std::uint32_t size;
  std::uint32_t band;
};
constexpr Shape kShapes[] = {{"/12", 1048574, 256}, {"/16", 65534, 256}, {"/24", 254, 16}, {"v6 /112", 65535, 256}};
constexpr std::uint32_t kPerMille[] = {0, 500, 900, 999};

void print(const std::string& row, double ns) { fmt::print("{{\"row\": \"{}\", \"ns\": {:.2f}}}\n", row, ns); }

/// Repeats `timed`, with `untimed` after each, until both the time and the rounds are enough; the mean of one in ns,
/// without the slowest twentieth, in which the machine did something else.
double mean_ns(const std::function<void()>& timed, const std::function<void()>& untimed) {
  std::vector<std::int64_t> rounds;
  for (nanoseconds sum{0}; rounds.size() < kRoundsMin || sum < kTimed;) {
    const auto start = Clock::now();
    timed();
    const nanoseconds took = Clock::now() - start;
    untimed();
    rounds.push_back(took.count());
    sum += took;
  }
  std::sort(rounds.begin(), rounds.end());
  rounds.resize(rounds.size() - rounds.size() / 20);
  return static_cast<double>(std::accumulate(rounds.begin(), rounds.end(), std::int64_t{0})) /
         static_cast<double>(rounds.size());
}

/// A range, and what a process that shares it among threads puts around it: the reference has its lock inside.
struct Guarded {
  DenseBitmap range;
  std::uint32_t band;
  SeededRandom random;
  std::mutex mutex;

  Guarded(const Shape& shape, std::uint64_t seed) : range(shape.size), band(shape.band), random(seed) {}

  std::optional<Ordinal> take_next() { return croft::core::service::take_next(range, band, random); }
  std::optional<Ordinal> take_next_locked(croft::Random& source) {
    const std::lock_guard lock(mutex);
    return croft::core::service::take_next(range, band, source);
  }
  std::optional<Ordinal> take_next_locked() { return take_next_locked(random); }
};

void fill(Guarded& guarded, std::uint32_t count) {
  while (guarded.range.size() - guarded.range.free_count() < count) static_cast<void>(guarded.take_next());
}

void take_next_at(const Shape& shape, std::uint32_t per_mille) {
  const auto wanted = static_cast<std::uint32_t>(std::uint64_t{shape.size} * per_mille / 1000);
  const std::uint32_t level = std::min(wanted, shape.size - 1);
  const std::uint32_t calls_a_range = std::clamp<std::uint32_t>((shape.size - level) / 16, 1, kCallsATime);
  const std::uint32_t count = kCallsATime / calls_a_range;
  std::vector<std::unique_ptr<Guarded>> ranges;
  for (std::uint32_t i = 0; i < count; ++i) {
    ranges.push_back(std::make_unique<Guarded>(shape, i));
    fill(*ranges.back(), level);
  }
  std::vector<std::uint32_t> taken(std::size_t{count} * calls_a_range);
  const auto take = [&](auto&& next) {
    std::size_t at = 0;
    for (const auto& guarded : ranges) {
      for (std::uint32_t i = 0; i < calls_a_range; ++i) taken[at++] = next(*guarded)->value;
    }
  };
  const auto give_back = [&] {
    for (std::size_t i = 0; i < taken.size(); ++i) ranges[i / calls_a_range]->range.give_back(Ordinal{taken[i]});
  };
  const auto calls = static_cast<double>(taken.size());
  const std::string row = fmt::format("next {} at {}.{} %", shape.name, per_mille / 10, per_mille % 10);
  const auto bare = [](Guarded& guarded) { return guarded.take_next(); };
  const auto locked = [](Guarded& guarded) { return guarded.take_next_locked(); };
  croft::os::SystemRandom system;
  const auto drawn_from_system = [&system](Guarded& guarded) { return guarded.take_next_locked(system); };
  print(row, mean_ns([&] { take(locked); }, give_back) / calls);
  print(row + ", system", mean_ns([&] { take(drawn_from_system); }, give_back) / calls);
  print(row + ", no lock", mean_ns([&] { take(bare); }, give_back) / calls);
}

void whole_fill(const Shape& shape) {
  auto guarded = std::make_unique<Guarded>(shape, 0);
  const auto run = [&] {
    while (guarded->take_next_locked()) {
    }
  };
  const auto renew = [&] { guarded = std::make_unique<Guarded>(shape, 0); };
  print(fmt::format("whole fill {}", shape.name), mean_ns(run, renew) / shape.size);
}

void encode_and_decode(const Shape& shape) {
  Guarded guarded(shape, 0);
  fill(guarded, shape.size);
  const auto run = [&] {
    if (croft::core::service::read_bytes(croft::core::service::bytes_of(guarded.range), guarded.range) != 0U)
      fmt::print(stderr, "the snapshot was not its own\n");
  };
  print(fmt::format("encode and decode a full {}", shape.name), mean_ns(run, [] {}));
}

/// FNV-1a of the bytes of a range in which the squares are taken: both programs must have the same bytes.
void bytes_of(const Shape& shape) {
  DenseBitmap range(shape.size);
  for (std::uint64_t i = 0; i < 1000; ++i) range.take(Ordinal{static_cast<std::uint32_t>(i * i % shape.size)});
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char byte : croft::core::service::bytes_of(range)) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
  }
  fmt::print("{{\"row\": \"bytes {}\", \"fnv\": \"{:016x}\"}}\n", shape.name, hash);
}

}  // namespace

int main() {
  for (const Shape& shape : kShapes) bytes_of(shape);
  for (const Shape& shape : kShapes) {
    for (const std::uint32_t per_mille : kPerMille) take_next_at(shape, per_mille);
  }
  for (const Shape& shape : kShapes) whole_fill(shape);
  encode_and_decode(kShapes[0]);
}
