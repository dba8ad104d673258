#include "ipam/door/calico_ipam.h"

#include <fstream>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/net/test_values.h"
#include "ipam/use/assign.h"
#include "ipam/use/inspect.h"
#include "ipam/use/pools.h"
#include "os/file_lock.h"
#include "os/files.h"
#include "os/scratch_directory.h"
#include "register/block.h"
#include "store/memory/memory_store.h"

namespace croft::edge {

namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using namespace std::chrono_literals;

/// The plugin whole, from environment and standard input to the printed answer, on a store in memory.
class CalicoIpamTest : public testing::Test {
 protected:
  struct Asked {
    std::string command = "ADD";
    std::string container = "c1";
    std::string ipam{};  ///< further members of `ipam`, each with a comma before it
    std::string more{};  ///< the same at the top level
    std::string args{};
    std::string version = "1.0.0";
    std::string interface_name = "eth0";
    std::string name = "net";
  };

  CniAnswer run(const Asked& asked) {
    CniHost host;
    host.environment = {
        asked.command, asked.container, "/run/netns/x", asked.interface_name, asked.args, "/opt/cni/bin", ""};
    const std::string config = R"({"cniVersion":")" + asked.version + R"(","name":")" + asked.name +
                               R"(","nodename_file":")" + directory_.file("nodename") + R"(","ipam_lock_file":")" +
                               directory_.file("run/calico/ipam.lock") + "\"" + asked.more +
                               R"(,"ipam":{"type":"calico-ipam","store":"memory:")" + asked.ipam + "}}";
    host.read_stdin = [config] { return Result<std::string>(config); };
    host.compare_netns = [](const std::string&) { return os::SameNamespace::no; };
    return run_cni(calico_ipam_plugin(world_), host);
  }
  CniAnswer add(const std::string& container, const std::string& ipam = "", const std::string& args = "") {
    return run({.container = container, .ipam = ipam, .args = args});
  }
  CniAnswer del(const std::string& container, const std::string& args = "") {
    return run({.command = "DEL", .container = container, .args = args});
  }

  engine::Context context() { return {data_, clock_, random_}; }
  void pool(const std::string& name, const char* cidr, int block_length) {
    core::Pool bare;  // as Calico makes them: no gateway, nothing reserved, no cooldown
    bare.name = name;
    bare.cidr = prefix(cidr);
    bare.block_length = block_length;
    bare.cooldown = 0s;
    put(core::pool_key(name), bare);
  }
  void put(const core::Key& key, core::Value value) {
    const store::Write write{key, std::move(value), store::Condition::always()};
    ASSERT_TRUE(data_.commit({&write, 1}, {}, Deadline{}));
  }
  void config(const std::function<void(core::IpamConfig&)>& change) {
    core::IpamConfig config;
    change(config);
    put(core::ipam_config_key(), config);
  }
  /// Assigns as somebody else would write it: under this handle, without attributes.
  void hold(const std::string& handle, const char* address, const std::map<std::string, std::string>& attributes = {}) {
    const auto a = net::Address::parse(address).value();
    auto request = core::AssignRequest();
    const auto dot = handle.find('.');
    request.owner = {dot == std::string::npos ? "x" : handle.substr(0, dot), handle.substr(dot + 1), "eth0"};
    request.node.name = "node-a";
    request.addresses = {a};
    ASSERT_TRUE(engine::assign(context(), request));
    const core::Key key = core::block_key(net::Prefix::containing(a, 26));
    auto block = std::get<core::Block>(*data_.get(key, Deadline{}).value()->value);
    for (core::Attribute& attribute : block.attributes) {
      if (attribute.handle_id == handle) attribute.secondary = attributes;
    }
    put(key, block);
  }
  std::vector<std::string> held() {
    std::vector<std::string> texts;
    const auto all = engine::list_addresses(context());
    for (const engine::AddressView& view : all.value()) {
      if (view.state == core::AddressState::held) texts.push_back(view.address.to_string() + " " + view.handle_id);
    }
    return texts;
  }
  void write_nodename(const std::string& text) { std::ofstream(directory_.file("nodename")) << text; }

