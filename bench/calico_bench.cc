// Questions: what does it cost to read and to write Calico's record of a full block, and that of an empty one? A claim
// reads and writes one of them in each commit.

#include <cstdint>
#include <string>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "base/assert.h"
#include "calico/etcd_records.h"

namespace {

using namespace croft;
using wire::calico::encode_value;

const net::Prefix kCidr = net::Prefix::parse("10.0.0.64/26").value();
const core::Key kKey = core::block_key(kCidr);

/// A /26 of node-17 with `held` pods of typical names and container IDs of 64 digits.
core::Value block_with(std::uint32_t held) {
  core::Block block = core::new_block(kCidr, core::AffinityOwner{core::AffinityOwner::Type::host, "worker-17.example"},
                                      {WallTime(std::chrono::seconds(1768471200)), std::chrono::seconds(5), {}}, {});
  for (std::uint32_t i = 0; i < held; ++i) {
    core::Attribute attribute;
    attribute.handle_id = fmt::format("k8s-pod-network.{:064x}", 0x9E3779B97F4A7C15U * (i + 1));
    attribute.secondary = {{"namespace", "shop-production"},
                           {"node", "worker-17.example"},
                           {"pod", fmt::format("checkout-service-7d9c6b5f4-{:05x}", 7919 * i)},
                           {"timestamp", "2026-01-15 10:00:01.503121873 +0000 UTC"}};
    auto taken = core::take_next(block, attribute, [](const net::Address&) { return false; });
    CROFT_ASSERT(taken);
    block = core::with_next_sequence_number(std::move(taken->block));
  }
  return block;
}

void decode_block(benchmark::State& state) {
  const std::string bytes = encode_value(block_with(static_cast<std::uint32_t>(state.range(0))), {});
  for (auto _ : state) benchmark::DoNotOptimize(wire::calico::decode_value(kKey, bytes));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes.size()));
  state.counters["record"] = static_cast<double>(bytes.size());
}
BENCHMARK(decode_block)->ArgName("held")->Arg(0)->Arg(64)->Unit(benchmark::kMicrosecond);

/// With a blank in front, which the short way (calico/json.h) leaves to the general one.
void decode_block_the_general_way(benchmark::State& state) {
  const std::string bytes = " " + encode_value(block_with(static_cast<std::uint32_t>(state.range(0))), {});
  for (auto _ : state) benchmark::DoNotOptimize(wire::calico::decode_value(kKey, bytes));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes.size()));
}
BENCHMARK(decode_block_the_general_way)->ArgName("held")->Arg(0)->Arg(64)->Unit(benchmark::kMicrosecond);

void encode_block(benchmark::State& state) {
  const core::Value block = block_with(static_cast<std::uint32_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(encode_value(block, {}));
}
BENCHMARK(encode_block)->ArgName("held")->Arg(0)->Arg(64)->Unit(benchmark::kMicrosecond);

}  // namespace
