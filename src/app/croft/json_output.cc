#include "app/croft/json_output.h"

#include <nlohmann/json.hpp>

#include "wire/records.h"

namespace croft::app {
namespace {

using Json = nlohmann::ordered_json;

Json usage_json(const engine::Usage& usage) {
  return {{"size", usage.size},
          {"held", usage.held},
          {"cooling", usage.cooling},
          {"reserved", usage.reserved},
          {"free", usage.free()}};
}

/// A record with the member names of the formats, without the version of the stored form.
Json record_json(const core::Value& value) {
  Json json = Json::parse(wire::encode_record(value), nullptr, false);
  json.erase("v");
  return json;
}

std::string array_of(const std::vector<Json>& objects) { return Json(objects).dump(2) + "\n"; }

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

}  // namespace

std::string json_of(const std::vector<engine::PoolView>& pools) {
  std::vector<Json> objects;
  for (const engine::PoolView& pool : pools) {
    Json json = record_json(pool.pool);
    json["blocks"] = pool.blocks.size();
    json["usage"] = usage_json(pool.usage);
    objects.push_back(std::move(json));
  }
  return array_of(objects);
}

std::string json_of(const std::vector<engine::BlockView>& blocks) {
  std::vector<Json> objects;
  for (const engine::BlockView& block : blocks) {
    Json json = record_json(block.block);
    json["pool"] = text_or_null(block.pool);
    json["usage"] = usage_json(block.usage);
    objects.push_back(std::move(json));
  }
  return array_of(objects);
}

std::string json_of(const std::vector<engine::AddressView>& addresses) {
  std::vector<Json> objects;
  for (const engine::AddressView& a : addresses) {
    objects.push_back({{"address", a.address.to_string()},
                       {"state", core::name_of(a.state)},
                       {"pool", text_or_null(a.pool)},
                       {"block", a.block ? Json(a.block->to_string()) : Json()},
                       {"network", text_or_null(a.owner ? a.owner->network : "")},
                       {"containerId", text_or_null(a.owner ? a.owner->container_id : "")},
                       {"ifname", text_or_null(a.owner ? a.owner->interface_name : "")},
                       {"node", text_or_null(a.node)},
                       {"pod", text_or_null(a.pod)},
                       {"namespace", text_or_null(a.namespace_name)},
                       {"since", text_or_null(a.since)},
                       {"until", text_or_null(a.until)},
                       {"handle", text_or_null(a.handle_id)},
                       {"sequenceNumber", a.sequence_number.value}});
  }
  return array_of(objects);
}

std::string json_of(const std::vector<engine::Finding>& findings) {
  std::vector<Json> objects;
  for (const engine::Finding& finding : findings) {
    objects.push_back({{"finding", engine::name_of(finding.kind)},
                       {"subject", finding.subject},
                       {"evidence", finding.what},
                       {"remedy", finding.remedy}});
  }
  return array_of(objects);
}

}  // namespace croft::app
