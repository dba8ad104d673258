#include "store/kube/format/yaml_documents.h"

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
  EXPECT_EQ(kubeconfig_json("").error().message, "kubeconfig: it has 0 documents, one is wanted");
  EXPECT_EQ(kubeconfig_json("---\n---\n").error().message, "kubeconfig: it has 0 documents, one is wanted");
  EXPECT_EQ(kubeconfig_json("a: 1\n---\nb: 2\n").error().message, "kubeconfig: it has 2 documents, one is wanted");
  const auto broken = kubeconfig_json("token: 'secret\n");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(broken.error().message.find("secret"), std::string::npos) << broken.error().message;
  EXPECT_FALSE(kubeconfig_json("a: &x [*x]\n"));
}

}  // namespace
}  // namespace croft::wire
