#include "vpc/format/ucloud.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "os/digest.h"

namespace croft::wire::ucloud {
namespace {

using namespace net::literals;

constexpr const char* kPublic = "ucloudsomeone@example.com1296235120854146120";
constexpr const char* kPrivate = "46f09bb9fab4f12dfc160dae12273d5332b5debe";

std::string signature(Parameters parameters) {
  const Parameters all = signed_by(std::move(parameters), {kPublic, kPrivate, {}}, os::sha1);
  return all.back().second;
}

/// The value of a parameter; null: it is not there.
const std::string* find(const Parameters& parameters, std::string_view name) {
  const auto found = std::ranges::find(parameters, name, &std::pair<std::string, std::string>::first);
  return found == parameters.end() ? nullptr : &found->second;
}

// docs/notes/warm-pool.md#ucloud-api: the vectors.
TEST(UcloudSigning, SignsAsPublished) {
  EXPECT_EQ(signature({{"Action", "DescribeUHostInstance"}, {"Region", "cn-bj2"}, {"Limit", "10"}}),
            "cba5cf5ec4d4233d206b1b54951e3787350a642f");
  EXPECT_EQ(signature({{"Action", "CreateUHostInstance"},
                       {"CPU", "2"},
                       {"ChargeType", "Month"},
                       {"DiskSpace", "10"},
                       {"ImageId", "f43736e1-65a5-4bea-ad2e-8a46e18883c2"},
                       {"LoginMode", "Password"},
                       {"Memory", "2048"},
                       {"Name", "Host01"},
                       {"Password", "VUNsb3VkLmNu"},
                       {"Quantity", "1"},
                       {"Region", "cn-bj2"},
                       {"Zone", "cn-bj2-04"}}),
            "4f9ef5df2abab2c6fccd1e9515cb7e2df8c6bb65");
  cloud::Interface own;
  own.region = "cn-bj2";
  own.project = "org-test";
  own.zone = "cn-bj2-04";
  const auto mac = net::Mac::parse("52:54:00:26:6e:da").value();
  const cloud::CloudAddress at{{}, 0, {}, mac, "uvnet-1", "subnet-1", "uhost-abc"};
  EXPECT_EQ(signature(request_at("AllocateSecondaryIp", own, at, "Ip", "")),
            "dbf9c5cc07de0c6db7bfb095906c904528c8b873");
  EXPECT_EQ(signature(request("DescribeSubnet", own,
                              {{"VPCId", "uvnet-1"}, {"SubnetId", "subnet-1"}, {"ShowAvailableIPs", "true"}})),
            "8dd29bb177940772f8aecafad6de35503bbaf412");
}

// Names are sorted as text, so .10 comes before .2; what is signed is not encoded; what is sent is.
TEST(UcloudSigning, SignsListsAndOddValuesAsTheyAre) {
  Parameters list;
  std::string text =
      "Action"
      "A";
  for (const char* place : {"0", "1", "10", "11", "2", "3", "4", "5", "6", "7", "8", "9"}) {
    text += std::string("Ips.") + place + "v" + place;
  }
  for (int i = 11; i >= 0; --i) list.emplace_back("Ips." + std::to_string(i), "v" + std::to_string(i));
  list.emplace_back("Action", "A");
  std::string signed_text;
  const auto spy = [&](std::string_view bytes) {
    signed_text = bytes;
    return os::sha1(bytes);
  };
  EXPECT_EQ(signature_of(list, "KEY", spy).size(), 40U);
  EXPECT_EQ(signed_text, text + "KEY");
  const Parameters odd{{"Name", "a+b c/\u4e2d&=%"}, {"Signature", "never signed"}};
  EXPECT_EQ(signature_of(odd, "K", spy).size(), 40U);
  EXPECT_EQ(signed_text, "Namea+b c/\u4e2d&=%K");
  EXPECT_EQ(form_of({odd.front(), {"c", "\x01"}}), "Name=a%2Bb%20c%2F%E4%B8%AD%26%3D%25&c=%01");
}

TEST(UcloudSigning, LeavesOutWhatHasNoValueAndAddsTheToken) {
  const Parameters sent = signed_by({{"Action", "A"}, {"ProjectId", ""}}, {"pub", "pri", "token"}, os::sha1);
  ASSERT_EQ(sent.size(), 4U);
  EXPECT_EQ(find(sent, "ProjectId"), nullptr);
  EXPECT_EQ(*find(sent, "SecurityToken"), "token");
  EXPECT_EQ(*find(sent, "Signature"), signature_of(sent, "pri", os::sha1));
  EXPECT_EQ(form_of(sent).find("pri"), std::string::npos);
}

Answer answer(std::string_view text) { return decode_answer(text).value(); }

TEST(UcloudAnswers, TakeARetCodeInQuotes) {
  EXPECT_EQ(answer(R"({"RetCode":"153","Message":"slow"})").ret_code, 153);
  EXPECT_EQ(answer(R"({"RetCode":0})").ret_code, 0);
  for (const char* wrong : {"", "null", "[]", "{}", R"({"RetCode":null})", R"({"RetCode":"x"})", R"({"RetCode":"1 "})",
                            R"({"RetCode":1.5})", R"({"RetCode":99999999999999999999})", R"({"RetCode":[0]})"}) {
    EXPECT_FALSE(decode_answer(wrong)) << wrong;
  }
  EXPECT_FALSE(decode_answer(R"({"RetCode":0,"x":")" + std::string(kAnswerBytesMax, 'x') + "\"}"));
}

TEST(UcloudAnswers, ReadAnAddressInBothSpellings) {
  const auto given = [](const char* text) { return decode_given(answer(text)).value().addresses; };
  const auto documented = given(R"({"RetCode":0,"IpInfo":{"Ip":"10.9.1.7","Mask":"255.255.255.0",
    "Gateway":"10.9.1.1","Mac":"52:54:00:26:6E:DA","SubnetId":"subnet-1","VPCId":"uvnet-1"}})");
  const auto sample = given(R"({"RetCode":"0","IpInfo":[{"Ip":"10.9.1.7","Mask":24,
    "Gateway":"10.9.1.1","Mac":"52:54:00:26:6e:da","SubnetworkId":"subnet-1","VPCId":"uvnet-1","AccountId":7,
    "VIP":null}]})");
  EXPECT_EQ(documented, sample);
  EXPECT_EQ(documented.at(0).prefix_length, 24U);
  const auto six = given(R"({"RetCode":0,"IpInfo":{"Ip":"fd00::7","Mask":"64","Gateway":"fd00::1"}})");
  EXPECT_EQ(six.at(0).address, "fd00::7"_ip);
  EXPECT_EQ(six.at(0).prefix_length, 64U);
  EXPECT_EQ(six.at(0).mac, net::Mac{});
}

