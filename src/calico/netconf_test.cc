#include "calico/netconf.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cni/format/network.h"

namespace croft::wire::cni {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Variables = std::map<std::string, std::string>;

/// What leads to a datastore, for what is not about one.
const Variables kSomewhere = {{"KUBECONFIG", "/kubeconfig"}};

Checked<CalicoNetconf> decode(const std::string& members, const std::string& ipam = "", Command command = Command::add,
                              const std::string& args = "", const Variables& variables = kSomewhere) {
  const std::string text = R"({"cniVersion":"1.0.0","name":"net")" + (members.empty() ? "" : "," + members) +
                           R"(,"ipam":{"type":"calico-ipam")" + (ipam.empty() ? "" : "," + ipam) + "}}";
  auto network = read_network(*parse_network_config(text));
  if (!network) return network.error();
  return decode_calico_netconf(*network, args, command, [&](const char* name) {
    const auto it = variables.find(name);
    return it == variables.end() ? std::string() : it->second;
  });
}

/// "code msg" of the refusal; empty when there is none.
std::string refusal(const std::string& members, const std::string& ipam = "", Command command = Command::add,
                    const std::string& args = "", const Variables& variables = kSomewhere) {
  const auto config = decode(members, ipam, command, args, variables);
  return config ? "" : std::to_string(static_cast<int>(config.error().code)) + " " + config.error().msg;
}

DatastoreChoice etcd_choice(std::vector<std::string> endpoints, const std::string& key, const std::string& certificate,
                            const std::string& ca, const std::string& user = "", const std::string& password = "") {
  DatastoreChoice choice;
  choice.kind = DatastoreChoice::Kind::etcd;
  choice.endpoints = std::move(endpoints);
  choice.key_file = key;
  choice.cert_file = certificate;
  choice.ca_cert_file = ca;
  choice.user = user;
  choice.password = password;
  return choice;
}

TEST(CalicoNetconf, TheLeastConfigurationHasCalicosDefaults) {
  const CalicoNetconf config = *decode("");
  EXPECT_EQ(config.name, "net");
  EXPECT_EQ(config.nodename_file, "/var/lib/calico/nodename");
  EXPECT_EQ(config.ipam_lock_file, "/var/run/calico/ipam.lock");
  EXPECT_EQ(config.datastore.kind, DatastoreChoice::Kind::kubernetes);
  EXPECT_TRUE(config.assign_v4);
  EXPECT_FALSE(config.assign_v6);
  EXPECT_FALSE(config.single_block);
  EXPECT_FALSE(config.log_only_failures);
  EXPECT_EQ(config.log_megabytes_max, 100);
}

TEST(CalicoNetconf, ReadsEveryMember) {
  CalicoNetconf expected;
  expected.name = "net";
  expected.datastore = etcd_choice({"https://10.0.0.1:2379", "https://10.0.0.2:2379"}, "/k", "/c", "/ca");
  expected.nodename = "node-a";
  expected.nodename_file = "/n";
  expected.nodename_file_optional = true;
  expected.hostname = "old-name";
  expected.ipam_lock_file = "/l";
  expected.log_file = "/log";
  expected.log_megabytes_max = 7;
  expected.log_only_failures = true;
  expected.single_block = true;
  expected.assign_v4 = false;
  expected.assign_v6 = true;
  expected.asked_pools.v4 = {std::string("a"), net::Prefix::parse("10.1.0.0/16").value()};
  expected.asked_pools.v6 = {net::Prefix::parse("fd00::/48").value()};
  expected.requested_address = net::Address::parse("10.1.0.9").value();
  expected.pod = {"web-0", "shop", ""};
  const std::string ipam =
      R"("assign_ipv4":"false","assign_ipv6":"true","ipv4_pools":["a","10.1.2.3/16"],"ipv6_pools":["fd00::/48"])";
  const auto config = decode(
      R"("datastore_type":"etcdv3","etcd_endpoints":"https://10.0.0.1:2379, https://10.0.0.2:2379",
         "etcd_key_file":"/k","etcd_cert_file":"/c","etcd_ca_cert_file":"/ca",
         "nodename":"node-a","nodename_file":"/n","nodename_file_optional":true,"hostname":"old-name",
         "ipam_lock_file":"/l","log_level":"ERROR","log_file_path":"/log","log_file_max_size":7,
         "log_file_max_age":3,"log_file_max_count":4,"windows_use_single_network":true,
         "mtu":"nonsense","kubernetes":{"kubeconfig":"/x"},"policy":{"type":"k8s"},"unknown":[1])",
      ipam, Command::add, "IgnoreUnknown=1;K8S_POD_NAME=web-0;K8S_POD_NAMESPACE=shop;IP=10.1.0.9;X=1");
  ASSERT_TRUE(config) << config.error().msg;
  EXPECT_EQ(*config, expected);
}

