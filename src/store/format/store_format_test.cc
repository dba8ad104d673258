#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/format/pause.h"
#include "store/store_url.h"

namespace croft::wire {
namespace {

using core::Pause;
using testing::HasSubstr;

TEST(PauseBytes, ComeBackAsTheyWere) {
  for (const auto phase : {Pause::Phase::copying, Pause::Phase::moved, Pause::Phase::filling}) {
    const Pause pause{phase, "etcd:https://10.0.0.1:2379", WallTime(std::chrono::seconds(1800000000))};
    const auto read = decode_pause(encode_pause(pause));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, pause);
  }
}

TEST(PauseBytes, AreOneObject) {
  EXPECT_EQ(encode_pause({Pause::Phase::filling, "kube:/etc/k", WallTime{}}),
            R"({"version":1,"phase":"filling","other":"kube:/etc/k","since":"1970-01-01T00:00:00Z"})");
}

TEST(PauseBytes, AreRefusedWhereTheyAreNot) {
  const std::string good = encode_pause({Pause::Phase::moved, "kube:", WallTime{}});
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    const auto read = decode_pause(text);
    EXPECT_FALSE(read) << text;
    if (read) return std::string();
    const char* remedy = read.error().code == ErrorCode::newer_version ? "go on with the version of Croft that put it"
                                                                       : "docs/runbooks/migrate.md#damaged-pause";
    EXPECT_THAT(read.error().message, HasSubstr(remedy));
    return read.error().message;
  };
  EXPECT_THAT(with("moved", "gone"), HasSubstr("phase"));
  EXPECT_THAT(with("\"version\":1,", ""), HasSubstr("missing"));
  EXPECT_THAT(with("\"version\":1", "\"version\":2"), HasSubstr("newer"));
  EXPECT_THAT(with("\"other\"", "\"otter\""), HasSubstr("other"));
  EXPECT_THAT(with("1970-", "19x0-"), HasSubstr("since"));
  for (std::size_t length = 0; length < good.size(); ++length) EXPECT_FALSE(decode_pause(good.substr(0, length)));
}

}  // namespace
}  // namespace croft::wire