TEST(UcloudAnswers, RefuseWhatNoHostHas) {
  for (const char* ip : {"0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255", "10.0.0.256", "::", "::1", "ff02::1",
                         "::ffff:10.0.0.1", "10.0.0.1/24", "0.1.2.3"}) {
    EXPECT_FALSE(decode_given(answer(R"({"RetCode":0,"IpInfo":{"Ip":")" + std::string(ip) + "\"}}"))) << ip;
  }
  for (const char* more : {R"("Mac":"52:54")", R"("VPCId":{})", R"("VPCId":"a\u0007")"}) {
    EXPECT_FALSE(decode_given(answer(R"({"RetCode":0,"IpInfo":{"Ip":"10.0.0.9",)" + std::string(more) + "}}"))) << more;
  }
}

TEST(UcloudAnswers, KeepWhatABatchGot) {
  const auto all = decode_given(answer(R"({"RetCode":0,"IpsInfo":[
    {"Ip":"10.0.0.2","Status":{"StatusCode":"Succeeded"}},
    {"Ip":"10.0.0.3","Status":{"StatusCode":"Failed","Message":"no more"}},
    {"Ip":"10.0.0.4","Status":[{"StatusCode":"Succeeded","Message":""}]},
    {"Ip":"","Status":"Failed"},
    {"Ip":"10.0.0.5"},
    {"Ip":"10.0.0.6","Status":[{"StatusCode":"Pending"},{"StatusCode":"Succeeded"}]},
    {}]})"))
                       .value();
  ASSERT_EQ(all.addresses.size(), 3U);
  EXPECT_EQ(all.addresses[0].address, "10.0.0.2"_ip);
  EXPECT_EQ(all.addresses[1].address, "10.0.0.4"_ip);
  EXPECT_EQ(all.addresses[2].address, "10.0.0.5"_ip);
  EXPECT_EQ(all.why_not, "no more");
}