  os::ScratchDirectory directory_;
  store::MemoryStore data_;
  ManualClock clock_;
  SeededRandom random_{7};
  std::map<std::string, std::string> variables_;
  std::vector<std::string> log_;
  std::optional<wire::cni::DatastoreChoice> opened_;
  std::optional<Error> broken_;
  CalicoIpamWorld world_{
      {clock_, random_, "host"},
      [this](const wire::cni::DatastoreChoice& choice, store::OpenMode) -> Result<std::unique_ptr<store::Store>> {
        opened_ = choice;
        if (broken_) return fail(*broken_);
        return std::make_unique<store::MemoryStore>(data_.data());
      },
      [this](const char* name) { return variables_[name]; },
      [this](const std::string&, const std::string& line, std::uint64_t) { log_.push_back(line); }};
};

/// ipam/use/assign_test.cc has the rest.
TEST_F(CalicoIpamTest, AnAddressThatSomebodyOnThisNodeLivesWithIsNotGiven) {
  write_nodename("node-a");
  pool("a", "10.1.0.0/24", 26);
  world_.device_of = [](const net::Address& address) {
    return address.to_string() == "10.1.0.9" ? std::optional<std::string>("cali7") : std::nullopt;
  };
  const auto answer = add("c1", "", "IgnoreUnknown=1;IP=10.1.0.9");
  EXPECT_NE(answer.exit_code, 0);
  EXPECT_THAT(answer.out,
              AllOf(HasSubstr("\"code\": 11"), HasSubstr("requested address 10.1.0.9"), HasSubstr("cali7")));
}

TEST_F(CalicoIpamTest, TheResultHasTheBlocksLengthAndARouteToEachAddress) {
  pool("a", "10.1.0.0/24", 26);
  config([](core::IpamConfig& c) { c.strict_affinity = false; });
  const auto answer = add("c1");
  EXPECT_EQ(answer.exit_code, 0) << answer.out;
  const auto address = held().at(0).substr(0, held().at(0).find(' '));
  EXPECT_EQ(answer.out, "{\n    \"cniVersion\": \"1.0.0\",\n    \"ips\": [\n        {\n            \"address\": \"" +
                            address +
                            "/26\"\n        }\n    ],\n    \"routes\": [\n        {\n            \"dst\": \"" +
                            address + "/26\"\n        }\n    ]\n}");
  EXPECT_EQ(add("c1").out, answer.out) << "asked again";
  EXPECT_THAT(held(), ElementsAre(address + " net.c1"));
  EXPECT_THAT(log_.back(), AllOf(HasSubstr("ADD network=net container=c1 ifname=eth0 ok"), HasSubstr(" again")));
}

TEST_F(CalicoIpamTest, AnAddressThatWasAskedForHasItsFullLength) {
  pool("a", "10.1.0.0/24", 26);
  pool("six", "fd00::/112", 122);
  EXPECT_THAT(add("c1", "", "IP=10.1.0.0").out,
              AllOf(HasSubstr(R"("address": "10.1.0.0/32")"), HasSubstr(R"("dst": "10.1.0.0/32")")));
  EXPECT_THAT(add("c2", "", "IP=fd00::9").out, HasSubstr(R"("address": "fd00::9/128")"));
  EXPECT_EQ(add("c1", "", "IP=10.1.0.0").exit_code, 0) << "asked again";
  EXPECT_THAT(add("c3", "", "IP=10.1.0.0").out,
              AllOf(HasSubstr("resource already exists: 10.1.0.0"), HasSubstr("held by net.c1"), HasSubstr(": 100")));
  EXPECT_THAT(add("c3", "", "IP=10.2.0.0").out,
              AllOf(HasSubstr(R"(The provided IP address is not in a configured pool\n)"), HasSubstr(": 102")));
}

TEST_F(CalicoIpamTest, DualStackIsAllOrNothing) {
  pool("a", "10.1.0.0/24", 26);
  pool("six", "fd00::/127", 127);
  const std::string both = R"(,"assign_ipv6":"true")";
  EXPECT_THAT(add("c1", both).out, AllOf(HasSubstr("/26\""), HasSubstr("/127\"")));
  EXPECT_EQ(add("c2", both).exit_code, 0);
  const auto before = held();
  EXPECT_EQ(before.size(), 4U);
  const auto answer = add("c3", both);
  EXPECT_THAT(answer.out,
              HasSubstr("failed to request IPv6 addresses: Assigned 0 out of 1 requested IPv6 addresses; No "
                        "IPs available in pools: [fd00::/127]"));
  EXPECT_EQ(held(), before) << "nothing is left of the family that could be served";
  EXPECT_THAT(add("c3", R"(,"assign_ipv4":"false","assign_ipv6":"false")").out, HasSubstr("assign_ipv6"));
}

