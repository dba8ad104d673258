#include "hostlocal/format/config_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace croft::wire::cni {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kList =
    R"({"cniVersion":"1.0.0","name":"net","plugins":[{"type":"tuning"},{"type":"bridge",)"
    R"("capabilities":{"ipRanges":true,"ips":false},"ipam":{"type":"host-local","ranges":[[{"subnet":"10.1.0.0/24"}]]}}]})";

/// The sets as text; the error's message when there is one; "none" when there is no configuration.
std::vector<std::string> sets(std::string_view bytes, const std::string& network = "net", std::string_view args = {}) {
  const auto found = find_host_local_config(bytes, network, args);
  if (!found) return {"error: " + found.error().message};
  if (!*found) return {"none"};
  std::vector<std::string> texts;
  for (const auto& set : (*found)->sets) texts.push_back(set.to_string());
  return texts;
}

TEST(CniConfigSearch, AListAndASinglePlugin) {
  EXPECT_THAT(sets(kList), ElementsAre("10.1.0.1-10.1.0.254"));
  EXPECT_THAT(sets(R"({"name":"net","type":"bridge","ipam":{"type":"host-local","subnet":"10.2.0.0/30"}})"),
              ElementsAre("10.2.0.1-10.2.0.2"));
  EXPECT_THAT(sets(R"({"ipam":{"type":"host-local","subnet":"10.2.0.0/30"}})", ""), ElementsAre("10.2.0.1-10.2.0.2"));
}

TEST(CniConfigSearch, TheNetworkMustBeTheOneAskedFor) {
  EXPECT_THAT(sets(kList, "another"), ElementsAre("none"));
  EXPECT_THAT(sets(kList, ""), ElementsAre("10.1.0.1-10.1.0.254"));
}

TEST(CniConfigSearch, OtherPlugins) {
  EXPECT_THAT(sets(R"({"name":"net","plugins":[{"type":"flannel"},7,{"ipam":{"type":"dhcp"}}]})"), ElementsAre("none"));
  for (const char* bytes : {"[]", "7", "{}", R"({"plugins":7})", R"({"name":7,"ipam":[]})"}) {
    EXPECT_THAT(sets(bytes), ElementsAre("none")) << bytes;
  }
}

TEST(CniConfigSearch, RuntimeRangesComeFirstWhenThePluginDeclaresThem) {
  constexpr const char* kArgs = R"({"ipRanges":[[{"subnet":"10.9.0.0/30"}]],"ips":["10.9.0.2"]})";
  EXPECT_THAT(sets(kList, "net", kArgs), ElementsAre("10.9.0.1-10.9.0.2", "10.1.0.1-10.1.0.254"));
  EXPECT_THAT(find_host_local_config(kList, "net", kArgs).value()->requested_addresses, testing::IsEmpty());
  EXPECT_THAT(sets(kList, "net", "not JSON"), ElementsAre("10.1.0.1-10.1.0.254"));
}

TEST(CniConfigSearch, FaultsAreErrors) {
  EXPECT_THAT(sets("{"), ElementsAre(HasSubstr("error: invalid JSON")));
  EXPECT_THAT(sets(std::string(300, '[')), ElementsAre(HasSubstr("error: ")));
  EXPECT_THAT(sets(R"({"name":"net","ipam":{"type":"host-local","subnet":"10.2.0.0/33"}})"),
              ElementsAre(HasSubstr("error: invalid CIDR")));
  EXPECT_THAT(sets(R"({"name":"net","ipam":{"type":"host-local"}})"), ElementsAre(HasSubstr("error: no IP ranges")));
}

}  // namespace
}  // namespace croft::wire::cni
