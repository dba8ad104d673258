#include "app/kube_url.h"

#include <cstdlib>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/files.h"
#include "os/scratch_directory.h"
#include "wire/manifests/kubeconfig_yaml.h"

namespace croft::app {
namespace {

using testing::HasSubstr;

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
  std::string file(const std::string& name, const std::string& context) {
    std::string path = directory_.path() + "/" + name;
    const std::string text =
        "apiVersion: v1\nkind: Config\ncurrent-context: " + context +
        "\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:" + (context == "one" ? "6441" : "6442") +
        "'}}]\ncontexts: [{name: " + context + ", context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\n";
    EXPECT_TRUE(os::replace_file_durably(path, text));
    return path;
  }
  os::ScratchDirectory directory_;
};

TEST_F(Kubeconfigs, OfSeveralTheFirstThatHasTheContext) {
  const std::string listed = directory_.path() + "/none:" + file("a", "one") + ":" + file("b", "two");
  setenv("KUBECONFIG", listed.c_str(), 1);
  const auto port = [](const KubePlace& place) {
    const auto access = kube_access(place, wire::kubeconfig_json);
    EXPECT_TRUE(access) << access.error().message;
    return access ? access->servers.at(0).port : 0;
  };
  EXPECT_EQ(port({}), 6441);
  EXPECT_EQ(port({{}, "two", {}}), 6442);
  const auto missing = kube_access({{}, "three", {}}, wire::kubeconfig_json);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(missing.error().message, HasSubstr("three"));
}

/// kubectl would go to the first one's cluster, or fail: the second one's is another.
TEST_F(Kubeconfigs, OneThatCannotBeUsedIsNotPassedOver) {
  const std::string second = file("b", "two");
  const std::string cluster = "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:6441'}}]\n";
  const std::string context = "contexts: [{name: one, context: {cluster: c, user: u}}]\n";
  const std::vector<std::string> unusable = {
      "current-context: one\n" + cluster + context + "users: [{name: u, user: {exec: {command: x}}}]\n",
      "current-context: other\n" + cluster + context + "users: [{name: u, user: {}}]\n",
      "a: [b\n",
      std::string(2 << 20, ' '),
  };
  for (const std::string& text : unusable) {
    const std::string first = directory_.path() + "/first";
    ASSERT_TRUE(os::replace_file_durably(first, text));
    setenv("KUBECONFIG", (first + ":" + second).c_str(), 1);
    const auto access = kube_access({}, wire::kubeconfig_json);
    ASSERT_FALSE(access) << text.substr(0, 80);
    EXPECT_THAT(access.error().message, HasSubstr(first));
  }
  // One that has no current context leaves the choice to the next, as for kubectl.
  ASSERT_TRUE(os::replace_file_durably(directory_.path() + "/first", "kind: Config\n"));
  EXPECT_EQ(kube_access({}, wire::kubeconfig_json)->context, "two");
}

}  // namespace
}  // namespace croft::app
