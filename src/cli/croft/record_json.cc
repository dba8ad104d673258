#include "cli/croft/record_json.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "base/hex.h"
#include "base/time_text.h"
#include "cli/croft/json_text.h"
#include "register/format/records.h"

namespace croft::app {
namespace {

using Json = nlohmann::ordered_json;

Json texts_json(const std::map<std::string, std::string>& texts) {
  Json json = Json::object();
  for (const auto& [name, text] : texts) json[name] = text;
  return json;
}

void add_cooling(Json& json, const core::Cooling& cooling) {
  json["releasedAt"] = rfc3339_exact(cooling.released_at.wall);
  json["sinceBootNanoseconds"] = cooling.released_at.since_boot.count();
  json["bootID"] = hex_of(cooling.released_at.boot.bytes);
  json["previousHandle"] = cooling.previous_handle;
  json["previousSecondary"] = texts_json(wire::previous_secondary_of(cooling));
}

Json attribute_json(const core::Attribute& attribute) {
  Json json;
  json["handle_id"] = attribute.handle_id ? Json(*attribute.handle_id) : Json();
  if (!attribute.secondary.empty()) json["secondary"] = texts_json(attribute.secondary.get());
  if (!attribute.alternate_owner.empty()) json["alternateOwnerAttrs"] = texts_json(attribute.alternate_owner.get());
  if (attribute.cooling) add_cooling(json, *attribute.cooling);
  return json;
}

}  // namespace

Json record_json(const core::Pool& pool) {
  Json uses = Json::array();
  for (const core::PoolUse use : pool.allowed_uses) uses.push_back(wire::text_of(use));
  Json json = {{"name", pool.name},
               {"cidr", pool.cidr.to_string()},
               {"blockSize", pool.block_length},
               {"disabled", pool.disabled},
               {"allocatable", pool.unallocatable.empty()},
               {"nodeSelector", pool.node_selector},
               {"namespaceSelector", pool.namespace_selector},
               {"allowedUses", std::move(uses)},
               {"assignmentMode", wire::text_of(pool.assignment_mode)},
               {"ipipMode", wire::text_of(pool.ipip_mode)},
               {"vxlanMode", wire::text_of(pool.vxlan_mode)},
               {"natOutgoing", pool.nat_outgoing},
               {"disableBGPExport", pool.disable_bgp_export}};
  if (pool.gateway) json["gateway"] = pool.gateway->to_string();
  json["cooldownSeconds"] = pool.cooldown.count();
  if (pool.priority != 0) json["priority"] = pool.priority;
  return json;
}

Json record_json(const core::Block& block) {
  Json json;
  json["cidr"] = block.cidr.to_string();
  if (block.affinity) json["affinity"] = core::to_string(*block.affinity);
  if (block.affinity_claim_time) json["affinityClaimTime"] = rfc3339_exact(*block.affinity_claim_time);
  json["allocations"] = Json::array();
  for (const auto& index : block.allocations) json["allocations"].push_back(index ? Json(*index) : Json());
  json["unallocated"] = Json::array();
  for (const std::uint32_t ordinal : block.unallocated.order()) json["unallocated"].push_back(ordinal);
  json["attributes"] = Json::array();
  for (const core::Attribute& attribute : block.attributes) json["attributes"].push_back(attribute_json(attribute));
  json["sequenceNumber"] = number_64_json(block.sequence_number.value);
  json["sequenceNumberForAllocation"] = Json::object();
  for (const auto& [ordinal, number] : block.sequence_number_for_allocation) {
    json["sequenceNumberForAllocation"][std::to_string(ordinal)] = number_64_json(number.value);
  }
  json["deleted"] = block.deleted;
  return json;
}

}  // namespace croft::app
