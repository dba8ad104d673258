#include "calico/crd.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/json/writer.h"
#include "calico/test_calico.h"

namespace croft::wire::calico {
namespace {

using testing::HasSubstr;

/// Digests of the texts that the tests need, made with `openssl dgst`.
std::string unhex(std::string_view hex) {
  std::string bytes;
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1]));
  return bytes;
}
const Digests kDigests{[](std::string_view text) {
                         return text.ends_with("+10-0-0-64-26") ? unhex("0123456789abcdef") : std::string(32, 'x');
                       },
                       [](std::string_view text) {
                         // SHA3-256 of "node-a"
                         return text == "node-a"
                                    ? unhex("7e37381344ddd9324d6cd312edd11353ca1d7f144f27c276e67912e6ee4ce400")
                                    : std::string(32, 'y');
                       }};

core::AffinityOwner host(std::string name) { return {core::AffinityOwner::Type::host, std::move(name)}; }

struct NameCase {
  core::Key key;
  std::string name;
};

TEST(Crd, NamesAsCalicoMakesThem) {
  const auto v4 = net::Prefix::parse("10.0.0.64/26").value();
  const auto v6 = net::Prefix::parse("fd00:10:244::1:40/122").value();
  const NameCase cases[] = {
      {core::block_key(v4), "10-0-0-64-26"},
      {core::block_key(v6), "fd00-10-244--1-40-122"},
      {core::affinity_key(host("node-a"), v4), "node-a-10-0-0-64-26"},
      {core::affinity_key({core::AffinityOwner::Type::virtual_owner, "load-balancer"}, v6),
       "load-balancer-fd00-10-244--1-40-122"},
      {core::handle_key("k8s-pod-network.7F3C0e"), "k8s-pod-network.7f3c0e"},
      {core::ipam_config_key(), "default"},
      {core::pool_key("default-ipv4"), "default-ipv4"},
      {core::reservation_key("gateways"), "gateways"},
  };
  for (const NameCase& c : cases) {
    const auto name = crd_name(c.key, kDigests);
    ASSERT_TRUE(name) << name.error().message;
    EXPECT_EQ(*name, c.name);
  }
}

TEST(Crd, LongNamesOfAffinitiesAreCut) {
  const auto v4 = net::Prefix::parse("10.0.0.64/26").value();
  const std::string suffix = "-10-0-0-64-26";
  const std::string fits(252 - suffix.size(), 'n');
  EXPECT_EQ(crd_name(core::affinity_key(host(fits), v4), kDigests).value(), fits + suffix);
  const std::string longer = fits + "n";
  const std::string cut = crd_name(core::affinity_key(host(longer), v4), kDigests).value();
  EXPECT_EQ(cut, std::string(252 - 12 - 13, 'n') + suffix + "-0123456789a");
  EXPECT_LE(cut.size(), 253U);
}

TEST(Crd, WhatTheApiRefusesIsRefusedBefore) {
  for (const char* id : {"net_work.abc", "a b", "-a", "a.", "\xc3\xa9"}) {
    const auto name = crd_name(core::handle_key(id), kDigests);
    ASSERT_FALSE(name) << id;
    EXPECT_EQ(name.error().code, ErrorCode::invalid_argument);
  }
  EXPECT_FALSE(crd_name(core::handle_key(std::string(254, 'a')), kDigests));
  EXPECT_TRUE(crd_name(core::handle_key(std::string(253, 'a')), kDigests));
}

TEST(Crd, NamesBackToRecords) {
  EXPECT_EQ(key_of_crd_name(core::Kind::block, "10-0-0-64-26"), key_of_block("10.0.0.64/26"));
  EXPECT_EQ(key_of_crd_name(core::Kind::block, "fd00-10-244--1-40-122"), key_of_block("fd00:10:244::1:40/122"));
  EXPECT_EQ(key_of_crd_name(core::Kind::block, "odd").name, "odd");
  EXPECT_EQ(key_of_crd_name(core::Kind::affinity, "node-a-1-10-0-0-64-26"),
            core::affinity_key(host("node-a-1"), net::Prefix::parse("10.0.0.64/26").value()));
  EXPECT_EQ(key_of_crd_name(core::Kind::affinity, "odd").name, "host/odd");
  EXPECT_EQ(key_of_crd_name(core::Kind::handle, "net.abc").name, "net.abc");
}

