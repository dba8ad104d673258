#include "app/croft/json_output.h"

#include <utility>

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

/// A key of YAML: in quotes unless it is a plain word that YAML takes for nothing else.
std::string yaml_key(const std::string& key) {
  const bool plain = key.size() > 3 && key != "true" && key != "false" && key != "null" &&
                     key.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == key.npos;
  return plain ? key : Json(key).dump();
}

/// JSON's scalars, and its empty arrays and objects, are YAML as they are.
void write_yaml(const Json& value, const std::string& indent, std::string& out) {
  const bool nested = value.is_structured() && !value.empty();
  if (!nested) {
    out += value.dump() + "\n";
  } else if (value.is_array()) {
    bool first = true;
    for (const Json& element : value) {
      if (!std::exchange(first, false)) out += indent;
      out += "- ";
      write_yaml(element, indent + "  ", out);
    }
  } else {
    bool first = true;
    for (const auto& [key, member] : value.items()) {
      if (!std::exchange(first, false)) out += indent;
      out += yaml_key(key) + ":";
      if (member.is_structured() && !member.empty()) {
        out += "\n" + indent + "  ";
        write_yaml(member, indent + "  ", out);
      } else {
        out += " ";
        write_yaml(member, indent, out);
      }
    }
  }
}

}  // namespace

std::string yaml_of(const std::string& json_text) {
  std::string text;
  write_yaml(Json::parse(json_text, nullptr, false), "", text);
  return text;
}

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
