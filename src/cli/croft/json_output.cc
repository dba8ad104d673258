#include "cli/croft/json_output.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/texts.h"
#include "base/time_text.h"
#include "cli/croft/table.h"
#include "register/format/records.h"

namespace croft::app {

namespace {

using Json = nlohmann::ordered_json;

/// The bytes, at the front of `text`, of a character that JSON may have as it is, and that YAML may not or takes for
/// the end of a line. 0 when there is none.
std::size_t foreign_to_yaml(std::string_view text) {
  if (text.starts_with('\x7f')) return 1;
  if (text.size() >= 2 && text[0] == '\xc2' && static_cast<unsigned char>(text[1]) < 0xa0) return 2;
  for (const std::string_view bytes : {"\u2028", "\u2029", "\ufeff", "\ufffe", "\uffff"}) {
    if (text.starts_with(bytes)) return bytes.size();
  }
  return 0;
}

/// JSON's scalars, and its empty arrays and objects, are YAML but for a few characters in texts.
std::string yaml_scalar(const Json& value) {
  const std::string json = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string out;
  for (std::size_t at = 0; at < json.size();) {
    const std::size_t bytes = foreign_to_yaml(std::string_view(json).substr(at));
    if (bytes == 0) {
      out += json[at++];
      continue;
    }
    const std::string quoted = Json(json.substr(at, bytes)).dump(-1, ' ', true);  // "\u007f"
    out += quoted.substr(1, quoted.size() - 2);
    at += bytes;
  }
  return out;
}

/// A key of YAML: in quotes unless it is a plain word that YAML takes for nothing else.
std::string yaml_key(const std::string& key) {
  // True, FALSE, Null: of any case.
  const auto is_word = [&](std::string_view word) {
    return std::ranges::equal(key, word, [](char a, char b) { return (a | 0x20) == b; });
  };
  const bool plain = key.size() > 3 && !is_word("true") && !is_word("false") && !is_word("null") &&
                     key.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == key.npos;
  return plain ? key : yaml_scalar(key);
}

void write_yaml(const Json& value, const std::string& indent, std::string& out) {
  const bool nested = value.is_structured() && !value.empty();
  if (!nested) {
    out += yaml_scalar(value) + "\n";
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

Data::Data(Json value) : value_(std::make_shared<const Json>(std::move(value))) {}

std::string Data::json() const { return value_ == nullptr ? std::string() : printed_json(*value_); }

std::string Data::yaml() const {
  std::string text;
  if (value_ != nullptr) write_yaml(*value_, "", text);
  return text;
}
namespace {

using Json = nlohmann::ordered_json;

Json usage_json(const engine::Usage& usage) {
  return {{"size", count_json(usage.size)},   {"held", usage.held},
          {"cooling", usage.cooling},         {"reserved", count_json(usage.reserved)},
          {"free", count_json(usage.free())}, {"stranded", count_json(usage.stranded)}};
}

Json map_json(const std::map<std::string, std::string>& map) { return Json(map); }

Json fact_json(const core::PoolFact& fact) {
  const auto own_json = [](const core::OwnBlockFact& block) -> Json {
    return {{"cidr", block.cidr.to_string()},
            {"free", block.free},
            {"coolsUntil", block.cools_until ? Json(rfc3339_rounded_up(*block.cools_until)) : Json()},
            {"fault", text_or_null(block.fault)}};
  };
  return {{"pool", fact.pool},
          {"cidr", fact.cidr.to_string()},
          {"usable", fact.usable},
          {"reason", text_or_null(fact.reason)},
          {"selection", text_or_null(fact.selected)},
          {"ownBlocks", array_json(fact.own, own_json)},
          {"claimable", fact.claimable ? Json(fact.claimable->to_string()) : Json()},
          {"notClaimable", text_or_null(fact.not_claimable)},
          {"toBorrow", prefixes_json(fact.to_borrow)}};
}

Json refusal_json(const core::Refusal& refusal) {
  const auto verdict_json = [](const core::PoolVerdict& one) -> Json {
    return {{"pool", one.pool}, {"cidr", one.cidr.to_string()}, {"reason", one.reason}};
  };
  return {{"code", name_of(refusal.code)},
          {"summary", refusal.summary},
          {"considered", array_json(refusal.considered, verdict_json)}};
}

Json node_json(const engine::NodeView& view) {
  return {{"name", view.node.name},    {"labels", map_json(view.node.labels)},
          {"recorded", view.recorded}, {"blocks", view.blocks},
          {"held", view.held},         {"borrowed", view.borrowed}};
}

/// A pool as it is shown: whether it gives addresses is what its store says of it, and no part of the record.
Json pool_json(const core::Pool& pool) {
  Json json = Json::object();
  const Json record = record_json(pool);
  for (const auto& [name, value] : record.items()) {
    if (name == "beingDeleted") continue;
    json[name] = value;
    if (name == "disabled") json["allocatable"] = pool.unallocatable.empty();
  }
  return json;
}

}  // namespace

Json record_json(const core::Value& record) {
  const std::string stored = wire::encode_record(record);
  Json json = Json::parse(stored, nullptr, false);
  if (json.is_discarded()) {
    // A record of others may have bytes that are no UTF-8.
    const std::string quoted = Json(stored).dump(-1, ' ', false, Json::error_handler_t::replace);
    json = Json::parse(Json::parse(quoted).get<std::string>());
  }
  json.erase("v");
  const auto quote = [](Json& number) { number = number_64_json(number.get<std::uint64_t>()); };
  if (json.contains("sequenceNumber")) {
    quote(json["sequenceNumber"]);
    for (Json& number : json["sequenceNumberForAllocation"]) quote(number);
  }
  return json;
}

Data json_of(const std::vector<engine::PoolView>& pools, bool with_blocks) {
  const auto block_json = [](const engine::BlockView& view) -> Json {
    return {{"cidr", view.block.cidr.to_string()},
            {"affinity", view.block.affinity ? Json(to_string(*view.block.affinity)) : Json()},
            {"usage", usage_json(view.usage)}};
  };
  return Data(array_json(pools, [&](const engine::PoolView& pool) {
    Json json = pool_json(pool.pool);
    json["blocks"] = pool.blocks.size();
    json["usage"] = usage_json(pool.usage);
    if (with_blocks) json["blockUsage"] = array_json(pool.blocks, block_json);
    return json;
  }));
}

Data json_of(const std::vector<engine::BlockView>& blocks) {
  return Data(array_json(blocks, [](const engine::BlockView& block) {
    Json json = record_json(block.block);
    json["pool"] = text_or_null(block.pool);
    json["usage"] = usage_json(block.usage);
    return json;
  }));
}

Data json_of(const std::vector<engine::AddressView>& addresses) {
  return Data(array_json(addresses, [](const engine::AddressView& a) -> Json {
    return {{"address", a.address.to_string()},
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
            {"sequenceNumber", number_64_json(a.sequence_number.value)},
            {"blockOwner", a.block_owner ? Json(to_string(*a.block_owner)) : Json()},
            {"borrowed", a.borrowed()},
            {"type", text_or_null(a.type())},
            {"attributes", map_json(a.attributes)},
            {"alternateOwner", map_json(a.alternate_owner)}};
  }));
}

Data json_of(const std::vector<core::audit::Finding>& findings) {
  return Data(array_json(findings, [](const core::audit::Finding& finding) -> Json {
    return {{"finding", finding.id},
            {"subject", finding.subject},
            {"evidence", finding.what},
            {"remedy", finding.remedy},
            {"namespace", text_or_null(finding.pod.namespace_name)},
            {"pod", text_or_null(finding.pod.name)},
            {"podUID", text_or_null(finding.pod.uid)},
            {"since", text_or_null(finding.since)},
            {"looks", finding.looks > 0 ? Json(finding.looks) : Json()}};
  }));
}

Data json_of(const std::vector<engine::NodeView>& nodes) { return Data(array_json(nodes, node_json)); }

Data json_of(const engine::NodeView& node, const std::vector<net::Prefix>& ranges,
             const std::optional<TokenShown>& token) {
  Json object = node_json(node);
  object["ranges"] = prefixes_json(ranges);
  if (token) {
    object["pluginToken"] = {{"file", token->file},
                             {"madeAt", rfc3339_exact(token->made)},
                             {"endsAt", rfc3339_exact(token->end)},
                             {"hasEnded", token->has_ended},
                             {"isRefused", token->is_refused ? Json(*token->is_refused) : Json()}};
  }
  return Data(Json::array({object}));
}

Data json_of(const core::IpamConfig& config) {
  Json json = record_json(config);
  json["kubeVirtVMAddressPersistence"] = text_or_null(config.kubevirt_vm_address_persistence);
  return Data(Json::array({json}));
}

Data json_of(const std::vector<core::Reservation>& reservations) {
  return Data(array_json(reservations, [](const core::Reservation& one) { return record_json(one); }));
}

Data json_of(const core::PoolsSplit& split) {
  return Data(array_json(split.parts, [&](const core::Pool& part) {
    Json json = pool_json(part);
    json["splitFrom"] = split.before;
    json["heldReserved"] = Json::array();
    for (const net::Address& address : split.held_reserved) {
      if (part.cidr.contains(address)) json["heldReserved"].push_back(address.to_string());
    }
    return json;
  }));
}

Data json_of(const core::Explanation& explanation) {
  const auto address_json = [](const core::ExplainedAddress& one) -> Json {
    return {{"address", one.address.address.to_string()},
            {"pool", text_or_null(one.address.pool)},
            {"block", one.address.block.to_string()},
            {"origin", core::name_of(one.origin)},
            {"blockOwner", text_or_null(one.block_owner)}};
  };
  const auto family_json = [](const core::FamilyFacts& facts) -> Json {
    return {{"family", net::name_of(facts.family)},
            {"ownedBlocks", facts.owned_blocks},
            {"blockLimit", facts.block_limit},
            {"pools", array_json(facts.pools, fact_json)}};
  };
  const auto* refusal = std::get_if<core::Refusal>(&explanation.answer);
  const Json json = {{"addresses", array_json(explanation.addresses, address_json)},
                     {"refusal", refusal != nullptr ? refusal_json(*refusal) : Json()},
                     {"nodeRecorded", explanation.node_recorded},
                     {"nodeLabels", map_json(explanation.node_labels)},
                     {"strictAffinity", explanation.strict_affinity},
                     {"autoAllocateBlocks", explanation.auto_allocate_blocks},
                     {"families", array_json(explanation.families, family_json)}};
  return Data(Json::array({json}));
}

Data json_of(const ReleaseOutcome& outcome) {
  Json objects = Json::array();
  const auto add = [&](const std::vector<net::Address>& addresses, const char* what) {
    for (const net::Address& address : addresses) {
      objects.push_back({{"address", address.to_string()}, {"handle", nullptr}, {"outcome", what}});
    }
  };
  add(outcome.addresses.released, "released");
  add(outcome.addresses.not_held, "notHeld");
  add(outcome.addresses.mismatched, "mismatched");
  const auto add_handles = [&](const std::vector<std::string>& handles, const char* what) {
    for (const std::string& handle : handles) {
      objects.push_back({{"address", nullptr}, {"handle", handle}, {"outcome", what}});
    }
  };
  add_handles(outcome.handles_mended, "mended");
  add_handles(outcome.handles_kept, "kept");
  return Data(objects);
}

namespace {

constexpr std::size_t kPoolsToldApart = 3;  // more in a row of which the same is to be said are told together

std::string labels_text(const core::Labels& labels) {
  std::string text;
  for (const auto& [key, value] : labels)
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", printable(key, Printed::line),
                        printable(value, Printed::line));
  return text.empty() ? "none" : text;
}

std::string block_text(const core::OwnBlockFact& block) {
  if (!block.fault.empty()) return block.fault;
  const char* const none = block.cools_until ? "none free" : "full";
  std::string text = block.free > 0 ? fmt::format("{} free", block.free) : none;
  if (block.cools_until) text += ", the first cooling one is free again at " + rfc3339_rounded_up(*block.cools_until);
  return text;
}

std::string lenders_text(const core::PoolFact& fact, const core::Explanation& explanation) {
  if (fact.to_borrow.empty()) return "nothing to borrow from others' blocks\n";
  if (explanation.strict_affinity) return "others' blocks have room, but affinity is strict: nothing is borrowed\n";
  std::string text = "could borrow from";
  for (const net::Prefix& cidr : fact.to_borrow) text += " " + cidr.to_string();
  if (fact.to_borrow.size() == core::kExplainBlocksMax) text += " …";
  return text + "\n";
}

std::string usable_text(const core::PoolFact& fact, const core::FamilyFacts& facts,
                        const core::Explanation& explanation) {
  const std::string indent = "     ";
  std::string text;
  for (const core::OwnBlockFact& block : fact.own) {
    text += indent + fmt::format("own block {}: {}\n", block.cidr, block_text(block));
  }
  if (fact.own.empty()) text += indent + "no block of its own here\n";
  if (!explanation.auto_allocate_blocks) {
    text += indent + "claims nothing: autoAllocateBlocks is off\n";
  } else if (facts.block_limit > 0 && facts.owned_blocks >= facts.block_limit) {
    text += indent + fmt::format("claims nothing: it has {} of at most {}\n", facts.owned_blocks,
                                 counted(facts.block_limit, "block"));
  } else if (fact.claimable) {
    text += indent + fmt::format("could claim block {}\n", *fact.claimable);
  } else {
    text += indent + fmt::format("nothing to claim: {}\n", fact.not_claimable);
  }
  return text + indent + lenders_text(fact, explanation);
}

/// The words about a pool that follow its name.
std::string verdict_of(const core::PoolFact& fact, const core::FamilyFacts& facts,
                       const core::Explanation& explanation) {
  if (fact.usable) return fact.selected + "\n" + usable_text(fact, facts, explanation);
  return fact.reason + (fact.selected.empty() ? "" : "; " + fact.selected) + "\n";
}

/// "pool a (10.1.0.0/24)", or the first and the last of several in a row.
std::string pools_named(const std::vector<core::PoolFact>& pools, std::size_t begin, std::size_t end) {
  const auto one = [](const core::PoolFact& fact) { return fmt::format("{} ({})", fact.pool, fact.cidr); };
  if (end - begin == 1) return "pool " + one(pools[begin]);
  return fmt::format("{} pools in a row, {} to {}", end - begin, one(pools[begin]), one(pools[end - 1]));
}

std::string family_text(const core::FamilyFacts& facts, const core::Explanation& explanation) {
  std::string text =
      fmt::format("{}: {} of its own, {}\n", net::name_of(facts.family), counted(facts.owned_blocks, "block"),
                  facts.block_limit == 0 ? std::string("no limit") : fmt::format("at most {}", facts.block_limit));
  std::size_t place = 0;
  for (std::size_t at = 0; at < facts.pools.size();) {
    const core::PoolFact& first = facts.pools[at];
    const std::string verdict = verdict_of(first, facts, explanation);
    std::size_t end = at + 1;
    while (end < facts.pools.size() && facts.pools[end].usable == first.usable &&
           verdict_of(facts.pools[end], facts, explanation) == verdict) {
      ++end;
    }
    if (end - at <= kPoolsToldApart) end = at + 1;
    place += first.usable ? end - at : 0;
    text += first.usable ? fmt::format("  {}. ", place - (end - at) + 1) : "  -  ";
    text += pools_named(facts.pools, at, end) + ": " + verdict;
    at = end;
  }
  return facts.pools.empty() ? text + "  no pool of this family\n" : text;
}

std::string answer_text(const core::Explanation& explanation) {
  if (const auto* refusal = std::get_if<core::Refusal>(&explanation.answer)) {
    const Error error = core::to_error(*refusal);
    return fmt::format("Answer: refused ({}): {}\n{}", name_of(error.code), error.message,
                       error.details.empty() ? "" : "  " + error.details + "\n");
  }
  std::string text;
  for (const core::ExplainedAddress& one : explanation.addresses) {
    text += fmt::format("Answer: {} of pool {}, {} {}{}\n", one.address.address, one.address.pool,
                        core::name_of(one.origin), one.address.block,
                        one.origin == core::Origin::borrowed || one.origin == core::Origin::taken_over
                            ? " of " + (one.block_owner.empty() ? std::string("nobody") : one.block_owner)
                            : std::string());
  }
  return text;
}

}  // namespace

std::string text_of(const core::Explanation& explanation, const core::AssignRequest& request) {
  std::string text = answer_text(explanation);
  text += fmt::format("Node {}: labels {}{}\n", request.node.name, labels_text(explanation.node_labels),
                      explanation.node_recorded ? "" : " (it has no record)");
  text += fmt::format("Switches: strictAffinity {}, autoAllocateBlocks {}\n", explanation.strict_affinity,
                      explanation.auto_allocate_blocks);
  for (const core::FamilyFacts& facts : explanation.families) text += family_text(facts, explanation);
  return text;
}

namespace {

void add_row(Table& table, const char* grouping, const std::string& name, const net::Prefix& cidr,
             const std::string& owner, const engine::Usage& usage) {
  table.add({grouping, name, cidr.to_string(), owner, usage.size.to_string(), percent_of(usage.held, usage.size),
             percent_of(usage.cooling, usage.size), percent_of(usage.reserved, usage.size),
             percent_of(usage.free(), usage.size), usage.stranded.is_zero() ? "" : usage.stranded.to_string()});
}

void add_block(Table& table, const engine::BlockView& view) {
  const core::Block& block = view.block;
  add_row(table, "block", view.pool, block.cidr, block.affinity ? to_string(*block.affinity) : "", view.usage);
}

}  // namespace

std::string percent_of(const net::Count& part, const net::Count& whole) {
  const double share = whole.is_zero() ? 0.0 : 100.0 * part.as_double() / whole.as_double();
  return fmt::format("{} ({:.3g}%)", part, share);
}

std::string usage_table(const engine::Overview& overview, bool with_blocks) {
  Table table({"GROUPING", "POOL", "CIDR", "OWNER", "TOTAL", "IN USE", "COOLING", "RESERVED", "FREE", "STRANDED"});
  for (const engine::PoolView& view : overview.pools) {
    add_row(table, "pool", view.pool.name, view.pool.cidr, "", view.usage);
    if (!with_blocks) continue;
    for (const engine::BlockView& block : view.blocks) add_block(table, block);
  }
  if (with_blocks) {
    for (const engine::BlockView& block : overview.stray_blocks) add_block(table, block);
  }
  return table.to_string();
}

}  // namespace croft::app