// ---------------------------------------------------------------- objects

/// Objects as Calico writes them, in JSON.
constexpr std::string_view kBlock = R"({"apiVersion":"crd.projectcalico.org/v1","kind":"IPAMBlock",
 "metadata":{"name":"10-0-0-64-30","uid":"u-1","resourceVersion":"7","generation":3,"managedFields":[{"manager":"x"}],
  "creationTimestamp":"2026-01-15T10:00:00Z","annotations":{"projectcalico.org/metadata":"{\"creationTimestamp\":null}"}},
 "spec":{"cidr":"10.0.0.64/30","affinity":"host:node-a","affinityClaimTime":"2026-01-15T10:00:00Z",
  "allocations":[null,0,1,null],
  "attributes":[{"handle_id":"k8s-pod-network.7f3c0e","secondary":{"namespace":"shop","node":"node-a","pod":"cart-0"}},
   {"handle_id":"vxlan-tunnel-addr-node-a","secondary":{"node":"node-a","type":"vxlanTunnelAddress"}}],
  "unallocated":[3,0],"sequenceNumber":1768471200000000007,
  "sequenceNumberForAllocation":{"1":1768471200000000003,"2":1768471200000000000},"deleted":false,"strictAffinity":false}})";

JsonDocument parsed(std::string_view text) {
  auto document = parse_json(text);
  EXPECT_TRUE(document) << text;
  return *std::move(document);
}

/// Members in the order of their names, at every depth.
void sort_into(JsonWriter& out, JsonRef value) {
  if (value.kind() == JsonKind::object) {
    std::map<std::string, JsonRef> members;
    for (auto member = value.first_child(); member; member = member->next_sibling()) {
      members.insert_or_assign(std::string(member->key()), *member);
    }
    out.begin_object();
    for (const auto& [name, member] : members) {
      out.key(name);
      sort_into(out, member);
    }
    out.end_object();
  } else if (value.kind() == JsonKind::array) {
    out.begin_array();
    for (auto element = value.first_child(); element; element = element->next_sibling()) sort_into(out, *element);
    out.end_array();
  } else {
    copy_json(out, value);
  }
}
std::string sorted(std::string_view text) {
  const JsonDocument document = parsed(text);
  JsonWriter out(JsonWriter::Layout::compact);
  sort_into(out, document.root());
  return std::move(out).take();
}

struct Read {
  core::Key key;
  core::Value value;
  bool is_deleted = false;
};

Result<Read> read(core::Kind kind, ApiGroup group, std::string_view object) {
  const JsonDocument document = parsed(object);
  TRY(FromCrd found, from_crd(kind, group, document.root(), "ipam.croft.dev/"));
  if (!found.key) return fail(ErrorCode::corrupt, "no key");
  TRY(core::Value value, decode_value(*found.key, found.bytes));
  return Read{*found.key, std::move(value), found.is_deleted};
}

std::string object_of(const Read& read, ApiGroup group) {
  CrdFrame frame;
  frame.group = group;
  frame.name = crd_name(read.key, kDigests).value();
  frame.uid = "u-1";
  frame.resource_version = "7";
  frame.annotations = {{"ipam.croft.dev/write-token", "00"}};
  if (const auto* affinity = std::get_if<core::Affinity>(&read.value)) {
    frame.labels = affinity_labels(affinity->owner, affinity->cidr.family(), kDigests);
  }
  return to_crd(read.key, encode_value(read.value, {}), frame);
}