TEST(UcloudAnswers, OneOddElementIsNotAllOfTheList) {
  const auto list = decode_addresses(answer(R"({"RetCode":0,"DataSet":[
    {"Ip":"10.0.0.2","Mask":"255.255.255.0","Gateway":"10.0.0.1","Mac":"52:54:00:00:00:0A"},
    {"Ip":"10.0.0.3","Mask":"0.0.0.0","Gateway":"0.0.0.0"},
    {"Ip":"10.0.0.4","Mask":"24","Gateway":"fd00::1"},
    {"Ip":""},{"Ip":null},{"Ip":"10.0.0.999"},{"Ip":"10.0.0.5","Mac":"-"}]})"));
  ASSERT_TRUE(list) << list.error().message;
  ASSERT_EQ(list->addresses.size(), 3U);
  EXPECT_EQ(list->addresses[0].gateway, "10.0.0.1"_ip);
  EXPECT_EQ(list->addresses[1].address, "10.0.0.3"_ip);
  EXPECT_FALSE(list->addresses[1].gateway || list->addresses[1].prefix_length != 0);
  EXPECT_EQ(list->addresses[2].prefix_length, 24U);
  EXPECT_FALSE(list->addresses[2].gateway);
  EXPECT_FALSE(list->odd.empty()) << "four tell none";
  EXPECT_EQ(cloud::parse_mask("ffff:ffff::", net::Family::v6), 32);
  for (const char* none : {"255.0.255.0", "33", "0.0.0.1", "::"}) {
    EXPECT_FALSE(cloud::parse_mask(none, net::Family::v4)) << none;
  }
}

TEST(UcloudAnswers, HaveAnEnd) {
  std::string many = R"({"RetCode":0,"DataSet":[)";
  for (std::size_t i = 0; i <= kListMax; ++i) many += R"({"Ip":"10.0.0.1"},)";
  many.back() = ']';
  EXPECT_FALSE(decode_addresses(answer(many + "}")));
  EXPECT_TRUE(decode_addresses(answer(R"({"RetCode":0})")).value().addresses.empty());
  EXPECT_TRUE(decode_addresses(answer(R"({"RetCode":0,"DataSet":null})")).value().addresses.empty());
  EXPECT_FALSE(decode_addresses(answer(R"({"RetCode":0,"DataSet":["10.0.0.1"]})")));
}

TEST(UcloudAnswers, ReadSubnetsAndInterfaces) {
  const auto subnets = decode_subnets(answer(R"({"RetCode":0,"TotalCount":1,"DataSet":[{"SubnetId":"subnet-1",
    "Subnet":"10.9.1.0","Netmask":"24","Gateway":"10.9.1.1","AvailableIPs":-3,"VPCId":"uvnet-1"}]})"))
                           .value();
  ASSERT_EQ(subnets.size(), 1U);
  EXPECT_EQ(subnets[0].range, "10.9.1.0/24"_prefix);
  EXPECT_EQ(subnets[0].available, 0U);
  EXPECT_FALSE(decode_subnets(answer(R"({"RetCode":0,"DataSet":[{"SubnetId":"s"}]})")).value()[0].available);
  EXPECT_FALSE(decode_subnets(answer(R"({"RetCode":0,"DataSet":[{"AvailableIPs":1}]})")));
  const Answer host = answer(R"({"RetCode":0,"UHostSet":[{"IPSet":[
    {"Type":"BGP","IP":"1.2.3.4"},{"Default":"true","Mac":"52:54:00:00:00:0A","NetworkInterfaceId":"uni-1"}]}]})");
  EXPECT_EQ(decode_interface_id(host, net::Mac::parse("52:54:00:00:00:0a").value()), "uni-1");
  EXPECT_EQ(decode_interface_id(host, net::Mac{}), "");
}

