#include "http/url/url.h"

#include <gtest/gtest.h>

namespace croft::wire {
namespace {

TEST(Url, ReadsWhatItShould) {
  const Url plain = Url::parse("http://API.service.ucloud.cn/").value();
  EXPECT_EQ(plain, (Url{false, "api.service.ucloud.cn", false, 80, ""}));
  EXPECT_EQ(plain.text(), "http://api.service.ucloud.cn");
  const Url deep = Url::parse("https://[fd00::1]:8443/node-a/").value();
  EXPECT_EQ(deep, (Url{true, "fd00::1", true, 8443, "/node-a"}));
  EXPECT_EQ(deep.authority(), "[fd00::1]:8443");
  EXPECT_EQ(Url::parse(deep.text()).value(), deep);
  EXPECT_TRUE(Url::parse("http://10.0.0.1:8080").value().is_numeric);
  EXPECT_EQ(Url::parse("https://10.0.0.1/").value().authority(), "10.0.0.1");
  EXPECT_EQ(Url::parse("https://api.example:6443/k8s/clusters/c-1").value().text(),
            "https://api.example:6443/k8s/clusters/c-1");
  for (const char* wrong : {"",
                            "ftp://a",
                            "http://",
                            "http://:80",
                            "http://a:0",
                            "http://a:65536",
                            "http://a:8x",
                            "http://a?b",
                            "http://a#b",
                            "http://u:p@a",
                            "http://10.0.0.256",
                            "http://[fd00::1",
                            "http://[10.0.0.1]",
                            "http://fd00::1",
                            "http://a b",
                            "http://a\r\nX:",
                            "http://a/\x7f",
                            "http://[fd00::1]x",
                            "http://-a",
                            "http://.a",
                            "10.0.0.1:6443",
                            "https:///x",
                            "https://10.0.0.1:",
                            "https://10.0.0.1/a b"}) {
    EXPECT_FALSE(Url::parse(wrong)) << wrong;
  }
  EXPECT_EQ(Url::parse("https://kind_control.example.:6443").value().host, "kind_control.example.");
  EXPECT_EQ(Url::parse("http://me:secret@a").error().message.find("secret"), std::string::npos);
}

}  // namespace
}  // namespace croft::wire
