#include "store/kube/format/kubeconfig.h"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text/base64.h"
#include "store/kube/format/yaml.h"

namespace croft::wire::kube {
namespace {

/// A kubeconfig with one context, of the members of its cluster and its user.
std::string config(const std::string& cluster, const std::string& user, const std::string& context = "") {
  return R"({"kind":"Config","apiVersion":"v1","preferences":{},"current-context":"c","clusters":[{"name":"k","cluster":{)" +
         cluster + R"(}}],"users":[{"name":"u","user":{)" + user +
         R"(}}],"contexts":[{"name":"c","context":{"cluster":"k","user":"u")" + context + "}}]}";
}
const std::string kHttps = R"("server":"https://10.0.0.1:6443","certificate-authority":"ca.crt")";
const std::string kPlain = R"("server":"http://127.0.0.1:8001")";

std::string refusal(const std::string& json, const std::string& context = "") {
  const auto access = decode_kubeconfig(json, "/etc/croft", context);
  if (access) return "accepted";
  EXPECT_THAT(access.error().code, testing::AnyOf(ErrorCode::invalid_argument, ErrorCode::refused_by_configuration));
  return access.error().message;
}

TEST(Kubeconfig, EveryMemberArrives) {
  const auto access = decode_kubeconfig(
      config(R"("server":"https://[fd00::1]/k8s/c1/","certificate-authority-data":")" + encode_base64("CA\n") +
                 R"(","tls-server-name":"kubernetes","disable-compression":true)",
             R"("client-certificate":"pki/a.crt","client-key":"/pki/a.key","token":"t0","tokenFile":"token")",
             R"(,"namespace":"kube-system")"),
      "/etc/croft");
  ASSERT_TRUE(access) << access.error().message;
  KubeAccess expected;
  expected.servers = {{true, "fd00::1", true, 443, "/k8s/c1"}};
  expected.ca.data = "CA\n";
  expected.tls_server_name = "kubernetes";
  expected.certificate.file = "/etc/croft/pki/a.crt";
  expected.key.file = "/pki/a.key";
  expected.token = "t0";
  expected.token_file = "/etc/croft/token";
  expected.name_space = "kube-system";
  EXPECT_EQ(*access, expected);
  EXPECT_EQ(access->servers.front().text(), "https://[fd00::1]/k8s/c1");
  EXPECT_TRUE(access->carries_secret());
}

TEST(Kubeconfig, PemAsDataMayHaveLineBreaks) {
  const auto access =
      decode_kubeconfig(config(kHttps, R"("client-certificate-data":"Q0VS\nVA==","client-key-data":"S0VZ")"), "");
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->certificate.data, "CERT");
  EXPECT_EQ(access->key.data, "KEY");
  EXPECT_EQ(access->ca.file, "ca.crt");  // no directory: as it stands
  EXPECT_TRUE(access->carries_secret());
}

TEST(Kubeconfig, ServersOfTheExtensionComeAfterTheClustersOwn) {
  const std::string more =
      R"(,"extensions":[{"name":"minikube","extension":{"servers":7}},)"
      R"({"name":"croft","extension":{"servers":["https://10.0.0.2:6443","https://[fd00::3]:6443"]}}])";
  const auto access = decode_kubeconfig(config(kHttps + more, ""), "");
  ASSERT_TRUE(access) << access.error().message;
  ASSERT_EQ(access->servers.size(), 3U);
  EXPECT_EQ(access->servers[2].host, "fd00::3");
  const std::string mixed = R"(,"extensions":[{"name":"croft","extension":{"servers":["http://10.0.0.2:80"]}}])";
  EXPECT_NE(refusal(config(kHttps + mixed, R"("token":"t")")).find("http://10.0.0.2 is no https"), std::string::npos);
  EXPECT_NE(refusal(config(kHttps + R"(,"extensions":[{"name":"croft","extension":{"server":[]}}])", ""))
                .find("clusters[k].cluster.extensions[croft]: "),
            std::string::npos);
}

