#include "store/kube/vpc_objects.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace croft::wire::kube {
namespace {

using testing::HasSubstr;

const VpcIpClaimRecord kClaim{"10.0.0.9", "255.255.0.0", "10.0.0.1",          "subnet-1",  "uvnet-1", true, "",
                              "Never",    "sandbox",     "52:54:00:26:6E:DA", "cn-bj2-04", "node-a",  "web"};
const IpamdRecord kStock{"node-a", "10.0.0.2:7312", "subnet-1", 4, 50, 3, "normal"};

template <class Record>
Result<VpcObject<Record>> decode(const std::string& json) {
  TRY(ApiObject object, decode_object(json));
  TRY(Record record, decode_vpc<Record>(object.value));
  return VpcObject<Record>{std::move(record), std::move(object.meta), std::move(object.document)};
}
const auto decode_ipamd = decode<IpamdRecord>;
const auto decode_vpc_ip_claim = decode<VpcIpClaimRecord>;

std::string with_version(std::string json) {
  json.insert(json.find("\"metadata\":{") + 12, R"("uid":"u1","resourceVersion":"7",)");
  return json;
}

TEST(VpcObjects, AStockComesBackAsItWasWritten) {
  const auto back = decode_ipamd(with_version(encode_vpc<IpamdRecord>({}, "kube-system", "node-a", kStock)));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->record, kStock);
  EXPECT_EQ(back->meta.name, "node-a");
  EXPECT_EQ(back->meta.name_space, "kube-system");
}

TEST(VpcObjects, WhatOthersWroteStays) {
  const std::string json = R"({"apiVersion":"vpc.uk8s.ucloud.cn/v1beta1","kind":"Ipamd","metadata":{"name":"a",)"
                           R"("namespace":"kube-system","uid":"u","resourceVersion":"7","labels":{"x":"y"}},)"
                           R"("spec":{"node":"a","later":{"z":[1,2]}},"status":{"current":1,"news":null},"more":7})";
  const auto before = decode_ipamd(json);
  ASSERT_TRUE(before) << before.error().message;
  EXPECT_EQ(before->record, (IpamdRecord{"a", "", "", 1, 0, 0, ""}));
  const std::string changed = encode_vpc<IpamdRecord>(*before, "kube-system", "a", kStock);
  for (const char* kept : {R"("labels":{"x":"y"})", R"("later":{"z":[1,2]})", R"("news":null)", R"("more":7)",
                           R"("resourceVersion":"7")", R"("kind":"Ipamd")"}) {
    EXPECT_THAT(changed, HasSubstr(kept));
  }
  EXPECT_EQ(decode_ipamd(changed).value().record, kStock);
}

TEST(VpcObjects, ClaimsHaveTheFinalizerWhileTheyAreAttached) {
  VpcIpClaimRecord record = kClaim;
  const std::string json = with_version(encode_vpc<VpcIpClaimRecord>({}, "default", "web-0", record));
  const auto made = decode_vpc_ip_claim(json);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->record, record);
  EXPECT_THAT(json, HasSubstr(R"("finalizers":["cni-vpc-ipamd"])"));
  EXPECT_THAT(json, HasSubstr(R"("attached":"true")"));
  std::string foreign = json;
  foreign.replace(foreign.find("[\"cni-vpc-ipamd\"]"), 17, R"(["other","cni-vpc-ipamd"])");
  record.attached = false;
  record.last_detach_time = "2026-01-02 03:04:05";
  const std::string detached =
      encode_vpc<VpcIpClaimRecord>(decode_vpc_ip_claim(foreign).value(), "default", "web-0", record);
  EXPECT_THAT(detached, HasSubstr(R"("finalizers":["other"])"));
  EXPECT_THAT(detached, HasSubstr(R"("attached":"false")"));
  EXPECT_THAT(detached, HasSubstr(R"("resourceVersion":"7")"));
  EXPECT_EQ(decode_vpc_ip_claim(detached).value().record, record);
}

