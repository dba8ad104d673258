#include "commit_sample.h"

#include <fmt/format.h>

#include "base/time_text.h"
#include "register/block.h"

namespace croft::bench {
namespace {

const core::AffinityOwner kSampleNode{core::AffinityOwner::Type::host, "bench"};

}  // namespace

core::Attribute holder(const std::string& container, const Instant& now) {
  core::Attribute attribute;
  attribute.handle_id = "net." + container;
  attribute.secondary = {
      {core::kNodeKey, kSampleNode.name}, {core::kInterfaceKey, "eth0"}, {core::kTimestampKey, go_utc_text(now.wall)}};
  return attribute;
}

std::vector<store::Write> commit_sample(const Instant& now, const std::string& container) {
  core::Block block =
      core::new_block(net::Prefix::containing(net::Address::v4(0x0b000000), 26), kSampleNode, now, std::nullopt);
  for (int i = 0; i < 32; ++i) {
    block = core::take_next(block, holder(fmt::format("{:064x}", i), now), [](const net::Address&) {
              return false;
            })->block;
  }
  const std::string id = "commit." + container;
  return {{core::block_key(block.cidr), block, store::Condition::always(), false},
          {core::handle_key(id), core::Handle{id, {{block.cidr.to_string(), 1}}, false}, store::Condition::always(),
           false}};
}

}  // namespace croft::bench