TEST(Crd, ABlock) {
  const auto block = read(core::Kind::block, ApiGroup::crd_v1, kBlock);
  ASSERT_TRUE(block) << block.error().message;
  EXPECT_EQ(block->key, key_of_block("10.0.0.64/30"));
  const auto& value = std::get<core::Block>(block->value);
  EXPECT_EQ(value.affinity, host("node-a"));
  EXPECT_EQ(value.sequence_number.value, 1768471200000000007U);
  EXPECT_TRUE(value.affinity_claim_time);
  EXPECT_FALSE(block->is_deleted);
  EXPECT_EQ(
      object_of(*block, ApiGroup::crd_v1),
      R"({"apiVersion":"crd.projectcalico.org/v1","kind":"IPAMBlock","metadata":{"name":"10-0-0-64-30","uid":"u-1",)"
      R"("resourceVersion":"7","annotations":{"ipam.croft.dev/write-token":"00",)"
      R"("projectcalico.org/metadata":"{\"creationTimestamp\":null}"}},"spec":{"cidr":"10.0.0.64/30",)"
      R"("affinity":"host:node-a","affinityClaimTime":"2026-01-15T10:00:00Z","allocations":[null,0,1,null],)"
      R"("unallocated":[3,0],"attributes":[{"handle_id":"k8s-pod-network.7f3c0e",)"
      R"("secondary":{"namespace":"shop","node":"node-a","pod":"cart-0"}},{"handle_id":"vxlan-tunnel-addr-node-a",)"
      R"("secondary":{"node":"node-a","type":"vxlanTunnelAddress"}}],"sequenceNumber":1768471200000000007,)"
      R"("sequenceNumberForAllocation":{"1":1768471200000000003,"2":1768471200000000000},"deleted":false,)"
      R"("strictAffinity":false}})");
}

/// Go's nil slices are null; the schemas of v1 want lists, and no `affinity` where nobody has the block.
TEST(Crd, ABlockOfNobody) {
  core::Block block = core::new_block(net::Prefix::parse("10.0.0.64/30").value(), std::nullopt, {}, {});
  const std::string object = object_of({key_of_block("10.0.0.64/30"), block}, ApiGroup::crd_v1);
  EXPECT_THAT(object, HasSubstr(R"("attributes":[])"));
  EXPECT_THAT(object, testing::Not(HasSubstr("null,\"alloc")));
  EXPECT_THAT(object, testing::Not(HasSubstr("\"affinity\"")));
  EXPECT_THAT(object_of({key_of_block("10.0.0.64/30"), block}, ApiGroup::v3),
              testing::Not(HasSubstr("strictAffinity")));
}

TEST(Crd, AnAffinity) {
  constexpr std::string_view kV1 = R"({"apiVersion":"crd.projectcalico.org/v1","kind":"BlockAffinity",
    "metadata":{"name":"node-a-10-0-0-64-30","uid":"u-1","resourceVersion":"7"},
    "spec":{"cidr":"10.0.0.64/30","node":"node-a","state":"pending","deleted":"false"}})";
  const auto v1 = read(core::Kind::affinity, ApiGroup::crd_v1, kV1);
  ASSERT_TRUE(v1) << v1.error().message;
  EXPECT_EQ(v1->key.name, "host/node-a/ipv4/10.0.0.64/30") << "no type means host";
  EXPECT_EQ(std::get<core::Affinity>(v1->value).state, core::AffinityState::pending);
  const std::string object = object_of(*v1, ApiGroup::crd_v1);
  EXPECT_THAT(object, HasSubstr(R"("deleted":"false")"));
  EXPECT_THAT(object, HasSubstr(R"("type":"host")"));
  EXPECT_THAT(object, HasSubstr("\"projectcalico.org/hostname-hash\":"
                                "\"PY3TQE2E3XMTETLM2MJO3UITKPFB27YUJ4T4E5XGPEJON3SM4QAA\""));
  EXPECT_THAT(object, HasSubstr(R"("projectcalico.org/affinity-type":"host")"));
  EXPECT_THAT(object, HasSubstr(R"("projectcalico.org/ip-version":"4")"));
  EXPECT_THAT(object_of(*v1, ApiGroup::v3), HasSubstr(R"("deleted":false)"));
  const auto gone =
      read(core::Kind::affinity, ApiGroup::crd_v1,
           R"({"metadata":{"name":"x"},"spec":{"cidr":"10.0.0.64/30","node":"n","state":"","deleted":"true"}})");
  ASSERT_TRUE(gone);
  EXPECT_TRUE(gone->is_deleted);
  const auto again = read(
      core::Kind::affinity, ApiGroup::v3,
      R"({"metadata":{"name":"x"},"spec":{"cidr":"10.0.0.64/30","node":"n","type":"virtual","state":"confirmed","deleted":true}})");
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->is_deleted);
  EXPECT_EQ(again->key.name, "virtual/n/ipv4/10.0.0.64/30");
}

