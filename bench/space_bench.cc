// The questions: does handing out the next free ordinal cost the same in an empty space and in one that is all but
// full, and how does it grow with the size? Each round takes one and gives it back, so the space stays as full as it
// is said to be; a time is that of the pair.

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/space/free_ordinals.h"

namespace {

using croft::core::space::OrderedFreeList;
using croft::core::space::Ordinal;

constexpr std::uint32_t kSeed = 20260115;  // the same filling in each run

/// How many ordinals to take of `size` for a share in thousandths, always leaving one.
std::uint32_t taken_count(std::uint32_t size, std::int64_t per_mille) {
  const auto count = static_cast<std::uint32_t>(std::uint64_t{size} * static_cast<std::uint64_t>(per_mille) / 1000);
  return count < size ? count : size - 1;
}

/// `count` different ordinals, scattered (Fisher-Yates, stopped early).
std::vector<std::uint32_t> scattered(std::uint32_t size, std::uint32_t count) {
  std::vector<std::uint32_t> all(size);
  for (std::uint32_t i = 0; i < size; ++i) all[i] = i;
  std::mt19937 random(kSeed);
  for (std::uint32_t i = 0; i < count; ++i) {
    std::swap(all[i], all[std::uniform_int_distribution<std::uint32_t>(i, size - 1)(random)]);
  }
  all.resize(count);
  return all;
}

void take_and_give_back(benchmark::State& state, OrderedFreeList& space) {
  for (auto _ : state) {
    auto ordinal = space.take_next();
    benchmark::DoNotOptimize(ordinal);
    space.give_back(*ordinal);
  }
  state.counters["free"] = static_cast<double>(space.free_count());
}

OrderedFreeList list_filled(std::uint32_t size, std::int64_t per_mille) {
  OrderedFreeList list = OrderedFreeList::all_free(size);
  for (const std::uint32_t value : scattered(size, taken_count(size, per_mille))) list.take(Ordinal{value});
  return list;
}

void list_scattered(benchmark::State& state) {
  OrderedFreeList space = list_filled(static_cast<std::uint32_t>(state.range(0)), state.range(1));
  take_and_give_back(state, space);
}
BENCHMARK(list_scattered)->ArgNames({"size", "per_mille"})->ArgsProduct({{64, 4096}, {0, 500, 900, 999}});

/// An ordinal asked for by name: the list has to be searched for it.
void list_take_given(benchmark::State& state) {
  const auto size = static_cast<std::uint32_t>(state.range(0));
  OrderedFreeList space = OrderedFreeList::all_free(size);
  std::mt19937 random(kSeed);
  std::uniform_int_distribution<std::uint32_t> any(0, size - 1);
  for (auto _ : state) {
    const Ordinal ordinal{any(random)};
    space.take(ordinal);
    space.give_back(ordinal);
  }
}
BENCHMARK(list_take_given)->ArgName("size")->Arg(64)->Arg(4096);

/// What a plan pays before it changes anything: the copy.
void list_copy(benchmark::State& state) {
  const OrderedFreeList space = list_filled(static_cast<std::uint32_t>(state.range(0)), 500);
  for (auto _ : state) {
    OrderedFreeList copy = space;
    benchmark::DoNotOptimize(copy);
  }
}
BENCHMARK(list_copy)->ArgName("size")->Arg(64)->Arg(4096);

}  // namespace