TEST(UcloudMetadata, TakesTheDefaultInterface) {
  const Metadata found = decode_metadata(R"({"availability-zone":"cn-bj2-04","instance-id":"uhost-1","region":"cn-bj2",
    "uhost":{"cpu":4,"project-id":"org-1","network-interfaces":[
      {"default":false,"id":"uni-0","mac":"52:54:00:00:00:01","subnet-id":"subnet-0","vpc-id":"v","ips":[]},
      {"default":true,"id":"uni-1","mac":"52:54:00:00:00:02","subnet-id":"subnet-1","vpc-id":"v"}]}})")
                             .value();
  EXPECT_EQ(found.interface, (cloud::Interface{net::Mac::parse("52:54:00:00:00:02").value(), "uhost-1", "v", "subnet-1",
                                               "cn-bj2-04", "cn-bj2", "org-1", "uhost-1"}));
  EXPECT_FALSE(found.is_bare_metal);
  const Metadata bare = decode_metadata(R"({"instance-id":"upm-1","uphost":{"network-interfaces":[
    {"mac":"52:54:00:00:00:03","subnet-id":"s"}]}})")
                            .value();
  EXPECT_TRUE(bare.is_bare_metal);
  EXPECT_EQ(bare.interface.subnet, "s");
  for (const char* wrong :
       {"{}", "[]", "", R"({"uhost":{"network-interfaces":[]}})",
        R"({"uhost":{"network-interfaces":[{"mac":"52:54:00:00:00:01"},{"mac":"52:54:00:00:00:02"}]}})",
        R"({"uhost":{"network-interfaces":[{"default":true,"mac":"52:54:00:00:00:01"},
                                              {"default":"true","mac":"52:54:00:00:00:02"}]}})",
        R"({"uhost":{"network-interfaces":[{"default":true,"mac":""}]}})"}) {
    EXPECT_FALSE(decode_metadata(wrong)) << wrong;
  }
}

TEST(UcloudCredentials, AreRead) {
  const Credentials read = decode_credentials(R"({"RetCode":0,"Message":"","Data":{"Expiration":1768471200,
    "PublicKey":"pub","PrivateKey":"pri","SecurityToken":"tok","ProjectID":"org-1","UHostID":"uhost-1"}})")
                               .value();
  EXPECT_EQ(read.keys, (Keys{"pub", "pri", "tok"}));
  EXPECT_EQ(read.expires, WallTime(std::chrono::seconds(1768471200)));
}

TEST(UcloudCredentials, NeverTellAKey) {
  for (const char* wrong :
       {R"({"RetCode":-1,"Message":"SECRET"})", R"(SECRET)", R"({"PrivateKey":"SECRET)",
        R"({"Data":{"PublicKey":"SECRET","PrivateKey":"SECRET","Expiration":1}})",
        R"({"Data":{"PublicKey":"SECRET","PrivateKey":["SECRET"],"SecurityToken":"SECRET","Expiration":1}})",
        R"({"Data":{"PublicKey":"SECRET","PrivateKey":"SECRET\n","SecurityToken":"SECRET","Expiration":1}})",
        R"({"Data":{"PublicKey":"SECRET","PrivateKey":"SECRET","SecurityToken":"SECRET","Expiration":-1}})",
        R"({"Data":{"PublicKey":"SECRET","PrivateKey":"SECRET","SecurityToken":"SECRET","Expiration":99999999999999}})",
        R"({"Data":{"PublicKey":"SECRET","PrivateKey":"SECRET","SecurityToken":"SECRET"}})"}) {
    const auto read = decode_credentials(wrong);
    ASSERT_FALSE(read) << wrong;
    EXPECT_EQ(read.error().message.find("SECRET"), std::string::npos) << read.error().message;
  }
}

}  // namespace
}  // namespace croft::wire::ucloud
