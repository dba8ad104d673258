#include "http/certificates.h"

#include <string>

#include <gtest/gtest.h>

namespace croft::os {
namespace {

using namespace std::chrono_literals;

const WallTime kNow{std::chrono::sys_days{std::chrono::year{2026} / 1 / 2}};
const Validity kYear{kNow, kNow + 24h * 365};

TEST(Certificates, SayWhatTheyWereMadeOf) {
  const auto authority = make_authority("croft-vpc", kYear);
  ASSERT_TRUE(authority) << authority.error().message;
  const auto node = make_node_certificate(*authority, "node-1.example", kYear);
  ASSERT_TRUE(node) << node.error().message;
  const auto facts = certificate_facts(node->certificate);
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ(facts->dns_names, std::vector<std::string>{"node-1.example"});
  EXPECT_EQ(facts->common_name, "node-1.example");
  EXPECT_EQ(facts->validity.from, kYear.from);
  EXPECT_EQ(facts->validity.until, kYear.until);
  EXPECT_FALSE(facts->is_authority);
  EXPECT_TRUE(certificate_facts(authority->certificate).value().is_authority);
  EXPECT_TRUE(is_signed_by(node->certificate, authority->certificate).value());
  EXPECT_TRUE(is_key_of(*node).value());
}

TEST(Certificates, TellOnesOwnFromOthers) {
  const auto one = make_authority("same-name", kYear);
  const auto other = make_authority("same-name", kYear);
  ASSERT_TRUE(one && other);
  const auto node = make_node_certificate(*one, "node-1", kYear);
  ASSERT_TRUE(node);
  EXPECT_FALSE(is_signed_by(node->certificate, other->certificate).value());
  EXPECT_FALSE(is_key_of({node->certificate, other->key}).value());
  EXPECT_FALSE(make_node_certificate({one->certificate, other->key}, "node-1", kYear)) << "another's key";
  EXPECT_FALSE(make_node_certificate(*node, "node-2", kYear)) << "a node is no CA";
}

TEST(Certificates, RefuseWhatIsNone) {
  const auto authority = make_authority("croft-vpc", kYear);
  ASSERT_TRUE(authority);
  for (const char* name : {"", "Node", "a_b", "-a", "a-", "a..b", ".a", "a.", "*.a", "a b", "a\n", "a,DNS:b"}) {
    const auto made = make_node_certificate(*authority, name, kYear);
    ASSERT_FALSE(made) << name;
    EXPECT_EQ(made.error().code, ErrorCode::invalid_argument) << name;
  }
  const std::string longest = std::string(63, 'a') + "." + std::string(63, 'b') + "." + std::string(63, 'c');
  const auto made = make_node_certificate(*authority, longest, kYear);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(certificate_facts(made->certificate).value().dns_names, std::vector<std::string>{longest});
  EXPECT_FALSE(make_node_certificate(*authority, std::string(254, 'a'), kYear));
  EXPECT_FALSE(make_node_certificate(*authority, "node-1", {kYear.until, kYear.from}));
  for (const std::string& pem : {std::string(), std::string("garbage"), authority->key,
                                 authority->certificate.substr(0, authority->certificate.size() / 2)}) {
    EXPECT_FALSE(certificate_facts(pem));
    EXPECT_FALSE(is_signed_by(pem, authority->certificate));
    EXPECT_FALSE(make_node_certificate({pem, authority->key}, "node-1", kYear));
  }
}

}  // namespace
}  // namespace croft::os