TEST_F(CalicoIpamTest, PoolsByNameAndCidr) {
  pool("a", "10.1.0.0/24", 26);
  pool("b", "10.2.0.0/24", 26);
  EXPECT_THAT(add("c1", R"(,"ipv4_pools":["b"])").out, HasSubstr("10.2.0."));
  EXPECT_THAT(add("c2", R"(,"ipv4_pools":["10.2.0.0/24"])").out, HasSubstr("10.2.0."));
  EXPECT_THAT(add("c3", R"(,"ipv4_pools":["zz"])").out,
              AllOf(HasSubstr(R"(error parsing pool \"zz\": invalid CIDR address: zz)"), HasSubstr(": 102"),
                    HasSubstr("pool a (10.1.0.0/24): not the one asked for")));
  EXPECT_THAT(add("c3", R"(,"ipv4_pools":["10.2.0.0/25"])").out,
              HasSubstr("the given pool (10.2.0.0/25) does not exist, or is not enabled"));
}

TEST_F(CalicoIpamTest, RefusalsInCalicosWords) {
  EXPECT_THAT(add("c1").out, AllOf(HasSubstr("cannot find a qualified ippool"), HasSubstr("\"code\": 11")));
  pool("a", "10.1.0.0/30", 31);
  config([](core::IpamConfig& c) {
    c.strict_affinity = true;
    c.max_blocks_per_host = 1;
  });
  for (const char* container : {"c1", "c2"}) EXPECT_EQ(add(container).exit_code, 0);
  EXPECT_THAT(add("c3").out, HasSubstr("cannot allocate new block due to per host block limit"));
  config([](core::IpamConfig& c) { c.strict_affinity = true; });
  for (const char* container : {"c3", "c4"}) EXPECT_EQ(add(container).exit_code, 0);
  EXPECT_THAT(add("c5").out, AllOf(HasSubstr("No more free affine blocks and strict affinity enabled"),
                                   HasSubstr("pool a (10.1.0.0/30): "), HasSubstr("\"code\": 100")));
  EXPECT_THAT(log_.back(), HasSubstr("pool a (10.1.0.0/30): "));
  EXPECT_THAT(run({.container = "c6", .more = R"(,"nodename":"node-z")", .args = "IP=10.1.0.1"}).out,
              HasSubstr("Block host affinity does not match"));
}

TEST_F(CalicoIpamTest, OneBlockWhereAWindowsNetworkIsSingle) {
  pool("a", "10.1.0.0/30", 31);
  for (const char* container : {"c1", "c2"}) EXPECT_EQ(add(container).exit_code, 0);
  EXPECT_THAT(run({.container = "c3", .more = R"(,"windows_use_single_network":true)"}).out,
              HasSubstr("per host block limit"));
  EXPECT_EQ(add("c3").exit_code, 0);
}

TEST_F(CalicoIpamTest, TwentyBlocksAreTheDefaultLimit) {
  pool("a", "10.1.0.0/24", 32);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(add("c" + std::to_string(i)).exit_code, 0) << i;
  EXPECT_THAT(add("late").out, HasSubstr("cannot allocate new block due to per host block limit"));
}

TEST_F(CalicoIpamTest, AttributesAreCalicosAndTheInterface) {
  pool("a", "10.1.0.0/32", 32);
  write_nodename("node-f\n");
  add("c1", "", "K8S_POD_NAME=web-0;K8S_POD_NAMESPACE=shop");
  const auto record = data_.get(core::block_key(net::Prefix::parse("10.1.0.0/32").value()), Deadline{}).value();
  const auto& block = std::get<core::Block>(*record->value);
  EXPECT_EQ(block.attributes.at(0).handle_id, "net.c1");
  EXPECT_THAT(
      block.attributes.at(0).secondary,
      ElementsAre(testing::Pair("ifname", "eth0"), testing::Pair("namespace", "shop"), testing::Pair("node", "node-f"),
                  testing::Pair("pod", "web-0"), testing::Pair("timestamp", HasSubstr(" +0000 UTC"))));
}

