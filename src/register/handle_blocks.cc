#include "register/handle_blocks.h"

#include "base/assert.h"

namespace croft::core {

std::vector<HandleBlock> blocks_of(const Handle& handle) {
  std::vector<HandleBlock> blocks;
  blocks.reserve(handle.blocks.size());
  for (const auto& [name, count] : handle.blocks) {
    const auto cidr = net::Prefix::parse(name);
    CROFT_ASSERT(cidr.has_value());
    blocks.push_back({*cidr, count, name});
  }
  return blocks;
}

Result<void> check_block_names(const Handle& handle) {
  for (const auto& [name, count] : handle.blocks) {
    if (const auto cidr = net::Prefix::parse(name); !cidr) {
      return fail(ErrorCode::corrupt, "handle " + handle.id + ": " + cidr.error().message);
    }
  }
  return {};
}

}  // namespace croft::core
