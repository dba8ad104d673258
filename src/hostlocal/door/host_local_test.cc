#include "hostlocal/door/host_local.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "hostlocal/use/test_reservations.h"
#include "os/scratch_directory.h"

namespace croft::edge {
namespace {

using namespace net::literals;
using store::Holder;
using testing::HasSubstr;
using testing::IsEmpty;

/// The plugin whole, from environment and standard input to the printed answer, on a directory in memory.
class HostLocalTest : public testing::Test {
 protected:
  CniAnswer run(const std::string& command, const std::string& ipam, const std::string& more = "",
                const std::string& version = "1.1.0", os::SameNamespace netns = os::SameNamespace::no) {
    CniHost host;
    host.environment = {command, "dummy", "/run/netns/x", "eth0", "", "/opt/cni/bin", ""};
    const std::string config = R"({"cniVersion":")" + version + R"(","name":"net")" +
                               (ipam.empty() ? "" : R"(,"ipam":{"type":"host-local",)" + ipam + "}") + more + "}";
    host.read_stdin = [config] { return Result<std::string>(config); };
    host.compare_netns = [netns](const std::string&) { return netns; };
    return run_cni(host_local_plugin(world_), host);
  }
  [[nodiscard]] Result<std::unique_ptr<store::Reservations>> open(const std::string& data_dir, store::OpenMode mode) {
    const bool make = mode == store::OpenMode::create;
    opened_ = data_dir;
    clock_.advance(lock_wait_);
    if (broken_) return fail(*broken_);
    if (make_error_ && make) return fail(*make_error_);
    if (!exists_ && !make) return fail(ErrorCode::not_found, "open: no such file or directory");
    exists_ = true;
    return std::make_unique<engine::FakeReservations>(data_);
  }

  static constexpr const char* kRange = R"("dataDir":"/d","ranges":[[{"subnet":"10.1.2.0/30"}]])";