TEST(Crd, AHandleKeepsItsCase) {
  const auto handle =
      read(core::Kind::handle, ApiGroup::crd_v1,
           R"({"metadata":{"name":"net.abc"},"spec":{"handleID":"net.ABC","block":{"10.0.0.64/30":1}}})");
  ASSERT_TRUE(handle) << handle.error().message;
  EXPECT_EQ(handle->key.name, "net.ABC");
  const std::string object = object_of(*handle, ApiGroup::crd_v1);
  EXPECT_THAT(object, HasSubstr(R"("name":"net.abc")"));
  EXPECT_THAT(object, HasSubstr(R"("handleID":"net.ABC")"));
}

TEST(Crd, TheConfiguration) {
  const auto config = read(
      core::Kind::ipam_config, ApiGroup::crd_v1,
      R"({"metadata":{"name":"default"},"spec":{"strictAffinity":true,"autoAllocateBlocks":true,"maxBlocksPerHost":5}})");
  ASSERT_TRUE(config) << config.error().message;
  const auto& value = std::get<core::IpamConfig>(config->value);
  EXPECT_TRUE(value.strict_affinity);
  EXPECT_TRUE(value.auto_allocate_blocks);
  EXPECT_EQ(value.max_blocks_per_host, 5U);
  const std::string off = object_of({core::ipam_config_key(), core::IpamConfig{false, false, 0, "", 0}}, ApiGroup::v3);
  EXPECT_THAT(off, HasSubstr(R"("kind":"IPAMConfiguration")"));
  EXPECT_THAT(off, HasSubstr(R"("autoAllocateBlocks":false)")) << "both are required";
  EXPECT_THAT(off, HasSubstr(R"("strictAffinity":false)"));
}

TEST(Crd, APoolHasItsLabelsInEitherPlace) {
  const auto pool =
      read(core::Kind::pool, ApiGroup::crd_v1,
           R"x({"apiVersion":"crd.projectcalico.org/v1","kind":"IPPool","metadata":{"name":"a","uid":"u-1",
    "labels":{"real":"1"},"finalizers":["f"],
    "annotations":{"projectcalico.org/metadata":"{\"labels\":{\"hidden\":\"2\"},\"creationTimestamp\":null}","note":"n"}},
    "spec":{"cidr":"10.0.0.0/16","blockSize":26,"ipipMode":"Never","vxlanMode":"Never","nodeSelector":"all()","odd":[1]},
    "status":{"conditions":[]}})x");
  ASSERT_TRUE(pool) << pool.error().message;
  EXPECT_EQ(std::get<core::Pool>(pool->value).cidr.to_string(), "10.0.0.0/16");
  const std::string object = object_of(*pool, ApiGroup::crd_v1);
  for (const char* kept :
       {R"("real":"1")", R"(\"hidden\":\"2\")", R"("note":"n")", R"("finalizers":["f"])", R"("odd":[1])",
        R"("status":{"conditions":[]})", R"("apiVersion":"crd.projectcalico.org/v1")"}) {
    EXPECT_THAT(object, HasSubstr(kept));
  }
}  // namespace croft::wire::calico