TEST(Kubeconfig, TheContextIsChosen) {
  const std::string two =
      R"({"current-context":"a","clusters":[{"name":"k","cluster":{)" + kPlain +
      R"(}}],"users":[{"name":"u","user":{}}],)"
      R"("contexts":[{"name":"a","context":{"cluster":"k","user":"u"}},{"name":"b","context":{"cluster":"k","user":"u","namespace":"n"}},)"
      R"({"name":"no-cluster","context":{"cluster":"x","user":"u"}},{"name":"no-user","context":{"cluster":"k","user":"y"}},)"
      R"({"name":"nobody","context":{"cluster":"k"}}]})";
  EXPECT_EQ(decode_kubeconfig(two, "")->name_space, "");
  EXPECT_EQ(decode_kubeconfig(two, "", "b")->name_space, "n");
  EXPECT_EQ(refusal(two, "z"),
            "kubeconfig: the context that was asked for: \"z\" is not among the contexts; kubectl config view shows "
            "them");
  EXPECT_EQ(refusal(two, "no-cluster"),
            "kubeconfig: contexts[no-cluster].context.cluster: \"x\" is not among the clusters; kubectl config view "
            "shows them");
  EXPECT_EQ(refusal(two, "no-user"),
            "kubeconfig: contexts[no-user].context.user: \"y\" is not among the users; kubectl config view shows them");
  EXPECT_EQ(refusal(two, "nobody"),
            "kubeconfig: contexts[nobody].context.user: it is missing; name one of the users, kubectl config view "
            "shows them");
  for (const char* text : {"{}", "[]", "7", "null"}) {
    EXPECT_EQ(refusal(text),
              "kubeconfig: current-context: it is missing; name one of the contexts, kubectl config view shows them")
        << text;
  }
  EXPECT_EQ(refusal(R"({"current-context":"a"})"),
            "kubeconfig: current-context: \"a\" is not among the contexts; kubectl config view shows them");
}

