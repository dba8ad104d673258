#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/stores/open_store.h"
#include "os/files.h"
#include "os/scratch_directory.h"

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

TEST(EtcdUrl, FilesThatAreNotGivenComeFromTheEnvironment) {
  const struct {
    const char *url, *ca, *certificate, *key;  // of the URL and of variables
    const char* files;                         // empty: refused
  } rows[] = {
      {"https://10.0.0.1:2379", "/ca", "/cert", "/key", "/ca /cert /key"},
      {"https://10.0.0.1:2379", "/ca", "", "", "/ca  "},
      {"https://10.0.0.1:2379?ca=/c&cert=/d&key=/e", "/ca", "/cert", "/key", "/c /d /e"},
      {"https://10.0.0.1:2379?ca=/c&cert=/d", "/ca", "/cert", "/key", "/c /d "},  // a key is its certificate's
      {"https://10.0.0.1:2379", "", "/cert", "/key", ""},
      {"http://10.0.0.1:2379", "/ca", "/cert", "/key", "  "},
  };
  for (const auto& row : rows) {
    setenv("ETCD_CA_CERT_FILE", row.ca, 1);
    setenv("ETCD_CERT_FILE", row.certificate, 1);
    setenv("ETCD_KEY_FILE", row.key, 1);
    const auto place = parse_etcd_url(std::string("etcd:") + row.url);
    for (const char* name : {"ETCD_CA_CERT_FILE", "ETCD_CERT_FILE", "ETCD_KEY_FILE"}) unsetenv(name);
    if (place) {
      EXPECT_EQ(place->ca_file + " " + place->certificate_file + " " + place->key_file, row.files) << row.url;
      continue;
    }
    EXPECT_STREQ(row.files, "") << place.error().message;
    EXPECT_EQ(place.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(place.error().message, testing::HasSubstr("needs the file of the authority: add ?ca=FILE or set"));
  }
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

using testing::HasSubstr;
using testing::Not;

TEST(KubeFlags, SayWhichApiIsMeant) {
  EXPECT_EQ(with_kube_flags("kube:", "", "").value(), "kube:");
  EXPECT_EQ(with_kube_flags("kube:", "/a/b", "").value(), "kube:/a/b");
  EXPECT_EQ(with_kube_flags("kube:", "", "one@two").value(), "kube:?context=one@two");
  EXPECT_EQ(with_kube_flags("kube:?group=projectcalico.org/v3", "/a/../b", "c").value(),
            "kube:/b?group=projectcalico.org/v3&context=c");
  EXPECT_EQ(with_kube_flags("kube:/a?context=c", "/a", "c").value(), "kube:/a?context=c");
  EXPECT_TRUE(with_kube_flags("kube:", "config", "").value().starts_with("kube:/"));
}

TEST(KubeUrl, AServerWithUserAndPasswordIsNotShown) {
  const auto place = parse_kube_url("kube:https://somebody:PASSWORD@10.0.0.1");
  ASSERT_FALSE(place);
  EXPECT_THAT(place.error().message, testing::AllOf(HasSubstr("\"kube:https://(hidden)@10.0.0.1\" names no file"),
                                                    testing::Not(HasSubstr("PASSWORD"))));
}

TEST(KubeFlags, ThatContradictTheStoreAreRefused) {
  const struct {
    const char *url, *kubeconfig, *context, *message;
  } rows[] = {
      {"kube:/a", "/b", "", "two files"},
      {"kube:/a?context=c", "", "d", "two contexts"},
      {"kube:", "", "a&b", "can't name it"},
      {"kube:", "/a?b", "", "has a ?"},
  };
  for (const auto& row : rows) {
    const auto made = with_kube_flags(row.url, row.kubeconfig, row.context);
    ASSERT_FALSE(made) << row.message;
    EXPECT_EQ(made.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(made.error().message, HasSubstr(row.message));
  }
}

class Kubeconfigs : public testing::Test {
 protected:
  ~Kubeconfigs() override { unsetenv("KUBECONFIG"); }
  std::string file() {
    std::string path = directory_.path() + "/config";
    EXPECT_TRUE(os::replace_file_durably(
        path,
        "current-context: one\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:6441'}}]\n"
        "contexts: [{name: one, context: {cluster: c, user: u, namespace: n}}]\nusers: [{name: u, user: {}}]\n"));
    return path;
  }
  os::ScratchDirectory directory_;
};

TEST_F(Kubeconfigs, OneMayBeNamedByTheEnvironment) {
  const std::string path = file();
  for (const std::string& named : {path, ":" + path, path + ":"}) {
    setenv("KUBECONFIG", named.c_str(), 1);
    const auto access = kube_access({});
    ASSERT_TRUE(access) << access.error().message;
    EXPECT_EQ(access->servers.at(0).port, 6441);
    EXPECT_EQ(access->name_space, "n");
  }
  EXPECT_THAT(kube_access({{}, "other", {}}).error().message, HasSubstr("\"other\" is not among the contexts"));
  setenv("KUBECONFIG", (directory_.path() + "/none").c_str(), 1);
  EXPECT_EQ(kube_access({}).error().code, ErrorCode::not_found);
  // Nothing is named: HOME's.
  setenv("KUBECONFIG", ":", 1);
  EXPECT_THAT(kube_access({}).error().message, Not(HasSubstr("KUBECONFIG is")));
}

/// kubectl puts several together: the first alone may lead to another cluster.
TEST_F(Kubeconfigs, SeveralAreRefusedWithTheRemedy) {
  for (const std::string& named : {file() + ":/none", "/none:" + file()}) {
    setenv("KUBECONFIG", named.c_str(), 1);
    const auto access = kube_access({});
    ASSERT_FALSE(access);
    EXPECT_EQ(access.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(access.error().message, HasSubstr("--kubeconfig FILE"));
  }
}

}  // namespace
}  // namespace croft::app
