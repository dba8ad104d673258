#include "cli/stores/kube_url.h"

#include <sys/stat.h>

#include <cstdlib>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/files.h"
#include "os/scratch_directory.h"
#include "store/kube/format/kubeconfig_yaml.h"

namespace croft::app {
namespace {

using testing::AllOf;
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

/// "A" is a server, "B" another: kubectl asks the one that a row expects.
TEST_F(Kubeconfigs, SeveralArePutTogetherAsKubectlDoes) {
  const auto text = [](const std::string& current, const std::string& contexts, const std::string& clusters) {
    return "current-context: " + current + "\ncontexts: [" + contexts + "]\nclusters: [" + clusters +
           "]\nusers: [{name: u, user: {}}]\n";
  };
  const auto context = [](const std::string& name, const std::string& cluster) {
    return "{name: " + name + ", context: {cluster: " + cluster + ", user: u}}";
  };
  const auto cluster = [](const std::string& name, char server) {
    return "{name: " + name + ", cluster: {server: 'http://127.0.0.1:" + (server == 'A' ? "6441" : "6442") + "'}}";
  };
  const struct {
    const char* what;
    std::string first, second, asked;
    int port;  ///< 0: an error
  } rows[] = {
      {"the same context in both", text("x", context("x", "c"), cluster("c", 'A')),
       text("x", context("x", "c"), cluster("c", 'B')), "", 6441},
      {"the second alone says which is the current one", text("''", context("x", "c"), cluster("c", 'A')),
       text("x", context("x", "c"), cluster("c", 'B')), "", 6441},
      {"a cluster of the same name in both, a context in the second", text("x", context("x", "c"), cluster("c", 'A')),
       text("y", context("y", "c"), cluster("c", 'B')), "y", 6441},
      {"the first says nothing but which is the current one", "current-context: y\n",
       text("z", context("y", "a") + ", " + context("z", "b"), cluster("a", 'A') + ", " + cluster("b", 'B')), "", 6441},
      {"cluster and user in the second", "current-context: x\ncontexts: [" + context("x", "a") + "]\n",
       text("z", context("z", "b"), cluster("a", 'A') + ", " + cluster("b", 'B')), "", 6441},
      {"the current one of the first is a context of the second", text("y", context("x", "b"), cluster("b", 'B')),
       text("z", context("y", "a"), cluster("a", 'A')), "", 6441},
      {"the first is empty", "", text("x", context("x", "c"), cluster("c", 'A')), "", 6441},
      {"the first has no context", "kind: Config\n", text("x", context("x", "c"), cluster("c", 'A')), "", 6441},
      {"an entry of the first counts as a whole", text("x", context("x", "c"), "{name: c, cluster: {}}"),
       text("x", context("x", "c"), cluster("c", 'B')), "", 0},
      {"no file has the current one", text("w", context("x", "c"), cluster("c", 'A')),
       text("x", context("y", "c"), cluster("c", 'B')), "", 0},
      {"no file has the one that was asked for", text("x", context("x", "c"), cluster("c", 'A')),
       text("x", context("y", "c"), cluster("c", 'B')), "three", 0},
      {"both are empty", "", "", "", 0},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    const std::string first = directory_.path() + "/first", second = directory_.path() + "/second";
    ASSERT_TRUE(os::replace_file_durably(first, row.first));
    ASSERT_TRUE(os::replace_file_durably(second, row.second));
    setenv("KUBECONFIG", (":" + directory_.path() + "/none:" + first + ":" + first + ":" + second).c_str(), 1);
    const auto access = kube_access({{}, row.asked, {}}, wire::kubeconfig_json);
    ASSERT_EQ(access.has_value(), row.port != 0) << (access ? "" : access.error().message);
    if (access) {
      EXPECT_EQ(access->servers.at(0).port, row.port);
    } else {
      EXPECT_EQ(access.error().code, ErrorCode::invalid_argument);
      EXPECT_THAT(access.error().message, AllOf(HasSubstr(first), HasSubstr(row.asked)));
    }
  }
  setenv("KUBECONFIG", (directory_.path() + "/none:" + directory_.path() + "/nor").c_str(), 1);
  EXPECT_EQ(kube_access({}, wire::kubeconfig_json).error().code, ErrorCode::not_found);
}

TEST_F(Kubeconfigs, PathsBeginWhereTheirFileLies) {
  for (const char* folder : {"/a", "/b"}) ASSERT_TRUE(os::make_directories(directory_.path() + folder));
  const std::string first = directory_.path() + "/a/one", second = directory_.path() + "/b/two";
  ASSERT_TRUE(os::replace_file_durably(first,
                                       "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
                                       "users: [{name: u, user: {tokenFile: token}}]\n"));
  ASSERT_TRUE(os::replace_file_durably(
      second, "clusters: [{name: c, cluster: {server: 'https://127.0.0.1', certificate-authority: ca}}]\n"));
  setenv("KUBECONFIG", (first + ":" + second).c_str(), 1);
  const auto access = kube_access({}, wire::kubeconfig_json);
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->token_file, directory_.path() + "/a/token");
  EXPECT_EQ(access->ca.file, directory_.path() + "/b/ca");
}

/// Of what the file says that is used; the others' is not looked at.
TEST_F(Kubeconfigs, TheModeOfTheFileWithTheSecretCounts) {
  const std::string user = "users: [{name: u, user: {token: t}}]\n";
  const std::string rest =
      "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: "
      "{server: "
      "'https://127.0.0.1', certificate-authority: /ca}}]\n";
  const std::string first = directory_.path() + "/first", second = directory_.path() + "/second";
  setenv("KUBECONFIG", (first + ":" + second).c_str(), 1);
  const auto read = [&](const std::string& one, mode_t one_mode, const std::string& two, mode_t two_mode) {
    EXPECT_TRUE(os::replace_file_durably(first, one) && os::replace_file_durably(second, two));
    EXPECT_EQ(::chmod(first.c_str(), one_mode) | ::chmod(second.c_str(), two_mode), 0);
    const auto access = kube_access({}, wire::kubeconfig_json);
    return access ? access->token : access.error().message;
  };
  EXPECT_EQ(read(rest, 0644, user, 0600), "t");
  EXPECT_THAT(read(rest, 0600, user, 0644), AllOf(HasSubstr(second), HasSubstr("644")));
  EXPECT_EQ(read(rest + user, 0600, user, 0644), "t");
  EXPECT_THAT(read(rest + user, 0644, user, 0600), AllOf(HasSubstr(first), HasSubstr("644")));
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