TEST(Kubeconfig, WhatCroftDoesNotDoIsRefusedWithTheMember) {
  for (const auto& [member, value] :
       std::vector<std::pair<std::string, std::string>>{{"exec", R"({"command":"aws"})"},
                                                        {"exec", "{}"},
                                                        {"auth-provider", R"({"name":"gcp"})"},
                                                        {"username", R"("admin")"},
                                                        {"as", R"("root")"}}) {
    const auto access = decode_kubeconfig(config(kHttps, "\"" + member + "\":" + value), "");
    ASSERT_FALSE(access) << member;
    EXPECT_EQ(access.error().code, ErrorCode::refused_by_configuration) << member;
    EXPECT_NE(access.error().message.find("kubeconfig: users[u].user." + member + ": "), std::string::npos)
        << access.error().message;
  }
  // What says nothing asks for nothing.
  EXPECT_EQ(refusal(config(kHttps, R"("exec":null,"username":"","as":"","auth-provider":null)")), "accepted");
  for (const std::string member : {R"("proxy-url":"http://10.0.0.9:3128")", R"("insecure-skip-tls-verify":true)"}) {
    const auto access = decode_kubeconfig(config(kHttps + "," + member, ""), "");
    ASSERT_FALSE(access) << member;
    EXPECT_EQ(access.error().code, ErrorCode::refused_by_configuration);
    EXPECT_NE(access.error().message.find("clusters[k].cluster." + member.substr(1, member.find('"', 1) - 1) + ": "),
              std::string::npos)
        << access.error().message;
  }
  EXPECT_EQ(refusal(config(kHttps + R"(,"insecure-skip-tls-verify":false,"proxy-url":"")", "")), "accepted");
}

TEST(Kubeconfig, OfAnotherUserNothingIsRefused) {
  const std::string other = R"({"name":"o","user":{"exec":{"command":"aws"},"token":7}},)";
  std::string text = config(kHttps, "");
  text.insert(text.find(R"({"name":"u")"), other);
  EXPECT_EQ(refusal(text), "accepted");
}

TEST(Kubeconfig, PlainHttpHasNoIdentity) {
  EXPECT_EQ(refusal(config(kPlain, "")), "accepted");
  for (const std::string user :
       {R"("token":"t")", R"("tokenFile":"t")", R"("client-certificate":"a","client-key":"b")"}) {
    EXPECT_EQ(refusal(config(kPlain, user)),
              "kubeconfig: http://127.0.0.1:8001 is no https: whoever listens on the way would learn who it is");
  }
}

TEST(Kubeconfig, WhatBelongsTogetherAndWhatDoesNot) {
  const auto says = [](const std::string& cluster, const std::string& user, const std::string& part) {
    const std::string text = refusal(config(cluster, user));
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  says(R"("server":"https://10.0.0.1")", "", "https://10.0.0.1: who signed its certificate is not said");
  says("", "", "clusters[k].cluster.server: URL \"\" must begin with http:// or https://");
  says(kHttps, R"("client-certificate":"a")", "client-key belong together");
  says(kHttps, R"("client-key-data":"S0VZ")", "client-key belong together");
  says(kHttps, R"("client-key-data":"no base64","client-certificate":"a")", "client-key-data: it is no base64");
  says(kHttps, R"("token":7)", "users[u].user.token: an integer where a string is wanted");
  says(kHttps, R"("token":"a b")", "the token has spaces");
  says(kHttps, R"("Token":"a b","futureMember":{"x":1})", "accepted");  // other names are unknown ones, as in client-go
  says(kHttps + R"(,"certificate-authority-data":"Q0E=")", "", "accepted");  // data wins
}

TEST(Kubeconfig, NoMessageHasASecret) {
  const std::string secret(kTokenBytesMax + 1, 'S');
  for (const std::string& user : {R"("token":")" + secret + "\"", std::string(R"("token":"SSSS SSSS")"),
                                  std::string(R"("client-key-data":"SSSS*SSSS")"),
                                  R"("client-key-data":")" + std::string(600 << 10, 'S') + "\""}) {
    const std::string text = refusal(config(kHttps, user));
    EXPECT_NE(text, "accepted");
    EXPECT_EQ(text.find("SSSS"), std::string::npos) << text.substr(0, 200);
  }
  // Not JSON from there on.
  for (const char* text : {R"({"users":[{"user":{"token":"SSSS" x}}]})", R"({"users":SSSS})", R"({"kind":1e999)"}) {
    EXPECT_THAT(refusal(text),
                testing::AllOf(testing::StartsWith("kubeconfig: invalid JSON at byte "),
                               testing::Not(testing::HasSubstr("SSSS")), testing::Not(testing::HasSubstr("1e999"))));
  }
}

TEST(Kubeconfig, HasOneBound) {
  EXPECT_NE(refusal(std::string(kKubeconfigBytesMax, ' ') + "{}").find("larger than"), std::string::npos);
}

TEST(KubeInCluster, IsWhatKubeletGives) {
  const auto access = in_cluster_access("10.96.0.1", "443");
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->servers, (std::vector<wire::Url>{{true, "10.96.0.1", true, 443, ""}}));
  EXPECT_EQ(access->ca.file, "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt");
  EXPECT_EQ(access->token_file, "/var/run/secrets/kubernetes.io/serviceaccount/token");
  EXPECT_EQ(access->namespace_file, "/var/run/secrets/kubernetes.io/serviceaccount/namespace");
  EXPECT_FALSE(access->carries_secret());
  EXPECT_EQ(in_cluster_access("fd00::1", "6443")->servers.front().text(), "https://[fd00::1]:6443");
  for (const char* port : {"", "0", "tcp://10.0.0.1:443"}) {
    EXPECT_EQ(in_cluster_access("10.96.0.1", port).error().message,
              std::string("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT: URL \"https://10.96.0.1:") + port +
                  "\" needs a port from 1 to 65535 behind the colon");
  }
  EXPECT_FALSE(in_cluster_access("", "443"));
  EXPECT_FALSE(in_cluster_access("a b", "443"));
}

TEST(KubeOverrides, TakeThePlaceOfWhatAKubeconfigSays) {
  KubeAccess access;
  access.servers = {*wire::Url::parse("https://10.0.0.1:6443"), *wire::Url::parse("https://10.0.0.2:6443")};
  access.ca = {"the old one's", {}};
  access.token_file = "/token";
  ASSERT_TRUE(override_access(access, {"https://10.0.0.9", "/ca", "/c", "/k", "abc"}));
  ASSERT_EQ(access.servers.size(), 1U);
  EXPECT_EQ(access.servers[0].text(), "https://10.0.0.9");
  EXPECT_EQ(access.ca, (KubePem{{}, "/ca"}));
  EXPECT_EQ(access.certificate.file, "/c");
  EXPECT_EQ(access.key.file, "/k");
  EXPECT_EQ(access.token, "abc");
  EXPECT_EQ(access.token_file, "");
}