TEST(CalicoNetconf, EachMemberOverridesItsVariable) {
  const Variables variables = {{"DATASTORE_TYPE", "etcdv3"},       {"ETCD_ENDPOINTS", "http://10.0.0.9:1"},
                               {"ETCD_KEY_FILE", "/vk"},           {"ETCD_CERT_FILE", "/vc"},
                               {"ETCD_CA_CERT_FILE", "/vca"},      {"ETCD_USERNAME", "me"},
                               {"ETCD_PASSWORD", "secret"},        {"ETCD_SCHEME", "https"},
                               {"ETCD_AUTHORITY", "10.0.0.8:2379"}};
  const DatastoreChoice from_variables = decode("", "", Command::del, "", variables)->datastore;
  EXPECT_EQ(from_variables, etcd_choice({"http://10.0.0.9:1"}, "/vk", "/vc", "/vca", "me", "secret"));
  const DatastoreChoice from_members =
      decode(
          R"("etcd_endpoints":"http://10.0.0.1:2","etcd_key_file":"/k","etcd_cert_file":"/c","etcd_ca_cert_file":"/ca")",
          "", Command::del, "", variables)
          ->datastore;
  EXPECT_EQ(from_members, etcd_choice({"http://10.0.0.1:2"}, "/k", "/c", "/ca", "me", "secret"));
}

TEST(CalicoNetconf, KubernetesIsReachedAsCalicoReachesIt) {
  const std::string members = R"("datastore_type":"kubernetes","calico_api_group":"projectcalico.org/v3",
      "kubernetes":{"kubeconfig":"/etc/cni/net.d/calico-kubeconfig","k8s_api_root":"https://10.96.0.1:443"},
      "policy":{"type":"k8s","k8s_auth_token":"abc"})";
  DatastoreChoice expected;
  expected.kubeconfig = "/etc/cni/net.d/calico-kubeconfig";
  expected.api_root = "https://10.96.0.1:443";
  expected.token = "abc";
  expected.api_group = "projectcalico.org/v3";
  EXPECT_EQ(decode(members, "", Command::del)->datastore, expected);
  EXPECT_EQ(url_of(expected), "kube:/etc/cni/net.d/calico-kubeconfig");
  const Variables variables = {{"ETCD_KEY_FILE", "/vk"}, {"KUBECONFIG", "/other"}, {"K8S_API_ENDPOINT", "https://a"},
                               {"K8S_API_TOKEN", "t"},   {"K8S_CA_FILE", "/ca"},   {"K8S_KEY_FILE", "/k"},
                               {"K8S_CERT_FILE", "/c"},  {"CALICO_API_GROUP", "x"}};
  EXPECT_EQ(decode(members, "", Command::add, "", variables)->datastore.kubeconfig, expected.kubeconfig);
  const DatastoreChoice by_variables = decode("", "", Command::add, "", variables)->datastore;
  EXPECT_EQ(by_variables.kubeconfig, "/other");
  EXPECT_EQ(by_variables.ca_cert_file, "/ca");
  EXPECT_EQ(by_variables.key_file, "/k");
  EXPECT_EQ(by_variables.cert_file, "/c");
  EXPECT_EQ(by_variables.api_group, "x");
  // In a pod nothing has to be said.
  EXPECT_EQ(decode("", "", Command::add, "", {{"KUBERNETES_SERVICE_HOST", "10.96.0.1"}})->datastore, DatastoreChoice());
}

TEST(CalicoNetconf, WhatLeadsToNoApiIsSaid) {
  EXPECT_THAT(refusal("", "", Command::add, "", {}),
              StartsWith("7 invalid network config: kubernetes.kubeconfig: is missing"));
  EXPECT_THAT(refusal(R"("kubernetes":{"kubeconfig":"kubeconfig"})"), HasSubstr("is no absolute path"));
  EXPECT_THAT(refusal(R"("kubernetes":{"kubeconfig":5})"), StartsWith("999 "));
  EXPECT_THAT(refusal("", "", Command::add, "", {{"KUBECONFIG", "/k"}, {"K8S_KEY_FILE", "/k"}}),
              HasSubstr("needs K8S_CERT_FILE beside it"));
  EXPECT_THAT(refusal("", "", Command::add, "", {{"KUBECONFIG", "/k"}, {"K8S_INSECURE_SKIP_TLS_VERIFY", "true"}}),
              HasSubstr("K8S_CA_FILE"));
  // No message repeats a token.
  EXPECT_THAT(refusal(R"("policy":{"k8s_auth_token":["top-secret"]})"),
              AllOf(StartsWith("999 "), Not(HasSubstr("top-secret"))));
}

