#include "cli/stores/etcd_url.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cli/stores/open_store.h"

namespace croft::app {
namespace {

TEST(EtcdUrl, ServicesOfKubernetesAreAskedForByTheirPrefix) {
  const auto plain = parse_etcd_url("etcd:http://10.0.0.1:2379");
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(plain->kubernetes_prefix, "");
  const auto place = parse_etcd_url("etcd:http://10.0.0.1:2379?user=u&kubernetes=/registry");
  ASSERT_TRUE(place) << place.error().message;
  EXPECT_EQ(place->kubernetes_prefix, "/registry");
  EXPECT_EQ(place->user, "u");
}

TEST(EtcdUrl, NoPrefixAndNoOptionOfEtcdAreRefused) {
  for (const char* url : {"etcd:http://10.0.0.1:2379?kubernetes=", "etcd:http://10.0.0.1:2379?kubernetes",
                          "etcd:http://10.0.0.1:2379?kubernete=/registry"}) {
    const auto place = parse_etcd_url(url);
    ASSERT_FALSE(place) << url;
    EXPECT_EQ(place.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(place.error().message.find("kubernetes"), std::string::npos) << place.error().message;
  }
}

TEST(EtcdUrl, ASecretInAnEndpointIsRefusedAndNotShown) {
  for (const char* url : {"etcd:https://u:geheim@10.0.0.1:2379", "etcd:https://10.0.0.1:2379,http://geheim@10.0.0.2",
                          "etcd:http://u:geheim%4010.0.0.1:2379", "etcd:https://u%40x:geheim@10.0.0.1:2379"}) {
    const auto place = parse_etcd_url(url);
    ASSERT_FALSE(place) << url;
    EXPECT_EQ(place.error().message.find("geheim"), std::string::npos) << place.error().message;
    EXPECT_NE(place.error().message.find("password-file"), std::string::npos) << place.error().message;
  }
  const auto empty = parse_etcd_url("etcd:,http://u:geheim@10.0.0.2");
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().message.find("geheim"), std::string::npos) << empty.error().message;
  EXPECT_NE(empty.error().message.find("names no endpoint"), std::string::npos) << empty.error().message;
}

TEST(EtcdUrl, TheNameOfAUserIsAsItIsGiven) {
  const auto place = parse_etcd_url("etcd:https://10.0.0.1:2379?ca=/ca&user=a@b%40&password-file=/p%40");
  ASSERT_TRUE(place) << place.error().message;
  EXPECT_EQ(place->user, "a@b%40") << "nothing is decoded";
  EXPECT_EQ(place->password_file, "/p%40");
}

TEST(EtcdUrl, APasswordNeedsEncryptionOnEveryEndpoint) {
  const auto refused = [](std::vector<std::string> endpoints, const std::string& user) {
    EtcdPlace place;
    place.endpoints = std::move(endpoints);
    place.user = user;
    const auto checked = check_secrecy(place);
    return !checked && checked.error().code == ErrorCode::invalid_argument;
  };
  EXPECT_TRUE(refused({"http://10.0.0.1:2379"}, "u"));
  EXPECT_TRUE(refused({"https://10.0.0.1:2379", "http://10.0.0.2:2379"}, "u"));
  EXPECT_TRUE(refused({"https://10.0.0.1:2379", "http://10.0.0.2:2379"}, ""));
  EXPECT_FALSE(refused({"https://10.0.0.1:2379", "https://10.0.0.2:2379"}, "u"));
  EXPECT_FALSE(refused({"unix:/run/etcd.sock"}, "u"));
  EXPECT_FALSE(refused({"http://10.0.0.1:2379"}, ""));
}

TEST(EtcdUrl, TheRegistryHasServicesOnlyWhenAskedTo) {
  EtcdPlace place;
  const auto own = kubernetes_registry(place);
  ASSERT_TRUE(own);
  EXPECT_FALSE((*own)->has(core::Kind::service));
  EXPECT_EQ((*own)->root_of(core::Kind::range_allocation), "/registry/ranges/");
  place.kubernetes_prefix = "/other";
  const auto of_kubernetes = kubernetes_registry(place);
  ASSERT_TRUE(of_kubernetes);
  EXPECT_EQ((*of_kubernetes)->root_of(core::Kind::service), "/other/services/specs/");
  place.kubernetes_prefix = "other";
  EXPECT_FALSE(kubernetes_registry(place));
}

}  // namespace
}  // namespace croft::app