  engine::ReservationsData data_;
  bool exists_ = false;
  std::string opened_;
  std::optional<Error> broken_, make_error_, directory_error_;
  std::vector<std::string> log_;
  std::chrono::seconds lock_wait_{0};
  ManualClock clock_;
  HostLocalWorld world_{[this](const std::string& dir, const std::string&, auto mode) { return open(dir, mode); },
                        [this](const std::string&, const std::string&) -> Result<void> {
                          if (directory_error_) return fail(*directory_error_);
                          return {};
                        },
                        clock_, [](const std::string&) {}, [this](const std::string& line) { log_.push_back(line); }};
};

std::string error_text(int code, const std::string& msg) {
  return "{\n    \"code\": " + std::to_string(code) + ",\n    \"msg\": \"" + msg + "\"\n}";
}

TEST_F(HostLocalTest, AddPrintsAddressesRoutesAndDns) {
  const os::ScratchDirectory scratch;
  std::ofstream(scratch.file("resolv.conf")) << "nameserver 192.0.2.3\n";
  const auto answer = run("ADD", std::string(kRange) + R"(,"routes":[{"dst":"0.0.0.0/0"}],"resolvConf":")" +
                                     scratch.file("resolv.conf") + "\"");
  EXPECT_EQ(answer.exit_code, 0);
  EXPECT_EQ(answer.out,
            "{\n    \"cniVersion\": \"1.1.0\",\n    \"dns\": {\n        \"nameservers\": [\n            "
            "\"192.0.2.3\"\n        ]\n    },\n    \"ips\": [\n        {\n            \"address\": \"10.1.2.2/30\",\n"
            "            \"gateway\": \"10.1.2.1\"\n        }\n    ],\n    \"routes\": [\n        {\n            "
            "\"dst\": \"0.0.0.0/0\"\n        }\n    ]\n}");
  EXPECT_EQ(opened_, "/d");
  EXPECT_THAT(log_.back(), HasSubstr("host-local ADD network=net dir=/d container=dummy ifname=eth0 ok us=0 "
                                     "addresses=10.1.2.2"));
}

TEST_F(HostLocalTest, EveryErrorHasTheOneCode) {
  EXPECT_EQ(run("ADD", R"("ranges":[])").out, error_text(999, "no IP ranges specified"));
  EXPECT_EQ(run("CHECK", kRange).out, error_text(999, "host-local: Failed to find address added by container dummy"));
  broken_ = Error{ErrorCode::permission_denied, "mkdir /d/net: permission denied", {}};
  EXPECT_EQ(run("ADD", kRange).out, error_text(999, "mkdir /d/net: permission denied"));
  EXPECT_EQ(run("DEL", kRange).out, error_text(999, "mkdir /d/net: permission denied"));
}

// Row 115.
TEST_F(HostLocalTest, AMissingResolvConfFailsAddBeforeAnythingIsTouched) {
  const std::string ipam = std::string(kRange) + R"(,"resolvConf":"/nowhere/resolv.conf")";
  EXPECT_EQ(run("ADD", ipam).out, error_text(999, "open /nowhere/resolv.conf: no such file or directory"));
  EXPECT_EQ(opened_, "");
  EXPECT_EQ(run("DEL", ipam).exit_code, 0);
}

TEST_F(HostLocalTest, TheNamespaceIsComparedBeforeAddAndAfterDel) {
  EXPECT_EQ(run("ADD", kRange, "", "1.0.0", os::SameNamespace::yes).exit_code, 1);
  EXPECT_THAT(data_.files, IsEmpty());
  data_.put("10.1.2.2"_ip, Holder{"dummy", "eth0"});
  EXPECT_THAT(run("DEL", kRange, "", "1.0.0", os::SameNamespace::yes).out, HasSubstr("\"code\": 8"));
  EXPECT_THAT(data_.files, IsEmpty());
}

TEST_F(HostLocalTest, DelSucceedsWhereNothingIsAndNothingCanBeMade) {
  make_error_ = Error{ErrorCode::read_only, "mkdir /d: read-only file system", {}};
  EXPECT_EQ(run("DEL", kRange).exit_code, 0);
  make_error_ = Error{ErrorCode::already_exists, "mkdir /d: file exists", {}};  // a link to nothing
  EXPECT_EQ(run("DEL", kRange).exit_code, 1);
}

TEST_F(HostLocalTest, GcFreesByTheListAndNothingWithoutOne) {
  const auto fill = [&] {
    exists_ = true;
    data_.put("10.1.2.2"_ip, Holder{"dead", "eth0"});
    data_.put("10.1.2.3"_ip, Holder{"dummy", "eth0"});
  };
  fill();
  EXPECT_EQ(run("GC", kRange).exit_code, 0);
  EXPECT_EQ(run("GC", kRange, R"(,"cni.dev/valid-attachments":null)").exit_code, 0);
  EXPECT_EQ(run("GC", "", R"(,"cni.dev/valid-attachments":[])").exit_code, 0);
  EXPECT_EQ(data_.files.size(), 2U);
  const std::string list = R"(,"cni.dev/valid-attachments":[{"containerID":"dummy","ifname":"eth0"}])";
  EXPECT_EQ(run("GC", kRange, list).exit_code, 0);
  EXPECT_EQ(data_.files.size(), 1U);
  EXPECT_EQ(run("GC", kRange, R"(,"cni.dev/valid-attachments":[])").exit_code, 0);
  EXPECT_THAT(data_.files, IsEmpty());
  exists_ = false;
  EXPECT_EQ(run("GC", kRange, list).exit_code, 0) << "a network nobody used";
  data_.list_error = Error{ErrorCode::internal, "open /d/net/10.1.2.2: input/output error", {}};
  exists_ = true;
  EXPECT_EQ(run("GC", kRange, list).exit_code, 1);
}

TEST_F(HostLocalTest, WhatWasReservedWhileGcWaitedForTheLockIsYoung) {
  exists_ = true;
  lock_wait_ = std::chrono::seconds(89);
  data_.put("10.1.2.2"_ip, Holder{"new", "eth0"}, clock_.now().wall + std::chrono::seconds(1));
  EXPECT_EQ(run("GC", kRange, R"(,"cni.dev/valid-attachments":[])").exit_code, 0);
  EXPECT_EQ(data_.files.size(), 1U);
}

TEST_F(HostLocalTest, StatusLooksAtTheDirectoryAndAtFullRangesOnlyWhenAsked) {
  EXPECT_EQ(run("STATUS", kRange).exit_code, 0);
  data_.put("10.1.2.2"_ip, Holder{"a", "eth0"});
  EXPECT_EQ(run("STATUS", kRange).exit_code, 0);
  const auto full = run("STATUS", std::string(kRange) + R"(,"statusWhenFull":true)");
  EXPECT_THAT(full.out, HasSubstr("\"code\": 50"));
  EXPECT_THAT(full.out, HasSubstr("no IP addresses available in range set: 10.1.2.1-10.1.2.2"));
  directory_error_ = Error{ErrorCode::read_only, "open /d/net: read-only file system", {}};
  EXPECT_THAT(run("STATUS", kRange).out, HasSubstr("open /d/net: read-only file system"));
  EXPECT_THAT(run("STATUS", R"("ranges":[])").out, HasSubstr("no IP ranges specified"));
}

}  // namespace
}  // namespace croft::edge