TEST(CalicoNetconf, WithoutATypeEndpointsMeanEtcd) {
  EXPECT_EQ(decode(R"("etcd_endpoints":"http://10.0.0.1:2379")")->datastore.kind, DatastoreChoice::Kind::etcd);
  EXPECT_THAT(decode(R"("etcd_authority":"10.0.0.1:2379")")->datastore.endpoints, ElementsAre("http://10.0.0.1:2379"));
  EXPECT_THAT(decode(R"("etcd_authority":"10.0.0.1:2379","etcd_scheme":"https","etcd_ca_cert_file":"/ca")")
                  ->datastore.endpoints,
              ElementsAre("https://10.0.0.1:2379"));
}

TEST(CalicoNetconf, AStoreUrlComesBeforeCalicosDatastore) {
  const auto by_member = decode(R"("datastore_type":"kubernetes")", R"("store":"sqlite:/x")");
  EXPECT_EQ(by_member->datastore.url, "sqlite:/x");
  const auto by_variable = decode(R"("datastore_type":"etcdv3")", "", Command::add, "", {{"CROFT_STORE", "sqlite:/y"}});
  EXPECT_EQ(by_variable->datastore.url, "sqlite:/y");
  EXPECT_EQ(decode("", R"("store":"sqlite:/x")", Command::add, "", {{"CROFT_STORE", "sqlite:/y"}})->datastore.url,
            "sqlite:/x");
}

TEST(CalicoNetconf, SwitchesAreStrings) {
  EXPECT_TRUE(decode("", R"("assign_ipv4":"no")")->assign_v4) << "on unless \"false\"";
  EXPECT_FALSE(decode("", R"("assign_ipv6":"yes")")->assign_v6) << "off unless \"true\"";
  EXPECT_FALSE(decode("", R"("assign_ipv4":false)")->assign_v4);
}

TEST(CalicoNetconf, ErrorsNameTheMember) {
  EXPECT_EQ(refusal(R"("datastore_type":"zookeeper")"),
            "7 invalid network config: datastore_type: \"zookeeper\" is no datastore: give \"etcdv3\" or "
            "\"kubernetes\"");
  EXPECT_THAT(refusal(R"("datastore_type":"etcdv3")"),
              StartsWith("7 invalid network config: etcd_endpoints: is missing"));
  EXPECT_THAT(refusal(R"("etcd_endpoints":5)"),
              StartsWith("999 invalid network config: etcd_endpoints: an integer (5)"));
  EXPECT_THAT(refusal(R"("etcd_endpoints":"10.0.0.1:2379")"),
              HasSubstr("etcd_endpoints: \"10.0.0.1:2379\" is no endp"));
  EXPECT_THAT(refusal(R"("etcd_endpoints":"http://10.0.0.1:2379,")"), HasSubstr("etcd_endpoints: \"\" is no endpoint"));
  EXPECT_THAT(refusal(R"("etcd_endpoints":"https://10.0.0.1:2379")"),
              HasSubstr("etcd_ca_cert_file: is missing: https endpoints need it"));
  EXPECT_THAT(refusal(R"("etcd_discovery_srv":"example.com")"), HasSubstr("list the members in etcd_endpoints"));
  EXPECT_THAT(refusal(R"("etcd_endpoints":"http://10.0.0.1:1","etcd_cert_file":"/c")"),
              HasSubstr("etcd_cert_file: \"/c\" needs etcd_key_file beside it"));
  EXPECT_THAT(refusal(R"("etcd_endpoints":"http://10.0.0.1:1","etcd_key_file":"/k")"),
              HasSubstr("etcd_key_file: \"/k\" needs etcd_cert_file beside it"));
  EXPECT_THAT(refusal("", "", Command::add, "", {{"DATASTORE_TYPE", "x"}}),
              HasSubstr("environment variable DATASTORE_T"));
  EXPECT_THAT(refusal("", "", Command::add, "", {{"ETCD_ENDPOINTS", "a\nb"}}), HasSubstr("control characters"));
  EXPECT_THAT(refusal("", "", Command::add, "", {{"ETCD_PASSWORD", "secret\n"}}),
              AllOf(HasSubstr("ETCD_PASSWORD"), Not(HasSubstr("secret"))));
  for (const char* config :
       {R"("etcd_endpoints":"http://u:secret@10.0.0.1:1")", R"("etcd_endpoints":"u:secret@10.0.0.1:1")",
        R"("etcd_endpoints":"http://10.0.0.1:1,http://u:sec,ret@10.0.0.1:1")",
        R"("etcd_authority":"u:secret@10.0.0.1:1")", R"("etcd_endpoints":"http://u:secret%4010.0.0.1:1")"}) {
    EXPECT_THAT(refusal(config), AllOf(StartsWith("7 "), HasSubstr("has a user in it"), HasSubstr("ETCD_PASSWORD"),
                                       Not(HasSubstr("secret")), Not(HasSubstr("sec,"))))
        << config;
  }
  EXPECT_THAT(refusal("", "", Command::add, "", {{"ETCD_ENDPOINTS", "http://u:secret@10.0.0.1:1\n"}}),
              Not(HasSubstr("secret")));
  EXPECT_THAT(refusal(R"("nodename":"a/b")"), StartsWith("7 invalid network config: nodename: "));
  EXPECT_THAT(refusal(R"("hostname":"a b")"), StartsWith("7 invalid network config: hostname: "));
  EXPECT_THAT(refusal(R"("nodename_file":7)"), HasSubstr("nodename_file: an integer (7)"));
  EXPECT_THAT(refusal(R"("nodename_file_optional":"yes")"), HasSubstr("nodename_file_optional: a string"));
  EXPECT_THAT(refusal(R"("ipam_lock_file":[])"), HasSubstr("ipam_lock_file: an array"));
  EXPECT_THAT(refusal(R"("log_file_max_size":-1)"), HasSubstr("log_file_max_size: -1 is out of range"));
  EXPECT_THAT(refusal(R"("windows_use_single_network":"x")"), HasSubstr("windows_use_single_network: a string"));
  EXPECT_THAT(refusal("", R"("ipv4_pools":"a")"), HasSubstr("ipam.ipv4_pools: a string"));
  EXPECT_THAT(refusal("", R"("ipv4_pools":["fd00::/64"])"), HasSubstr("ipam.ipv4_pools[0]: \"fd00::/64\" is not IPv4"));
  EXPECT_THAT(refusal("", R"("assign_ipv4":1)"), HasSubstr("ipam.assign_ipv4: an integer (1)"));
  EXPECT_THAT(refusal("", "", Command::add, "IP=x"), StartsWith("4 ARGS: "));
  EXPECT_EQ(refusal("", "", Command::add, "IP=10.1.0.9,fd00::9"),
            "4 ARGS: IP lists 2 addresses; calico-ipam, like Calico's own, takes one");
  EXPECT_EQ(refusal("", "", Command::del, "IP=10.1.0.9,fd00::9"), "");
  EXPECT_THAT(refusal("", "", Command::add, "NEW=1"), StartsWith("4 ARGS: unknown args"));
}

TEST(CalicoNetconf, DelNeedsTheDatastoreAlone) {
  EXPECT_EQ(
      refusal(R"("nodename":"a/b","ipam_lock_file":5,"log_file_path":5)", R"("ipv4_pools":5)", Command::del, "NEW=1"),
      "");
  EXPECT_THAT(refusal(R"("etcd_endpoints":5)", "", Command::del), HasSubstr("etcd_endpoints"));
  EXPECT_THAT(refusal("", R"("store":5)", Command::del), HasSubstr("ipam.store"));
  EXPECT_EQ(refusal(R"("etcd_endpoints":5)", R"("store":"sqlite:/x")", Command::del), "");
}

TEST(CalicoNetconf, KubernetesNeedsPodAndNamespace) {
  EXPECT_TRUE(decode("", "", Command::del, "K8S_POD_NAME=p;K8S_POD_NAMESPACE=n")->names_pod());
  EXPECT_FALSE(decode("", "", Command::del, "K8S_POD_NAME=p")->names_pod());
  EXPECT_FALSE(decode("", "", Command::del, "K8S_POD_NAME=;K8S_POD_NAMESPACE=n")->names_pod());
}

}  // namespace
}  // namespace croft::wire::cni