TEST_F(CalicoIpamTest, TheNodesNameByItsSources) {
  pool("a", "10.1.0.0/24", 26);
  const auto node_of = [&](const std::string& container) {
    const auto views = engine::list_addresses(context()).value();
    for (const auto& view : views) {
      if (view.handle_id == "net." + container) return view.node;
    }
    return std::string("nobody");
  };
  add("c1");
  EXPECT_EQ(node_of("c1"), "host");
  run({.container = "c2", .more = R"(,"hostname":"old-name")"});
  EXPECT_EQ(node_of("c2"), "old-name");
  write_nodename("from-file");
  run({.container = "c3", .more = R"(,"hostname":"old-name")"});
  EXPECT_EQ(node_of("c3"), "from-file");
  run({.container = "c4", .more = R"(,"nodename":"node-a")"});
  EXPECT_EQ(node_of("c4"), "node-a");
  write_nodename("root:$6$SECRET:19000:::\n");
  const std::size_t logged = log_.size();
  EXPECT_THAT(add("c5").out, AllOf(HasSubstr("nodename_file " + directory_.file("nodename")),
                                   HasSubstr("no name of a node"), HasSubstr("\"code\": 7"), Not(HasSubstr("SECRET"))))
      << "who names a file of root's may not read it";
  ASSERT_GT(log_.size(), logged);
  EXPECT_THAT(log_, Each(Not(HasSubstr("SECRET"))));
  EXPECT_EQ(del("c1").exit_code, 0) << "a release needs no node";
  write_nodename(" \n");
  add("c6");
  EXPECT_EQ(node_of("c6"), "host") << "an empty file says nothing";
}

TEST_F(CalicoIpamTest, DelReleasesTheInterfaceAndMayBeRepeated) {
  pool("a", "10.1.0.0/24", 26);
  add("c1");
  run({.container = "c1", .interface_name = "eth1"});
  EXPECT_EQ(held().size(), 2U);
  EXPECT_EQ(del("c1"), CniAnswer());
  EXPECT_EQ(held().size(), 1U) << "the other interface's stays";
  EXPECT_EQ(del("c1"), CniAnswer());
  EXPECT_EQ(run({.command = "DEL", .container = "c1", .interface_name = "eth1"}), CniAnswer());
  EXPECT_THAT(held(), IsEmpty());
  EXPECT_EQ(del("unknown"), CniAnswer());
}

TEST_F(CalicoIpamTest, DelReleasesWhatCalicoWroteWithoutAnInterface) {
  pool("a", "10.1.0.0/24", 26);
  add("c1");
  const core::Key key = core::block_key(engine::list_block_cidrs(context()).value().at(0));
  auto block = std::get<core::Block>(*data_.get(key, Deadline{}).value()->value);
  block.attributes.at(0).secondary.erase("ifname");
  put(key, block);
  EXPECT_EQ(run({.command = "DEL", .container = "c1", .interface_name = "net1"}), CniAnswer());
  EXPECT_THAT(held(), IsEmpty());
}

TEST_F(CalicoIpamTest, CheckDoesNothingAndNewerCommandsAreRefused) {
  EXPECT_EQ(run({.command = "CHECK", .container = "unknown"}), CniAnswer());
  EXPECT_FALSE(opened_);
  for (const char* command : {"STATUS", "GC"}) {
    EXPECT_EQ(run({.command = command, .version = "1.1.0"}).out,
              "{\n    \"code\": 1,\n    \"msg\": \"plugin version does not allow " + std::string(command) + "\"\n}");
    EXPECT_EQ(run({.command = command}).out,
              "{\n    \"code\": 1,\n    \"msg\": \"config version does not allow " + std::string(command) + "\"\n}");
  }
  EXPECT_EQ(run({.command = "VERSION"}).out,
            "{\"cniVersion\":\"1.1.0\",\"supportedVersions\":[\"0.1.0\",\"0.2.0\",\"0.3.0\",\"0.3.1\",\"0.4.0\","
            "\"1.0.0\"]}\n");
}

TEST_F(CalicoIpamTest, TheLockIsMadeTakenAndGivenBack) {
  pool("a", "10.1.0.0/24", 26);
  EXPECT_EQ(add("c1").exit_code, 0);
  EXPECT_TRUE(os::file_status(directory_.file("run/calico/ipam.lock")).value());
  os::FileLock lock(directory_.file("run/calico/ipam.lock"));
  EXPECT_TRUE(lock.lock(clock_, Deadline::after(clock_.now(), 1s)));
}

