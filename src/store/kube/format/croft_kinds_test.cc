#include "store/kube/format/croft_kinds.h"

#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "register/format/records.h"
#include "register/records.h"
#include "store/kube/fake_api_fixture.h"

namespace croft::wire::kube {
namespace {

using testing::HasSubstr;

net::Prefix cidr(const char* text) { return net::Prefix::parse(text).value(); }

std::vector<std::pair<core::Key, core::Value>> samples() {
  const std::uint64_t high = ~std::uint64_t{0};
  return {
      {core::high_water_mark_key(cidr("10.0.0.64/26")),
       core::HighWaterMark{core::SequenceNumber(core::kHighWaterMarkMax)}},
      {core::pool_set_key(), core::PoolSet{3}},
      {core::node_range_key(cidr("10.244.3.0/24")), core::NodeRange{"a \"b\" <c>\n", cidr("10.244.3.0/24")}},
      {core::node_range_set_key(),
       core::NodeRangeSet{
           high, {{cidr("10.244.0.0/16"), 24}, {cidr("fd00::/48"), 64}}, {cidr("10.244.9.0/24")}, {3, high}}},
      {core::removed_node_key("node-a"),
       core::RemovedNode{"node-a",
                         {{"10.0.0.0/26", core::SequenceNumber(high)}, {"fd00::/122", core::SequenceNumber(7)}}}},
  };
}

TEST(OwnKinds, ARecordComesBackFromItsSpec) {
  std::set<core::Kind> seen;
  for (const auto& [key, value] : samples()) {
    const OwnKind* kind = croft_kind_of(key.kind);
    ASSERT_NE(kind, nullptr);
    seen.insert(key.kind);
    const std::string spec = croft_spec(*kind, key.name, encode_record(value));
    const auto document = parse_json(spec);
    ASSERT_TRUE(document) << spec;
    const auto own = read_croft_spec(*kind, document->root());
    ASSERT_TRUE(own) << own.error().message;
    EXPECT_EQ(own->name, key.name);
    EXPECT_EQ(own->record, encode_record(value));
    EXPECT_EQ(decode_record(key, own->record).value(), value);
  }
  EXPECT_EQ(seen.size(), croft_kinds().size()) << "a kind without a sample";
}

/// The API server has Go's float64 for what does not fit its int64.
TEST(OwnKinds, NoNumberIsTooLargeForTheApi) {
  const OwnKind& kind = *croft_kind_of(core::Kind::high_water_mark);
  const std::string spec =
      croft_spec(kind, "x", encode_record(core::HighWaterMark{core::SequenceNumber(~std::uint64_t{0})}));
  EXPECT_EQ(spec, R"({"name":"x","formatVersion":1,"sequenceNumber":"18446744073709551615"})");
}

/// It keeps members in the order of their names, and adds none.
TEST(OwnKinds, TheOrderOfMembersDoesNotMatter) {
  const OwnKind& kind = *croft_kind_of(core::Kind::removed_node);
  const auto document =
      parse_json(R"({"node":"n","name":"n","held":{"b":"2","a":"1"},"formatVersion":1,"unknown":[1]})");
  const auto own = read_croft_spec(kind, document->root());
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_EQ(own->record, R"({"v":1,"node":"n","held":{"a":1,"b":2}})");
}

TEST(OwnKinds, WhatIsNoRecordIsNamed) {
  const OwnKind& kind = *croft_kind_of(core::Kind::node_range_set);
  const auto why = [&](const char* spec) {
    const auto document = parse_json(spec);
    const auto own = read_croft_spec(kind, document->root());
    EXPECT_FALSE(own) << spec;
    EXPECT_TRUE(own || own.error().code == ErrorCode::corrupt);
    return own ? std::string() : own.error().message;
  };
  EXPECT_THAT(why("[]"), HasSubstr("spec"));
  EXPECT_THAT(why("{}"), HasSubstr("spec.name"));
  EXPECT_THAT(why(R"({"name":"default"})"), HasSubstr("spec.formatVersion"));
  EXPECT_THAT(why(R"({"name":"default","formatVersion":0})"), HasSubstr("spec.formatVersion"));
  EXPECT_THAT(why(R"({"name":"default","formatVersion":1})"), HasSubstr("spec.generation: it is missing"));
  EXPECT_THAT(why(R"({"name":"default","formatVersion":1,"generation":7})"), HasSubstr("spec.generation"));
  for (const char* number : {"", "-1", "+1", "1e3", " 1", "0x1", "18446744073709551616"}) {
    EXPECT_THAT(why(fmt::format(R"({{"name":"default","formatVersion":1,"generation":"{}"}})", number).c_str()),
                HasSubstr("spec.generation"));
  }
  EXPECT_THAT(why(R"({"name":"default","formatVersion":1,"generation":"7","clusterCIDRs":[{"cidr":"10.0.0.0/8"}]})"),
              HasSubstr("spec.clusterCIDRs[0].nodeLength"));
}

/// Its members are not ours to judge; that it is newer is.
TEST(OwnKinds, ANewerVersionIsTakenForOne) {
  const OwnKind& kind = *croft_kind_of(core::Kind::pool_set);
  const auto document = parse_json(R"({"name":"default","formatVersion":2,"other":true})");
  const auto own = read_croft_spec(kind, document->root());
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_EQ(decode_record(core::pool_set_key(), own->record).error().code, ErrorCode::newer_version);
}

TEST(OwnKinds, NamesOfObjects) {
  const auto name = [](std::string_view record) { return croft_object_name(record, fake_digest); };
  for (const char* plain : {"default", "node-a", "a.b-c.d", "0"}) EXPECT_EQ(name(plain), plain);
  EXPECT_THAT(name("host/node-a/ipv4/10.0.0.64/26"),
              testing::MatchesRegex("host-node-a-ipv4-10-0-0-64-26-[0-9a-f]{16}"));
  for (const char* odd :
       {"A", "a/", "/a", "-a", "a-", "a..b", ".a", "a.", "a.-b", "a-.b", "é", "a b", "x-0123456789abcdef"}) {
    EXPECT_NE(name(odd), odd);
    EXPECT_THAT(name(odd), testing::MatchesRegex("[a-z0-9]([a-z0-9-]*)-[0-9a-f]{16}")) << odd;
  }
  EXPECT_NE(name("a/b"), name("a-b"));
  EXPECT_NE(name("A"), name("a"));
  const std::string longest = name(std::string(1024, 'x'));
  EXPECT_LE(longest.size(), 253U);
  EXPECT_NE(longest, name(std::string(1023, 'x')));
}

TEST(OwnKinds, OwnersAtTheBeginningOfNames) {
  EXPECT_EQ(owner_in_name("host/node-a/ipv4/10.0.0.64/26"), "host/node-a");
  EXPECT_EQ(owner_in_name("host/node-a/"), "host/node-a");
  EXPECT_EQ(owner_in_name("virtual/load-balancer/x"), "virtual/load-balancer");
  EXPECT_EQ(owner_in_name("nobody/ipv4/"), "nobody");
  EXPECT_EQ(owner_in_name("ipv4/10.0.0.0/26"), "ipv4");
  for (const char* unclear : {"", "host", "host/", "host/node-a", "default"})
    EXPECT_EQ(owner_in_name(unclear), std::nullopt);
}

/// The members that `fields` reads are those that the definitions keep, and big integers are texts there.
void expect_same(std::span<const OwnField> fields, const nlohmann::json& schema, const std::string& at) {
  const nlohmann::json& properties = schema.at("properties");
  for (const OwnField& field : fields) {
    const std::string path = fmt::format("{}.{}", at, field.name);
    ASSERT_TRUE(properties.contains(field.name)) << path;
    const nlohmann::json& one = properties.at(std::string(field.name));
    EXPECT_FALSE(one.at("description").get<std::string>().empty()) << path;
    const nlohmann::json& part = one.contains("items")                  ? one.at("items")
                                 : one.contains("additionalProperties") ? one.at("additionalProperties")
                                                                        : one;
    EXPECT_TRUE(!field.is_big || part.at("type") == "string") << path;
    if (!field.parts.empty()) expect_same(field.parts, part, path);
  }
}

TEST(OwnKinds, TheDefinitionsInDeployKeepEachMember) {
  std::ifstream file(CROFT_TESTDATA "/crds-croft.yaml");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  std::map<std::string, nlohmann::json> definitions;
  for (std::size_t at = text.find("---\n"); at != text.npos;) {
    const std::size_t next = text.find("---\n", at + 4);
    auto one = nlohmann::json::parse(text.substr(at + 4, next == text.npos ? next : next - at - 4));
    definitions.emplace(one.at("metadata").at("name"), std::move(one));
    at = next;
  }
  EXPECT_EQ(definitions.size(), croft_kinds().size() + 1);
  EXPECT_TRUE(definitions.contains("croftpools.ipam.croft.dev"));
  for (const OwnKind& kind : croft_kinds()) {
    const auto found = definitions.find(fmt::format("{}.{}", kind.plural, kOwnGroup));
    ASSERT_NE(found, definitions.end()) << kind.plural;
    EXPECT_EQ(found->second.at("spec").at("names").at("kind"), kind.kind);
    const nlohmann::json& version = found->second.at("spec").at("versions").at(0);
    EXPECT_EQ(version.at("name"), kOwnVersion);
    const nlohmann::json& spec = version.at("schema").at("openAPIV3Schema").at("properties").at("spec");
    EXPECT_EQ(spec.at("properties").size(), kind.fields.size() + 2) << "with name and formatVersion";
    expect_same(kind.fields, spec, std::string(kind.plural));
  }
}

}  // namespace
}  // namespace croft::wire::kube
