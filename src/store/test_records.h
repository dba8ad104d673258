#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "register/records.h"
#include "store/store.h"

namespace croft::store {

// For tests: commit() of one record.

[[nodiscard]] inline Result<Revision> create_if_absent(Store& store, const Key& key, Value value,
                                                       const WriteToken& token, Deadline deadline) {
  const Write write{key, std::move(value), Condition::if_absent(), false};
  return store.commit({&write, 1}, token, deadline);
}
[[nodiscard]] inline Result<Revision> update_if_revision(Store& store, const Key& key, Value value, Revision revision,
                                                         const WriteToken& token, Deadline deadline) {
  const Write write{key, std::move(value), Condition::if_revision(revision), false};
  return store.commit({&write, 1}, token, deadline);
}
[[nodiscard]] inline Result<Revision> delete_if_revision(Store& store, const Key& key, Revision revision,
                                                         const WriteToken& token, Deadline deadline) {
  const Write write{key, std::nullopt, Condition::if_revision(revision), false};
  return store.commit({&write, 1}, token, deadline);
}

// Records like those of a cluster at work. For tests and benchmarks only.

inline const core::AffinityOwner kSampleNode{core::AffinityOwner::Type::host, "worker-node-0001"};

[[nodiscard]] inline net::Prefix sample_cidr(std::uint32_t index) {
  const auto address = net::Address::v4(0x0a000000U + index * 64U);
  return net::Prefix::containing(address, 26);
}

[[nodiscard]] inline std::string sample_handle_id(std::uint64_t number) {
  return fmt::format("k8s-pod-network.{:016x}{:016x}{:016x}{:016x}", number, number * 3, number * 5, number * 7);
}

[[nodiscard]] inline core::Attribute sample_attribute(std::uint64_t number) {
  core::Attribute attribute;
  attribute.handle_id = sample_handle_id(number);
  attribute.secondary = {{"ifname", "eth0"},
                         {"namespace", "production"},
                         {"node", kSampleNode.name},
                         {"pod", fmt::format("checkout-service-7d9f8b6c5-{:05}", number)},
                         {"timestamp", "2026-01-15 10:00:01.5 +0000 UTC"}};
  return attribute;
}

/// A /26 block with the first `held` addresses held.
[[nodiscard]] inline core::Block sample_block(std::uint32_t index, std::uint32_t held) {
  constexpr std::uint32_t kSize = 64;
  core::Block block;
  block.cidr = sample_cidr(index);
  block.affinity = kSampleNode;
  block.sequence_number = core::SequenceNumber(1768471200000000007 + held);
  std::vector<std::uint32_t> free;
  for (std::uint32_t ordinal = 0; ordinal < kSize; ++ordinal) {
    if (ordinal >= held) {
      block.allocations.emplace_back();
      free.push_back(ordinal);
      continue;
    }
    block.allocations.emplace_back(ordinal);
    block.attributes.push_back(sample_attribute(index * kSize + ordinal));
    block.sequence_number_for_allocation[ordinal] = core::SequenceNumber(1768471200000000007 + ordinal);
  }
  block.unallocated = core::space::OrderedFreeList::from_order(kSize, free).value();
  return block;
}

[[nodiscard]] inline core::Handle sample_handle(std::uint64_t number, std::uint32_t block_index) {
  return {sample_handle_id(number), {{sample_cidr(block_index).to_string(), 1}}, false};
}

[[nodiscard]] inline core::Service sample_service() {
  core::Service service;
  service.name = {"default", "web"};
  service.uid = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";
  service.created = WallTime(std::chrono::seconds{1768471205});
  service.selector = {{"app", "web"}};
  service.cluster_ip = "10.96.0.1";
  service.cluster_ips = {service.cluster_ip};
  service.ip_families = {net::Family::v4};
  service.ports = {{"http", core::ServiceProtocol::tcp, 80, "8080", 30080, ""}};
  return service;
}

[[nodiscard]] inline core::ServiceCidrObject sample_service_cidr() {
  core::ServiceCidrObject object;
  object.name = "kubernetes";
  object.cidrs = {sample_cidr(0)};
  return object;
}

/// The writes of an ADD: the block with one more address, and the handle of its holder.
[[nodiscard]] inline std::vector<Write> sample_add(std::uint32_t block_index, std::uint32_t held, Condition of_block) {
  const std::uint64_t number = std::uint64_t{block_index} * 64 + held;
  const core::Handle handle = sample_handle(number, block_index);
  core::Block block = sample_block(block_index, held + 1);
  const Key key = core::block_key(block.cidr);
  return {{key, std::move(block), of_block}, {core::handle_key(handle.id), handle, Condition::if_absent()}};
}

using core::without_rest;

[[nodiscard]] inline WriteToken sample_token(std::uint64_t number) {
  WriteToken token;
  for (std::size_t i = 0; i < 8; ++i) token.bytes[i] = static_cast<std::uint8_t>(number >> (8 * i));
  return token;
}

}  // namespace croft::store