/// Everything that others may add to any object, in any combination, is written again.
TEST(Crd, NothingIsLost) {
  const std::string metadata[] = {R"("labels":{"a":"1","team.example/x":"2"})", R"("finalizers":["x/y"])",
                                  R"("ownerReferences":[{"kind":"Node","name":"n","uid":"u"}])",
                                  R"("odd":{"deep":[1,2.5,"x"]})"};
  const std::string annotations[] = {R"("note":"n")", R"("projectcalico.org/metadata":"{}")",
                                     R"("projectcalico.org/metadata":"{\"labels\":{\"z\":\"1\"}}")"};
  struct Plain {
    core::Kind kind;
    std::string name, spec;
  };
  const Plain kinds[] = {
      {core::Kind::block, "10-0-0-64-30",
       R"("cidr":"10.0.0.64/30","allocations":[null,null,null,null],"unallocated":[0,1,2,3],"attributes":[],"sequenceNumber":9,"sequenceNumberForAllocation":{},"deleted":false,"strictAffinity":false)"},
      {core::Kind::affinity, "node-a-10-0-0-64-30",
       R"("cidr":"10.0.0.64/30","node":"node-a","type":"host","state":"confirmed","deleted":"false")"},
      {core::Kind::handle, "net.abc", R"("handleID":"net.abc","block":{"10.0.0.64/30":1},"deleted":false)"},
      {core::Kind::ipam_config, "default", R"("strictAffinity":false,"autoAllocateBlocks":true)"},
      {core::Kind::reservation, "r", R"("reservedCIDRs":["10.0.0.0/32"])"},
      {core::Kind::pool, "p",
       R"x("cidr":"10.0.0.0/16","blockSize":26,"ipipMode":"Never","vxlanMode":"Never","nodeSelector":"all()","natOutgoing":true,"disabled":true,"allowedUses":["Workload","Tunnel"],"assignmentMode":"Automatic")x"}};
  SeededRandom random(7);
  for (int round = 0; round < 300; ++round) {
    const Plain& plain = kinds[random.next() % std::size(kinds)];
    std::string meta = fmt::format(R"("name":"{}","uid":"u-1","resourceVersion":"7")", plain.name);
    for (const std::string& one : metadata) meta += random.next() % 2 == 0 ? "," + one : "";
    std::string notes = R"("ipam.croft.dev/write-token":"00")";
    const std::size_t which = random.next() % 4;
    if (which < 3) notes += "," + annotations[which];
    meta += fmt::format(R"(,"annotations":{{{}}})", notes);
    const auto frame = crd_kind_of(plain.kind, ApiGroup::crd_v1);
    std::string object = fmt::format(R"({{"apiVersion":"{}/{}","kind":"{}","metadata":{{{}}},"spec":{{{}{}}}{}}})",
                                     frame.group, frame.version, frame.kind, meta, plain.spec,
                                     random.next() % 2 == 0 ? R"(,"unknown":{"x":[null]})" : "",
                                     random.next() % 2 == 0 ? R"(,"status":{"phase":"ok"})" : "");
    const auto found = read(plain.kind, ApiGroup::crd_v1, object);
    ASSERT_TRUE(found) << object << found.error().message;
    std::string expected = sorted(object);
    std::string got = sorted(object_of(*found, ApiGroup::crd_v1));
    if (plain.kind == core::Kind::affinity) {
      // The labels that Calico's writers add are added.
      const auto without = [](std::string text) {
        for (const char* name :
             {R"("projectcalico.org/affinity-type":"host")", R"("projectcalico.org/ip-version":"4")"}) {
          const std::size_t at = text.find(name);
          if (at != text.npos) text.erase(at, std::string_view(name).size());
        }
        const std::size_t hash = text.find(R"("projectcalico.org/hostname-hash":")");
        if (hash != text.npos) text.erase(hash, text.find('"', hash + 36) + 1 - hash);
        std::string cleaned;
        for (std::size_t i = 0; i < text.size(); ++i) {
          if (text[i] == ',' && (i + 1 == text.size() || text[i + 1] == ',' || text[i + 1] == '}')) continue;
          cleaned += text[i];
        }
        const std::size_t empty = cleaned.find(R"("labels":{},)");
        if (empty != cleaned.npos) cleaned.erase(empty, 12);
        return cleaned;
      };
      got = without(got);
      expected = without(expected);
    }
    ASSERT_EQ(got, expected);
  }
}

/// What Calico can't read has no key, and its name says what is taken.
TEST(Crd, ACidrIsReadAsCalicoReadsIt) {
  const auto spelled = [](std::string_view text) {
    std::string object(kBlock);
    return object.replace(object.find("10.0.0.64/30"), std::string_view("10.0.0.64/30").size(), text);
  };
  const auto of_affinity = [](std::string_view text) {
    return fmt::format(R"({{"metadata":{{"name":"x"}},"spec":{{"cidr":"{}","node":"n","state":"confirmed"}}}})", text);
  };
  for (const char* text :
       {"10.0.0.64/30", "10.0.0.66/30", "10.0.0.64/030", "::ffff:10.0.0.64/126", "::FFFF:A00:40/126"}) {
    const auto block = read(core::Kind::block, ApiGroup::crd_v1, spelled(text));
    ASSERT_TRUE(block) << text << ": " << block.error().message;
    EXPECT_EQ(block->key, key_of_block("10.0.0.64/30")) << text;
    EXPECT_EQ(std::get<core::Block>(block->value).cidr.to_string(), "10.0.0.64/30") << text;
    const auto affinity = read(core::Kind::affinity, ApiGroup::crd_v1, of_affinity(text));
    ASSERT_TRUE(affinity) << text << ": " << affinity.error().message;
    EXPECT_EQ(affinity->key.name, "host/n/ipv4/10.0.0.64/30") << text;
  }
  for (const char* text : {"010.0.0.64/30", "10.0.0.64", " 10.0.0.64/30", "10.0.0/30"}) {
    const auto block = read(core::Kind::block, ApiGroup::crd_v1, spelled(text));
    ASSERT_FALSE(block) << text;
    EXPECT_THAT(block.error().message, HasSubstr("no key")) << text;
    EXPECT_FALSE(read(core::Kind::affinity, ApiGroup::crd_v1, of_affinity(text))) << text;
  }
  EXPECT_EQ(core::block_cidr_of(key_of_crd_name(core::Kind::block, "10-0-0-64-30"))->to_string(), "10.0.0.64/30");
}

TEST(Crd, DamageIsNamed) {
  const auto why = [](core::Kind kind, std::string_view object) {
    const auto found = read(kind, ApiGroup::crd_v1, object);
    EXPECT_FALSE(found) << object;
    return found ? std::string() : found.error().message;
  };
  EXPECT_THAT(why(core::Kind::block, R"({"metadata":{"name":"x"}})"), HasSubstr("spec"));
  EXPECT_THAT(why(core::Kind::block, R"({"spec":{}})"), HasSubstr("metadata"));
  EXPECT_THAT(why(core::Kind::block, R"({"metadata":{"name":"x"},"spec":{"cidr":"odd"}})"), HasSubstr("no key"));
  EXPECT_THAT(why(core::Kind::block, R"({"metadata":{"name":"x"},"spec":{"cidr":"10.0.0.0/30","deleted":"perhaps"}})"),
              HasSubstr("spec.deleted"));
  EXPECT_THAT(
      why(core::Kind::affinity, R"({"metadata":{"name":"x"},"spec":{"cidr":"10.0.0.0/30","node":"n","type":"odd"}})"),
      HasSubstr("no key"));
  EXPECT_THAT(why(core::Kind::handle, R"({"metadata":{"name":"x"},"spec":{"block":{}}})"), HasSubstr("no key"));
}

}  // namespace
}  // namespace croft::wire::calico