TEST_F(CalicoIpamTest, ALockThatCannotBeHadIsLoggedAndIgnored) {
  pool("a", "10.1.0.0/24", 26);
  std::ofstream(directory_.file("run")) << "a file in the way";
  EXPECT_EQ(add("c1").exit_code, 0);
  ASSERT_EQ(log_.size(), 2U);
  EXPECT_THAT(log_.front(), HasSubstr("warning us=0 why=\"going on without the host-wide lock: "));
  EXPECT_EQ(del("c1").exit_code, 0);
  EXPECT_THAT(held(), IsEmpty());
}

TEST_F(CalicoIpamTest, LogLevelErrorKeepsFailuresOnly) {
  pool("a", "10.1.0.0/32", 32);
  const std::string quiet = R"(,"log_level":"error")";
  run({.container = "c1", .more = quiet});
  EXPECT_THAT(log_, IsEmpty());
  run({.container = "c2", .more = quiet});
  EXPECT_THAT(log_, ElementsAre(HasSubstr("error")));
}

TEST_F(CalicoIpamTest, ANearMissIsIgnoredWithAWordInTheLog) {
  pool("a", "10.1.0.0/24", 26);
  EXPECT_EQ(run({.ipam = R"(,"ipv4_pool":["b"],"mtu":1)", .more = R"(,"nodenam":"x","mtu":1500)"}).exit_code, 0);
  ASSERT_EQ(log_.size(), 3U);
  EXPECT_THAT(log_[0], HasSubstr("warning us=0 why=\"unknown member nodenam is ignored; did you mean nodename?\""));
  EXPECT_THAT(log_[1], HasSubstr("why=\"unknown member ipam.ipv4_pool is ignored; did you mean ipv4_pools?\""));
  EXPECT_THAT(log_[2], HasSubstr("ADD network=net container=c1 ifname=eth0 ok"));
  EXPECT_EQ(run({.command = "DEL", .ipam = R"(,"ipv4_pool":["b"])"}).exit_code, 0);
  EXPECT_EQ(log_.size(), 4U);
}

TEST_F(CalicoIpamTest, VirtualMachinesWhoseAddressesPersistAreRefused) {
  pool("a", "10.1.0.0/24", 26);
  const std::string args = "K8S_POD_NAME=virt-launcher-x-abcde;K8S_POD_NAMESPACE=vms";
  EXPECT_EQ(add("c1", "", args).exit_code, 0) << "nobody asked for persistence";
  config([](core::IpamConfig& c) { c.kubevirt_vm_address_persistence = "Enabled"; });
  EXPECT_THAT(add("c2", "", args).out, AllOf(HasSubstr("kubeVirtVMAddressPersistence"), HasSubstr("\"code\": 102")));
  EXPECT_EQ(add("c2").exit_code, 0);
  EXPECT_EQ(del("c1", args).exit_code, 0);
}

TEST_F(CalicoIpamTest, EveryVersionAnswersInItsForm) {
  pool("a", "10.1.0.0/32", 32);
  for (const char* version : {"0.1.0", "0.2.0"}) {
    EXPECT_THAT(run({.version = version}).out, AllOf(HasSubstr(R"("ip4": {)"), HasSubstr(R"("ip": "10.1.0.0/32")"),
                                                     HasSubstr(R"("dst": "10.1.0.0/32")")))
        << version;
  }
  for (const char* version : {"0.3.0", "0.3.1", "0.4.0", "1.0.0"}) {
    EXPECT_THAT(run({.version = version}).out, HasSubstr("\"ips\"")) << version;
  }
}

TEST_F(CalicoIpamTest, ADelWhileTheRegisterIsAwayIsMadeUpForLater) {
  pool("a", "10.1.0.0/24", 26);
  world_.tombstones = directory_.file("tombstones");
  add("c1");
  hold("x.c9", "10.1.0.9");
  broken_ = Error{ErrorCode::unavailable, "nobody answers", ""};
  const auto answer = del("c1", "K8S_POD_NAMESPACE=default;K8S_POD_NAME=pod-1");
  EXPECT_EQ(answer.exit_code, 0) << answer.out;
  EXPECT_THAT(log_.back(), HasSubstr("deferred=\"nobody answers\""));
  broken_.reset();
  EXPECT_EQ(held().size(), 2U);
  EXPECT_EQ(del("c2").exit_code, 0);
  EXPECT_THAT(held(), ElementsAre("10.1.0.9 x.c9"));
  add("c1");
  EXPECT_EQ(del("c2").exit_code, 0);
  EXPECT_EQ(held().size(), 2U);
}

