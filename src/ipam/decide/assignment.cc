#include "ipam/decide/assignment.h"

#include "base/time_text.h"
#include "ipam/decide/claim.h"

namespace croft::core {

using net::Address;
using net::Prefix;

Labels Assignment::node_labels() {
  const Node* node = reader.sound(node_key(request.node.name));
  return node != nullptr && request.node.type == AffinityOwner::Type::host ? node->labels : Labels();
}

Flow<Block> Assignment::make_block(const Prefix& cidr) {
  static_cast<void>(reader.get(high_water_mark_key(cidr)));
  TRY_VOID(reader.ready());
  return new_block(cidr, request.node, draft.now(), number_before(reader, cidr));
}

void Assignment::accept(Taken taken, const Pool* claimed_in) {
  answer.addresses.push_back(described(taken.block, taken.address, false));
  if (claimed_in != nullptr) {
    draft.put_claimed(std::move(taken.block), *claimed_in, {handle_id});
  } else {
    draft.put(std::move(taken.block), {handle_id});
  }
  fresh = true;
}

AssignedAddress Assignment::described(const Block& block, const Address& address, bool held_before) const {
  const Pool* pool = pools.containing(address);
  AssignedAddress result;
  result.address = address;
  result.pool = pool != nullptr ? pool->name : "";
  result.pool_cidr = pool != nullptr ? pool->cidr : block.cidr;
  result.gateway = pool != nullptr ? pool->gateway : std::nullopt;
  result.block = block.cidr;
  result.sequence_number = sequence_of(block, *net::ordinal_of(block.cidr, address));
  result.held_before = held_before;
  result.borrowed = block.affinity != request.node;
  return result;
}

Attribute Assignment::attribute() const {
  Attribute result;
  result.handle_id = handle_id;
  result.secondary[kNodeKey] = request.node.name;
  result.secondary[kTimestampKey] = go_utc_text(draft.now().wall);
  result.secondary[kInterfaceKey] = request.owner.interface_name;
  if (!request.pod.name.empty()) result.secondary[kPodKey] = request.pod.name;
  if (!request.pod.namespace_name.empty()) result.secondary[kNamespaceKey] = request.pod.namespace_name;
  if (!request.pod.uid.empty()) result.secondary[kPodUidKey] = request.pod.uid;
  if (request.owner.network.find('.') != std::string::npos) result.secondary[kNetworkKey] = request.owner.network;
  return result;
}

std::vector<PlannedWrite> Assignment::marks() {
  Draft marked(reader, pools, draft.now());
  for (const Prefix& cidr : cooling) {
    if (marked.size() == kAssignBlocksMax) break;
    const Block* stored = reader.find(block_key(cidr));
    if (stored == nullptr || stored->deleted) continue;
    auto block = marked.block(cidr);
    if (!block || !*block) continue;
    if (with_clock_marks(*stored, draft.now()) != *stored) marked.put(*std::move(*block), {});
  }
  return marked.writes();
}

}  // namespace croft::core