TEST(VpcObjects, ByteForByte) {
  EXPECT_EQ(
      encode_vpc<IpamdRecord>({}, "kube-system", "node-a", kStock),
      R"({"apiVersion":"vpc.uk8s.ucloud.cn/v1beta1","kind":"Ipamd","metadata":{"name":"node-a","namespace":)"
      R"("kube-system"},"spec":{"node":"node-a","addr":"10.0.0.2:7312","subnet":"subnet-1"},"status":{"current":4,)"
      R"("high":50,"low":3,"status":"normal"}})");
  const std::string before =
      R"({"apiVersion":"vpc.uk8s.ucloud.cn/v1beta1","kind":"VpcIpClaim","metadata":{"name":"web-0","labels":{"x":"y"},)"
      R"("namespace":"default","uid":"u1","resourceVersion":"7","finalizers":["other","cni-vpc-ipamd"]},"extra":true,)"
      R"("spec":{"ip":"10.0.0.9","more":1},"status":{"attached":true,"news":[1]}})";
  EXPECT_EQ(
      encode_vpc<VpcIpClaimRecord>(decode_vpc_ip_claim(before).value(), "default", "web-0", kClaim),
      R"({"apiVersion":"vpc.uk8s.ucloud.cn/v1beta1","kind":"VpcIpClaim","extra":true,"metadata":{"name":"web-0",)"
      R"("namespace":"default","uid":"u1","resourceVersion":"7","labels":{"x":"y","attached":"true","owner-statefulset":)"
      R"("web"},"finalizers":["other","cni-vpc-ipamd"]},"spec":{"more":1,"ip":"10.0.0.9","mask":"255.255.0.0",)"
      R"("gateway":"10.0.0.1","subnetId":"subnet-1","vpcId":"uvnet-1"},"status":{"news":[1],"attached":true,)"
      R"("lastDetachtime":"","releaseTime":"Never","sandboxId":"sandbox","mac":"52:54:00:26:6E:DA","zone":"cn-bj2-04",)"
      R"("node":"node-a"}})");
}

TEST(VpcObjects, WhatIsNoneIsNamed) {
  const auto stock = [](const std::string& more) {
    return R"({"kind":"Ipamd","apiVersion":"vpc.uk8s.ucloud.cn/v1beta1","metadata":{"name":"a","namespace":)"
           R"("kube-system","uid":"u","resourceVersion":"1"})" +
           more + "}";
  };
  EXPECT_TRUE(decode_ipamd(stock("")));
  for (const char* more : {R"(,"spec":[])", R"(,"spec":{"node":7})", R"(,"status":{"current":"1"})",
                           R"(,"status":{"current":99999999999})"}) {
    EXPECT_FALSE(decode_ipamd(stock(more))) << more;
  }
  for (const char* json : {"", "7", "[]", "{}", R"({"metadata":{"name":"a"}})"}) {
    EXPECT_FALSE(decode_ipamd(json)) << json;
  }
  const auto claim = [](const std::string& more) {
    return decode_vpc_ip_claim(
        R"({"kind":"VpcIpClaim","apiVersion":"vpc.uk8s.ucloud.cn/v1beta1","metadata":{"name":"a",)"
        R"("namespace":"n","uid":"u","resourceVersion":"1"})" +
        more + "}");
  };
  const auto wrong = claim(R"(,"status":{"attached":"yes"})");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("status.attached"));
  EXPECT_TRUE(claim("")) << "all is missing";
}

TEST(VpcObjects, APodsAddressAsCalicoWritesIt) {
  EXPECT_EQ(encode_pod_address_patch("u-1", net::Address::parse("10.0.0.5").value()),
            R"({"metadata":{"uid":"u-1","annotations":{"cni.projectcalico.org/podIP":"10.0.0.5",)"
            R"("cni.projectcalico.org/podIPs":"10.0.0.5/32"}}})");
  EXPECT_NE(encode_pod_address_patch("u-1", net::Address::parse("fd00::5").value()).find("fd00::5/128"),
            std::string::npos);
}

}  // namespace
}  // namespace croft::wire::kube
