#include "register/handle_blocks.h"

namespace croft::core {

HandleBlocks blocks_of(const Handle& handle) {
  HandleBlocks named;
  named.blocks.reserve(handle.blocks.size());
  for (const auto& [text, count] : handle.blocks) {
    const auto cidr = net::Prefix::parse(text);
    if (cidr) {
      named.blocks.push_back({*cidr, count, text});
    } else if (!named.damage) {
      named.damage = Error{ErrorCode::corrupt, "handle " + handle.id + ": " + cidr.error().message, {}};
    }
  }
  return named;
}

}  // namespace croft::core
