// What `croft vpc` shows, and what it says with an agent that answers what a test says.

#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/croft/command_line.h"
#include "http/grpc_server.h"
#include "os/clock.h"
#include "os/scratch_directory.h"
#include "vpc/commands/vpc_views.h"
#include "vpc/format/messages.h"

namespace croft::app {
namespace {

using wire::vpc::PodNetwork;

constexpr std::int64_t kNow = 1'700'000'000;
constexpr std::int64_t kHours21 = kNow - 21 * 3600;

PodNetwork network(const char* ip, bool recycled) {
  PodNetwork made;
  made.ip = ip;
  made.subnet = "subnet-dsck39bnlhu";
  made.create_time = kHours21;
  made.recycled = recycled;
  if (recycled) made.recycle_time = kHours21;
  return made;
}

PodNetwork pod(const char* space, const char* name, const char* ip) {
  PodNetwork made = network(ip, false);
  made.pod_namespace = space;
  made.pod_name = name;
  return made;
}

// The examples of UK8S' product document. Its text has lost the blanks between columns; they are as cnivpctl pads them,
// and its first line of nodes shows them whole.
TEST(VpcViews, NodesOfTheProductDocument) {
  std::vector<VpcRow> rows = {
      vpc_node_row("192.168.47.103", "192.168.47.103:7312", "subnet-dsck39bnlhu", 4),
      vpc_node_row("192.168.45.101", "192.168.45.101:7312", "subnet-dsck39bnlhu", 9),
  };
  sort_vpc_rows(rows);
  const std::string table =
      "NODE            SUBNET              POOL  \n"
      "192.168.45.101  subnet-dsck39bnlhu  9     \n"
      "192.168.47.103  subnet-dsck39bnlhu  4     \n";
  EXPECT_EQ(cnivpctl_table(VpcKind::node, rows, false), table);
  EXPECT_EQ(cnivpctl_table(VpcKind::node, rows, true), table) << "wide adds nothing";
}

// The document shows the order of the database's keys, 192.168.45.207 before 192.168.45.59; ours are numbers.
TEST(VpcViews, PoolOfTheProductDocument) {
  std::vector<VpcRow> rows;
  for (const auto& [ip, recycled] : std::vector<std::pair<const char*, bool>>{{"192.168.32.35", true},
                                                                              {"192.168.34.138", true},
                                                                              {"192.168.35.38", true},
                                                                              {"192.168.36.86", true},
                                                                              {"192.168.43.106", true},
                                                                              {"192.168.43.227", false},
                                                                              {"192.168.45.207", true},
                                                                              {"192.168.45.229", false},
                                                                              {"192.168.45.59", false}}) {
    rows.push_back(vpc_pool_row("192.168.45.101", network(ip, recycled), false, kNow));
  }
  sort_vpc_rows(rows);
  EXPECT_EQ(cnivpctl_table(VpcKind::pool, rows, false),
            "IP              RECYCLED  COOLDOWN  AGE  \n"
            "192.168.32.35   21h       false     21h  \n"
            "192.168.34.138  21h       false     21h  \n"
            "192.168.35.38   21h       false     21h  \n"
            "192.168.36.86   21h       false     21h  \n"
            "192.168.43.106  21h       false     21h  \n"
            "192.168.43.227  <none>    false     21h  \n"
            "192.168.45.59   <none>    false     21h  \n"
            "192.168.45.207  21h       false     21h  \n"
            "192.168.45.229  <none>    false     21h  \n");
  rows.erase(rows.begin() + 1, rows.end());
  rows.push_back(vpc_pool_row("192.168.47.103", network("192.168.40.121", true), true, kNow));
  EXPECT_EQ(cnivpctl_table(VpcKind::pool, rows, true),
            "IP              RECYCLED  COOLDOWN  AGE  NODE            \n"
            "192.168.32.35   21h       false     21h  192.168.45.101  \n"
            "192.168.40.121  21h       true      21h  192.168.47.103  \n");
}

TEST(VpcViews, PodsOfTheProductDocument) {
  std::vector<VpcRow> rows;
  for (const auto& [space, name, ip] :
       std::vector<std::array<const char*, 3>>{{"kube-system", "uk8s-kubectl-68bb767f87-tpzng", "192.168.42.53"},
                                               {"default", "nginx-deployment-66f49c7846-s54jj", "192.168.40.126"},
                                               {"default", "nginx-deployment-66f49c7846-mfgp4", "192.168.34.55"},
                                               {"default", "nginx-deployment-66f49c7846-gtpbk", "192.168.40.14"},
                                               {"kube-system", "metrics-server-fff8f8668-rgfmr", "192.168.36.42"},
                                               {"kube-system", "csi-udisk-controller-0", "192.168.43.110"},
                                               {"kube-system", "coredns-798fcc8f9d-jzccm", "192.168.42.69"}}) {
    rows.push_back(vpc_pod_row("192.168.47.103", pod(space, name, ip), kNow));
  }
  sort_vpc_rows(rows);
  EXPECT_EQ(cnivpctl_table(VpcKind::pod, rows, false),
            "NAMESPACE    NAME                               IP              AGE  \n"
            "kube-system  coredns-798fcc8f9d-jzccm           192.168.42.69   21h  \n"
            "kube-system  csi-udisk-controller-0             192.168.43.110  21h  \n"
            "kube-system  metrics-server-fff8f8668-rgfmr     192.168.36.42   21h  \n"
            "default      nginx-deployment-66f49c7846-gtpbk  192.168.40.14   21h  \n"
            "default      nginx-deployment-66f49c7846-mfgp4  192.168.34.55   21h  \n"
            "default      nginx-deployment-66f49c7846-s54jj  192.168.40.126  21h  \n"
            "kube-system  uk8s-kubectl-68bb767f87-tpzng      192.168.42.53   21h  \n");
  rows.push_back(vpc_pod_row("192.168.45.101", pod("kube-system", "coredns-798fcc8f9d-gdrbq", "192.168.41.246"), kNow));
  sort_vpc_rows(rows);
  EXPECT_EQ(rows.front().node, "192.168.45.101");
  EXPECT_EQ(vpc_headings(VpcKind::pod, true), (std::vector<std::string>{"NAMESPACE", "NAME", "IP", "AGE", "NODE"}));
}

TEST(VpcViews, SortsNodesAndAddressesAsNumbers) {
  std::vector<VpcRow> rows;
  for (const auto& [node, ip] : std::vector<std::pair<const char*, const char*>>{{"b", "10.0.0.1"},
                                                                                 {"10.0.0.10", "fd00::2"},
                                                                                 {"10.0.0.9", "10.0.0.3"},
                                                                                 {"10.0.0.10", "10.0.0.20"},
                                                                                 {"10.0.0.10", "10.0.0.3"},
                                                                                 {"a", "10.0.0.1"}}) {
    rows.push_back(vpc_unuse_row(node, network(ip, false)));
  }
  sort_vpc_rows(rows);
  std::string order;
  for (const VpcRow& row : rows) order += row.node + "/" + row.ip + " ";
  EXPECT_EQ(order, "10.0.0.9/10.0.0.3 10.0.0.10/10.0.0.3 10.0.0.10/10.0.0.20 10.0.0.10/fd00::2 a/10.0.0.1 b/10.0.0.1 ");
}

TEST(VpcViews, FiltersByPartOfNodeOrAddress) {
  std::vector<VpcRow> rows = {vpc_unuse_row("node-a", network("10.0.0.1", false)),
                              vpc_unuse_row("node-b", network("10.0.1.1", false))};
  rows.front().why = "the host uses it";
  EXPECT_NE(vpc_table(VpcKind::unuse, rows, false).to_string().find("WHY"), std::string::npos);
  EXPECT_EQ(cnivpctl_table(VpcKind::unuse, rows, false).find("WHY"), std::string::npos) << "as UCloud's prints it";
  auto copy = rows;
  filter_vpc_rows(copy, "");
  EXPECT_EQ(copy.size(), 2U);
  filter_vpc_rows(copy, "0.1.1");
  ASSERT_EQ(copy.size(), 1U);
  EXPECT_EQ(copy[0].node, "node-b");
  filter_vpc_rows(rows, "de-a");
  ASSERT_EQ(rows.size(), 1U);
  filter_vpc_rows(rows, "x");
  EXPECT_TRUE(rows.empty());
}

TEST(VpcViews, Ages) {
  const auto age = [](std::int64_t seconds) { return vpc_age(kNow, kNow - seconds); };
  EXPECT_EQ(age(-5), "0s");
  EXPECT_EQ(age(0), "0s");
  EXPECT_EQ(age(300), "300s");
  EXPECT_EQ(age(301), "5m");
  EXPECT_EQ(age(5 * 3600), "300m");
  EXPECT_EQ(age(5 * 3600 + 1), "5h");
  EXPECT_EQ(age(3 * 86400), "72h");
  EXPECT_EQ(age(5 * 86400), "120h");
  EXPECT_EQ(age(5 * 86400 + 1), "5d");
  EXPECT_EQ(age(365 * 86400), "365d");
  EXPECT_EQ(age(365 * 86400 + 1), "1y");
  PodNetwork unknown = network("10.0.0.1", true);
  unknown.create_time = unknown.recycle_time = 0;
  EXPECT_EQ(vpc_pool_row("n", unknown, false, kNow).cells,
            (std::vector<std::string>{"10.0.0.1", "<none>", "false", "<none>"}));
}

TEST(VpcViews, DataIsAnObjectOrAnArray) {
  const std::vector<VpcRow> one = {vpc_unuse_row("node-a", network("10.0.0.1", false))};
  EXPECT_EQ(cnivpctl_data(one).json(),
            "{\n  \"Node\": \"node-a\",\n  \"IP\": \"10.0.0.1\",\n  \"SubnetID\": \"subnet-dsck39bnlhu\"\n}\n");
  EXPECT_EQ(cnivpctl_data(one).yaml(), "Node: \"node-a\"\n\"IP\": \"10.0.0.1\"\nSubnetID: \"subnet-dsck39bnlhu\"\n");
  EXPECT_EQ(vpc_data(one).json().substr(0, 2), "[\n");
  EXPECT_EQ(cnivpctl_data({one[0], one[0]}).json().substr(0, 2), "[\n");
  EXPECT_EQ(vpc_data({}).json(), "[]\n");

  const auto keys = [](const VpcRow& row) {
    std::string text;
    for (const auto& [key, value] : row.object.items()) text += key + " ";
    return text;
  };
  EXPECT_EQ(keys(vpc_node_row("n", "a", "s", 1)), "name addr subnet pool ");
  EXPECT_EQ(keys(vpc_pool_row("n", network("10.0.0.1", true), true, kNow)),
            "ip node create_time recycled recycled_time cooldown ");
  EXPECT_EQ(
      keys(vpc_pod_row("n", pod("a", "b", "10.0.0.1"), kNow)),
      "node pod_ns pod_name pod_uid sandbox_id net_ns vpcip vpcid subnet_id gateway mask mac_address dedicated_uni "
      "interface_id eipid create_time ");
}

/// Has so many unused addresses, and releases them until `releases` calls have been.
class Agent final : public os::GrpcHandler {
 public:
  [[nodiscard]] bool serves(std::string_view /*method*/) override { return true; }
  void on_request(os::GrpcRequest request) override {
    const auto method = wire::vpc::method_of(request.method);
    if (method == wire::vpc::Method::release_ip && releases-- == 0) {
      return server->answer({{request.call, os::GrpcCode::internal, "no list: nothing was released", ""}});
    }
    wire::vpc::NetworksAnswer unused;
    unused.networks.resize(method == wire::vpc::Method::list_unuse ? 70 : 0);
    for (std::size_t i = 0; i < unused.networks.size(); ++i) unused.networks[i].ip = fmt::format("10.0.0.{}", i + 1);
    server->answer({{request.call, os::GrpcCode::ok, "", wire::vpc::encode(unused)}});
  }
  os::GrpcServer* server = nullptr;
  int releases = 0;
};

TEST(VpcRelease, SaysHowFarItCameWhereALaterPartFails) {
  const os::ScratchDirectory scratch;
  const os::SystemClock clock;
  os::SystemRandom random;
  const std::string socket = scratch.file("agent.sock");
  auto server = os::GrpcServer::make(os::UnixListener::listen(socket, {{::geteuid()}}, clock).value(), {}, clock);
  ASSERT_TRUE(server) << server.error().message;
  Agent agent;
  agent.server = server->get();
  (*server)->serve(agent);
  for (const auto& [releases, said] : {std::pair(2, "; at least 60 of 70 were released before"), std::pair(0, "")}) {
    agent.releases = releases;
    CommandLine line{"", CommandLine::Output::table, "auto", {}, clock, random, nullptr};
    CLI::App app{"Croft", "croft"};
    add_everything(app, line);
    std::vector<std::string> words{"vpc", "release", "node-a", "--yes", "--agent", "node-a=unix:" + socket};
    std::ranges::reverse(words);
    app.parse(words);
    testing::internal::CaptureStdout();
    const auto done = line.run(line);
    EXPECT_THAT(testing::internal::GetCapturedStdout(), testing::HasSubstr("10.0.0.70"));
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().message, testing::EndsWith(fmt::format("no list: nothing was released{}", said)));
  }
  (*server)->stop(Deadline::after(clock.now(), std::chrono::seconds(5)));
}

}  // namespace
}  // namespace croft::app
