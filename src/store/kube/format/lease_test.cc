#include "store/kube/format/lease.h"

#include <string>

#include <gtest/gtest.h>

#include "base/time_text.h"

namespace croft::wire::kube {
namespace {

// As a kube-apiserver of 1.36 answers (e2e/kube_leader.py), with what others put on it.
constexpr const char* kLease =
    R"({"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"croftd-controller","namespace":"croft-system",)"
    R"("uid":"u-1","resourceVersion":"42","labels":{"team":"shop"},"annotations":{"note":"by hand"},)"
    R"("managedFields":[{"manager":"croftd","fieldsV1":{"f:spec":{}}}]},"spec":{"holderIdentity":"oak_1",)"
    R"("leaseDurationSeconds":15,"acquireTime":"2026-01-15T10:00:00.000000Z","renewTime":"2026-01-15T10:00:02.500000Z",)"
    R"("leaseTransitions":3,"strategy":"OldestEmulationVersion"}})";

const std::string kBegin = R"({"kind":"Lease","apiVersion":"coordination.k8s.io/v1",)"
                           R"("metadata":{"name":"a","namespace":"n","resourceVersion":"1"})";

TEST(KubeLease, EveryMemberArrives) {
  const auto lease = decode_lease(kLease, lease_of("croft-system", "croftd-controller"));
  ASSERT_TRUE(lease) << lease.error().message;
  EXPECT_EQ(lease->record, (LeaseRecord{"oak_1", 15, "2026-01-15T10:00:00.000000Z", "2026-01-15T10:00:02.500000Z", 3}));
  EXPECT_EQ(lease->meta.resource_version, "42");
  EXPECT_EQ(lease->meta.name_space, "croft-system");
}

TEST(KubeLease, WhatIsNotSaidIsNobodys) {
  for (const char* spec : {R"(,"spec":{})", R"(,"spec":null)", "",
                           R"(,"spec":{"holderIdentity":null,"leaseDurationSeconds":null,"renewTime":null})"}) {
    const auto lease = decode_lease(kBegin + spec + "}", lease_of("n", "a"));
    ASSERT_TRUE(lease) << lease.error().message;
    EXPECT_EQ(lease->record, LeaseRecord()) << spec;
  }
}

TEST(KubeLease, AnotherThanWasAskedForIsNone) {
  const auto refusal = [](const ApiObjectOf& of) {
    const auto lease = decode_lease(kBegin + "}", of);
    return lease ? "accepted" : lease.error().message;
  };
  EXPECT_EQ(refusal(lease_of("n", "a")), "accepted");
  EXPECT_EQ(refusal(lease_of("m", "a")),
            "an object of the API server: asked for was \"Lease\" of \"coordination.k8s.io/v1\", \"m/a\", and it is "
            "\"Lease\" of \"coordination.k8s.io/v1\", \"n/a\"");
  EXPECT_NE(refusal(lease_of("n", "b")), "accepted");
}

TEST(KubeLease, DamageNamesTheMember) {
  const auto refusal = [](const std::string& spec) {
    const auto lease = decode_lease(kBegin + R"(,"spec":)" + spec + "}", lease_of("n", "a"));
    return lease ? "accepted" : lease.error().message;
  };
  EXPECT_EQ(refusal(R"({"holderIdentity":7})"),
            "a Lease of the API server: spec.holderIdentity: an integer (7) where a string is wanted");
  EXPECT_EQ(refusal(R"({"leaseDurationSeconds":-1})"),
            "a Lease of the API server: spec.leaseDurationSeconds: -1 is out of range: 0 to 2147483647");
  EXPECT_EQ(refusal("[]"), "a Lease of the API server: spec: an array where an object is wanted");
  EXPECT_FALSE(decode_lease("{}", lease_of("n", "a")));
  EXPECT_FALSE(decode_lease("not JSON", lease_of("n", "a")));
}

TEST(KubeLease, AHolderWithALongNameIsAHolder) {
  const std::string holder = std::string(4095, 'x') + "\xc3\xa4" + std::string(100'000, 'y');
  const auto lease = decode_lease(R"({"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"a",)"
                                  R"("namespace":"n","resourceVersion":"1"},"spec":{"holderIdentity":")" +
                                      holder + "\"}}",
                                  lease_of("n", "a"));
  ASSERT_TRUE(lease) << lease.error().message;
  EXPECT_EQ(lease->record.holder, std::string(4095, 'x')) << "cut between characters";
}

TEST(KubeLease, ANewOneIsReadAsItWasWritten) {
  const LeaseRecord record{"oak_\"1\"", 15, "2026-01-15T10:00:00.000000Z", "2026-01-15T10:00:02.500000Z", 0};
  const std::string text = encode_new_lease("croft-system", "croftd-controller", record);
  EXPECT_EQ(
      text,
      R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"croftd-controller",)"
      R"("namespace":"croft-system"},"spec":{"holderIdentity":"oak_\"1\"","leaseDurationSeconds":15,)"
      R"("acquireTime":"2026-01-15T10:00:00.000000Z","renewTime":"2026-01-15T10:00:02.500000Z","leaseTransitions":0}})");
}

TEST(KubeLease, AnUpdateChangesTheRecordAndNothingElse) {
  const Lease before = decode_lease(kLease, lease_of("croft-system", "croftd-controller")).value();
  const LeaseRecord record{"", 1, "2026-01-15T10:00:07.000000Z", "2026-01-15T10:00:07.000000Z", 4};
  const auto text = encode_changed_lease(before, record);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(
      *text,
      R"({"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"croftd-controller","namespace":"croft-system",)"
      R"("uid":"u-1","resourceVersion":"42","labels":{"team":"shop"},"annotations":{"note":"by hand"},)"
      R"("managedFields":[{"manager":"croftd","fieldsV1":{"f:spec":{}}}]},"spec":{"strategy":"OldestEmulationVersion",)"
      R"("holderIdentity":"","leaseDurationSeconds":1,"acquireTime":"2026-01-15T10:00:07.000000Z",)"
      R"("renewTime":"2026-01-15T10:00:07.000000Z","leaseTransitions":4}})");
  Lease odd;
  odd.json = "[]";
  EXPECT_FALSE(encode_changed_lease(odd, record));
}

TEST(KubeLease, TimesHaveExactlySixDigits) {
  const auto text_of = [](const char* text) { return micro_time(parse_rfc3339(text).value()); };
  EXPECT_EQ(text_of("2026-01-15T10:00:00Z"), "2026-01-15T10:00:00.000000Z");
  EXPECT_EQ(text_of("2026-01-15T10:00:00.5Z"), "2026-01-15T10:00:00.500000Z");
  EXPECT_EQ(text_of("2026-01-15T10:00:59.999999999Z"), "2026-01-15T10:00:59.999999Z");
  EXPECT_EQ(text_of("1969-12-31T23:59:59.000001Z"), "1969-12-31T23:59:59.000001Z");
}

}  // namespace
}  // namespace croft::wire::kube