TEST(KubeOverrides, LeadOnlyToAProvenServer) {
  const auto refusal = [](const KubeOverrides& overrides) {
    KubeAccess none;
    const auto done = override_access(none, overrides);
    return done ? std::string() : done.error().message;
  };
  EXPECT_THAT(refusal({}), testing::HasSubstr("address is missing"));
  EXPECT_THAT(refusal({"https://10.0.0.9", {}, {}, {}, "abc"}), testing::HasSubstr("who signed its certificate"));
  EXPECT_THAT(refusal({"http://10.0.0.9", {}, {}, {}, "abc"}), testing::HasSubstr("is no https"));
  EXPECT_THAT(refusal({"ftp://10.0.0.9", {}, {}, {}, {}}), testing::HasSubstr("the API's address"));
  const std::string spaced = refusal({"https://10.0.0.9", "/ca", {}, {}, "a b"});
  EXPECT_THAT(spaced, testing::HasSubstr("the token has spaces"));
  EXPECT_THAT(spaced, testing::Not(testing::HasSubstr("a b"))) << "no message repeats it";
}

TEST(Kubeconfig, WhatIsWrittenIsRead) {
  KubeAccess access;
  access.servers = {wire::Url::parse("https://10.0.0.1:6443").value(),
                    wire::Url::parse("https://[fd00::1]:6443").value()};
  access.tls_server_name = "kubernetes.default";
  const std::string pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  const auto read = decode_kubeconfig(encode_kubeconfig(access, pem, "a.b.c"), "/etc");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->servers, access.servers);
  EXPECT_EQ(read->tls_server_name, access.tls_server_name);
  EXPECT_EQ(read->ca.data, pem);
  EXPECT_EQ(read->token, "a.b.c");
}

// ---------------------------------------------------------------- tokens

std::string token_of(const std::string& claims) {
  std::string text = encode_base64(claims);
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  while (text.ends_with('=')) text.pop_back();
  return "eyJhbGciOiJSUzI1NiJ9." + text + ".c2lnbmF0dXJl";
}
WallTime at(std::int64_t seconds) { return WallTime(std::chrono::seconds(seconds)); }

TEST(Token, SaysHowLongItLives) {
  EXPECT_EQ(life_of_token(token_of(R"({"iat":1700000000,"exp":1700003600,"aud":["x"]})")),
            (TokenLife{at(1'700'000'000), at(1'700'003'600)}));
  EXPECT_EQ(life_of_token(token_of(R"({"exp":7,"sub":"\u00ff?>~"})")), (TokenLife{at(0), at(7)}));
  EXPECT_EQ(life_of_token(token_of(R"({"exp":9223372036854775807})"))->end, at(9'223'372'036));
}

TEST(Token, WhatSaysNoEndHasNone) {
  for (const char* claims : {R"({"iat":1})", R"({"exp":-1})", R"({"exp":"soon"})", R"({"exp":1.5})", "[1]", "{", ""}) {
    EXPECT_EQ(life_of_token(token_of(claims)), std::nullopt) << claims;
  }
  for (const char* text : {"", ".", "..", "abc", "a.b", "a.!!!.c", "a.e30.c"}) {
    EXPECT_EQ(life_of_token(text), std::nullopt) << text;
  }
  EXPECT_EQ(life_of_token("a." + std::string(100'000, 'A') + ".c"), std::nullopt);
}

TEST(Token, IsAskedForAndRead) {
  EXPECT_EQ(encode_token_request(std::chrono::seconds(3600)),
            R"({"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":3600}})");
  EXPECT_EQ(decode_token_request(R"({"status":{"token":"a.b.c","expirationTimestamp":"2026-01-15T10:00:00Z"}})"),
            "a.b.c");
  for (const char* text :
       {"", "{}", "[]", R"({"status":{"token":7}})", R"({"status":{"token":"a b"}})", R"({"status":7})"}) {
    const auto token = decode_token_request(text);
    ASSERT_FALSE(token) << text;
    EXPECT_NE(token.error().message.find("TokenRequest"), std::string::npos) << token.error().message;
  }
  // What a kubeconfig could not be read with is not written into one.
  for (const std::size_t bytes : {std::size_t{40'000}, std::size_t{3'000'000}}) {
    const auto token = decode_token_request(R"({"status":{"token":")" + std::string(bytes, 'a') + "\"}}");
    ASSERT_FALSE(token);
    EXPECT_EQ(token.error().code, ErrorCode::corrupt);
  }
}

}  // namespace
}  // namespace croft::wire::kube

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