namespace croft::store {
namespace {

TEST(StoreUrl, SaysWhatKindOfStoreItIs) {
  EXPECT_EQ(scheme_of("sqlite:/var/lib/croft/croft.db"), Scheme::sqlite);
  EXPECT_EQ(scheme_of("etcd:https://10.0.0.1:2379"), Scheme::etcd);
  EXPECT_EQ(scheme_of("kube:"), Scheme::kube);
  EXPECT_EQ(behind_scheme("kube:/etc/kubernetes/admin.conf"), "/etc/kubernetes/admin.conf");
  for (const char* url : {"", "sqlite", "/var/lib/croft/croft.db", "Sqlite:/x", "kube", " etcd:x"}) {
    EXPECT_EQ(scheme_of(url), std::nullopt) << url;
    EXPECT_EQ(behind_scheme(url), url);
    EXPECT_EQ(file_of_store(url), std::nullopt) << url;
  }
  EXPECT_EQ(behind_scheme("etcd:http://a,http://b?ca=/c"), "http://a,http://b?ca=/c");
  EXPECT_EQ(file_of_store("sqlite:/var/lib/croft/croft.db"), "/var/lib/croft/croft.db");
  EXPECT_EQ(file_of_store("etcd:/var/lib/croft/croft.db"), std::nullopt);
}

TEST(StoreUrl, IsShownWithoutUserAndPassword) {
  EXPECT_EQ(without_user("kube:https://u:PW@10.0.0.1"), "kube:https://(hidden)@10.0.0.1");
  EXPECT_EQ(without_user("http://u:PW@10.0.0.1:2379"), "http://(hidden)@10.0.0.1:2379");
  EXPECT_EQ(without_user("ETCD:http://u:PW@127.0.0.1:1"), "ETCD:http://(hidden)@127.0.0.1:1");
  EXPECT_EQ(without_user("etcd:,http://u:PW@1.2.3.4:1"), "etcd:,http://(hidden)@1.2.3.4:1");
  EXPECT_EQ(without_user("etcd:http://u:P/W,@?W@1.2.3.4:1"), "etcd:http://(hidden)@1.2.3.4:1");
  EXPECT_EQ(without_user("etcd:http://a:1,http://u:PW@b:1"), "etcd:http://(hidden)@b:1");
  EXPECT_EQ(without_user("etcd:u:PW@1.2.3.4:1"), "etcd:(hidden)@1.2.3.4:1");
  EXPECT_EQ(without_user("etcd:http://u:PW%4010.0.0.1:1?ca=/x"), "etcd:http://(hidden)%4010.0.0.1:1?ca=/x");
  EXPECT_EQ(without_user("PW@x"), "(hidden)@x");
  EXPECT_EQ(without_user("PW@x//y"), "(hidden)@x//y");
  for (const char* url : {"", "kube:/etc/croft/kubeconfig?group=projectcalico.org/v3", "sqlite:/x", "etcd:https://a:1",
                          "kube:/k?context=admin@cluster", "sqlite:/x%40y"}) {
    EXPECT_EQ(without_user(url), url);
  }
}

TEST(StoreUrl, MembersMakeAnEtcdAndNotTheirOrderOrAClientsFiles) {
  const char* url = "etcd:https://a:2379,https://b:2379?ca=/ca&cert=/mine";
  EXPECT_TRUE(are_same_store(url, "etcd:https://b:2379,https://a:2379?ca=/ca&cert=/yours"));
  EXPECT_FALSE(are_same_store(url, "etcd:https://a:2379?ca=/ca"));
  EXPECT_FALSE(are_same_store(url, "etcd:http://a:2379,https://b:2379"));
  EXPECT_TRUE(are_same_store("sqlite:/a", "sqlite:/a"));
  EXPECT_FALSE(are_same_store("sqlite:/a", "sqlite:/b"));
  EXPECT_FALSE(are_same_store("sqlite:/a", "etcd:/a"));
  EXPECT_TRUE(are_same_store("nothing", "nothing"));
}

TEST(StoreUrl, OfOneRegisterUrlsMayDiffer) {
  EXPECT_EQ(compare_registers("sqlite:/a", "sqlite://a"), OneRegister::yes);
  EXPECT_EQ(compare_registers("sqlite:/a", "sqlite:/b"), OneRegister::no);
  EXPECT_EQ(compare_registers("sqlite:/a", "kube:/a"), OneRegister::no);
  EXPECT_EQ(compare_registers("etcd:http://a:1", "kube:"), OneRegister::no);
  EXPECT_EQ(compare_registers("etcd:http://a:1", "etcd:http://a:1?ca=/x"), OneRegister::yes);
  EXPECT_EQ(compare_registers("etcd:http://a:1", "etcd:http://b:1"), OneRegister::not_said);
  EXPECT_EQ(compare_registers("kube:/a", "kube:/a?group=projectcalico.org/v3"), OneRegister::not_said);
  EXPECT_EQ(compare_registers("nothing", "other"), OneRegister::no);
}

TEST(StoreUrl, APathIsTheSameWithSlashesMore) {
  const char* url = "kube:/etc/cni/net.d/croft-kubeconfig?group=projectcalico.org/v3";
  for (const char* same : {"kube:/etc/cni/net.d//croft-kubeconfig?group=projectcalico.org/v3",
                           "kube://etc/./cni/net.d/./croft-kubeconfig/?group=projectcalico.org/v3"}) {
    EXPECT_TRUE(are_same_store(url, same) && are_same_store(same, url)) << same;
  }
  EXPECT_TRUE(are_same_store("sqlite:/a/b.db", "sqlite:/a//b.db"));
  for (const char* other :
       {"kube:/etc/cni/net.d/croft-kubeconfig", "kube:/etc/cni/x/../net.d/croft-kubeconfig?group=projectcalico.org/v3",
        "kube:etc/cni/net.d/croft-kubeconfig?group=projectcalico.org/v3",
        "kube:/etc/cni/net.d/croft-kubeconfig?group=projectcalico.org//v3",
        "kube:", "kube:/etc/cni/net.dcroft-kubeconfig?group=projectcalico.org/v3"}) {
    EXPECT_FALSE(are_same_store(url, other)) << other;
  }
  EXPECT_FALSE(are_same_store("nothing/", "nothing//"));
}

}  // namespace
}  // namespace croft::store
