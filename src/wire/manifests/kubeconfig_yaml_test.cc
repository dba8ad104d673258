#include "wire/manifests/kubeconfig_yaml.h"

#include <gtest/gtest.h>

namespace croft::wire {
namespace {

TEST(KubeconfigYaml, BecomesTheSameJson) {
  EXPECT_EQ(kubeconfig_json(
                "# as kubectl writes it\napiVersion: v1\nclusters:\n- cluster:\n    server: https://a\n  name: k\n"
                "contexts:\n- context: {cluster: k, user: \"7\"}\nexec: ~\nyes: no\n")
                .value(),
            R"({"apiVersion":"v1","clusters":[{"cluster":{"server":"https://a"},"name":"k"}],)"
            R"("contexts":[{"context":{"cluster":"k","user":"7"}}],"exec":null,"yes":false})");
  EXPECT_EQ(kubeconfig_json(R"({"a": "\u00e4\n"})").value(), "{\"a\":\"\u00e4\\n\"}");
}

TEST(KubeconfigYaml, IsOneDocument) {
  EXPECT_EQ(kubeconfig_json("").error().message, "kubeconfig: it is empty");
  EXPECT_EQ(kubeconfig_json("---\n---\n").error().message, "kubeconfig: it is empty");
  EXPECT_EQ(kubeconfig_json("a: 1\n---\nb: 2\n").error().message, "kubeconfig: it has 2 documents, one is wanted");
  const auto broken = kubeconfig_json("token: 'secret\n");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(broken.error().message.find("secret"), std::string::npos) << broken.error().message;
  EXPECT_FALSE(kubeconfig_json("a: &x [*x]\n"));
}

/// It may be a token, or a part of one, wherever the text is broken.
TEST(KubeconfigYaml, NothingOfItIsRepeated) {
  for (const auto& [text, message] :
       {std::pair{"users: !secret x\n", "kubeconfig: line 1: the tag is not known"},
        {"a: 1\n\"secret\": 1\n\"secret\": 2\n", "kubeconfig: line 3: the key comes twice"}}) {
    EXPECT_EQ(kubeconfig_json(text).error().message, message);
  }
  for (const char* text :
       {"users: *secret\n", "a: b: secret: x: [\n", "users:\n\ttoken: secret\n", "%secret\n", "- secret: [}"}) {
    const auto broken = kubeconfig_json(text);
    ASSERT_FALSE(broken) << text;
    EXPECT_EQ(broken.error().message.find("secret"), std::string::npos) << broken.error().message;
  }
}

}  // namespace
}  // namespace croft::wire