using core::Refusal;
using core::RefusalCause;

Refusal refusal(RefusalCause cause, std::vector<core::PoolVerdict> considered = {}) {
  return {ErrorCode::exhausted, "Croft's summary", std::move(considered), cause};
}

core::AssignRequest request() {
  core::AssignRequest result;
  result.node.name = "node-a";
  result.count.v4 = result.count.v6 = 1;
  return result;
}

std::string message(const Refusal& refused, const core::AssignRequest& wanted = request()) {
  return calico_error(refused, wanted).message;
}

TEST(CalicoMessages, FullPoolsAreListedAsGoPrintsAList) {
  const std::vector<core::PoolVerdict> v4 = {{"m", prefix("10.3.0.0/24"), "serves only requests that name it", false},
                                             {"a", prefix("10.1.0.0/24"), "full", true},
                                             {"b", prefix("10.2.0.0/24"), "full", true}};
  EXPECT_EQ(
      message(refusal(RefusalCause::full, v4)),
      "failed to request IPv4 addresses: Assigned 0 out of 1 requested IPv4 addresses; No IPs available in pools: "
      "[10.1.0.0/24 10.2.0.0/24]");
  EXPECT_EQ(
      message(refusal(RefusalCause::full, {{"six", prefix("fd00::/120"), "full", true}})),
      "failed to request IPv6 addresses: Assigned 0 out of 1 requested IPv6 addresses; No IPs available in pools: "
      "[fd00::/120]");
  EXPECT_EQ(
      message(refusal(RefusalCause::full_and_strict, v4)),
      "failed to request IPv4 addresses: Assigned 0 out of 1 requested IPv4 addresses; No more free affine blocks "
      "and strict affinity enabled");
}

TEST(CalicoMessages, CausesWithoutAPool) {
  EXPECT_EQ(message(refusal(RefusalCause::block_limit)), "cannot allocate new block due to per host block limit");
  EXPECT_EQ(message(refusal(RefusalCause::no_block_to_claim)), "failed to find or claim a block");
  EXPECT_EQ(message(refusal(RefusalCause::no_pool_enabled)), "cannot find a qualified ippool");
  EXPECT_EQ(message(refusal(RefusalCause::no_pool_for_node)), "no configured Calico pools for node node-a");
  EXPECT_EQ(message(refusal(RefusalCause::no_pool_qualified)),
            "cannot find a qualified ippool, no pools match the required use (Workload)");
  EXPECT_EQ(message(refusal(RefusalCause::other)), "Croft's summary");
}

TEST(CalicoMessages, PoolsThatWereAskedFor) {
  const Refusal refused =
      refusal(RefusalCause::pool_not_usable,
              {{"a", prefix("10.1.0.0/24"), "disabled", false}, {"six", prefix("fd00::/120"), "not asked for", false}});
  auto wanted = request();
  wanted.pools.v4 = {"nowhere"};
  EXPECT_EQ(message(refused, wanted), "error parsing pool \"nowhere\": invalid CIDR address: nowhere");
  wanted.pools.v4 = {"six"};
  EXPECT_EQ(message(refused, wanted), "\"fd00::\" isn't a IPv4 address");
  wanted.pools.v4 = {"a"};
  EXPECT_EQ(message(refused, wanted), "the given pool (10.1.0.0/24) does not exist, or is not enabled");
  wanted.pools.v4 = {prefix("10.9.0.0/24")};
  EXPECT_EQ(message(refused, wanted), "the given pool (10.9.0.0/24) does not exist, or is not enabled");
}

TEST(CalicoMessages, CodeAndDetailsAreCrofts) {
  const Error error =
      calico_error(refusal(RefusalCause::full, {{"a", prefix("10.1.0.0/24"), "its blocks are full", true}}), request());
  EXPECT_EQ(error.code, ErrorCode::exhausted);
  EXPECT_EQ(error.details, "pool a (10.1.0.0/24): its blocks are full");
  EXPECT_EQ(calico_error(refusal(RefusalCause::block_limit), request()).details, "Croft's summary");
}

}  // namespace

}  // namespace croft::edge
