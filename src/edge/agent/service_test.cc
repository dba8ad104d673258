#include "edge/agent/service.h"

#include <string>

#include <gtest/gtest.h>

#include "engine/test_world.h"

namespace croft::edge {
namespace {

namespace agent = wire::agent;

/// Whether an agent that serves one store answers a caller that names the other. The store behind is in memory; the
/// URLs are only compared.
bool serves(const std::string& own, const std::string& callers) {
  engine::World world;
  AgentWorld agents_world{world.store, world.store, world.clock, world.random,
                          own,         "node-a",    {},          [](const std::string&) {}};
  AgentService service(agents_world);
  const Instant now = world.clock.now();
  const agent::ReleaseCall call{{callers, "node-a", now.boot, Deadline::after(now, std::chrono::seconds(5))},
                                core::Owner{"net", "c", "eth0"}};
  const auto answer = service.release(agent::encode(call), {});
  if (!answer) {
    EXPECT_EQ(answer.error().code, ErrorCode::refused_by_configuration);
    EXPECT_EQ(answer.error().message, "this agent serves the store " + own + ", not " + callers);
  }
  return answer.has_value();
}

/// Both ways round.
void expect_same(const std::string& a, const std::string& b) {
  EXPECT_TRUE(serves(a, b)) << a << " and " << b;
  EXPECT_TRUE(serves(b, a)) << b << " and " << a;
}
void expect_other(const std::string& a, const std::string& b) {
  EXPECT_FALSE(serves(a, b)) << a << " and " << b;
  EXPECT_FALSE(serves(b, a)) << b << " and " << a;
}

TEST(AgentServiceStore, TheSameUrl) {
  expect_same("sqlite:/var/lib/croft/croft.db", "sqlite:/var/lib/croft/croft.db");
  expect_same("etcd:https://10.0.0.1:2379", "etcd:https://10.0.0.1:2379");
}

TEST(AgentServiceStore, MembersOfEtcdInAnyOrder) {
  expect_same("etcd:http://10.0.0.1:2379,http://10.0.0.2:2379", "etcd:http://10.0.0.2:2379,http://10.0.0.1:2379");
  expect_same("etcd:http://10.0.0.1:2379,http://10.0.0.1:2379", "etcd:http://10.0.0.1:2379");
}

TEST(AgentServiceStore, FilesOfTheClientDoNotCount) {
  expect_same("etcd:https://10.0.0.1:2379?ca=/a/ca.crt", "etcd:https://10.0.0.1:2379");
  expect_same("etcd:https://10.0.0.1:2379?ca=/a/ca.crt&cert=/a/agent.crt&key=/a/agent.key",
              "etcd:https://10.0.0.1:2379?ca=/b,c/ca.crt&cert=/b/plugin.crt&key=/b/plugin.key");
  expect_same("etcd:https://10.0.0.1:2379,https://10.0.0.2:2379?ca=/a/ca.crt",
              "etcd:https://10.0.0.2:2379,https://10.0.0.1:2379?ca=/b/ca.crt");
}

TEST(AgentServiceStore, OtherMembersAreAnotherStore) {
  expect_other("etcd:http://10.0.0.1:2379", "etcd:http://10.0.0.2:2379");
  expect_other("etcd:http://10.0.0.1:2379", "etcd:http://10.0.0.1:2380");
  expect_other("etcd:http://10.0.0.1:2379", "etcd:https://10.0.0.1:2379");
  // One of several might be a member that was taken out, and another cluster by now.
  expect_other("etcd:http://10.0.0.1:2379,http://10.0.0.2:2379", "etcd:http://10.0.0.1:2379");
  expect_other("etcd:http://10.0.0.1:2379,http://10.0.0.2:2379", "etcd:http://10.0.0.1:2379?ca=http://10.0.0.2:2379");
}

TEST(AgentServiceStore, OtherKindsAreComparedAsTheyAre) {
  expect_other("sqlite:/var/lib/croft/croft.db", "sqlite:/var/lib/croft/other.db");
  expect_other("sqlite:/a.db,/b.db", "sqlite:/b.db,/a.db");
  expect_other("sqlite:/a.db", "sqlite:/a.db?ca=x");
  expect_other("sqlite:/a.db", "etcd:/a.db");
  expect_other("etcd:http://10.0.0.1:2379", "http://10.0.0.1:2379");
  expect_other("etcd:http://10.0.0.1:2379", "");
}

TEST(AgentServiceStore, AnotherFileAtThePathIsNotServed) {
  engine::World world;
  const agent::StoreFile ours{7, 41};
  AgentWorld agents_world{world.store,
                          world.store,
                          world.clock,
                          world.random,
                          "sqlite:/a.db",
                          "node-a",
                          {},
                          [](const std::string&) {},
                          [&](Deadline) -> Result<agent::StoreFile> { return ours; }};
  AgentService service(agents_world);
  const Instant now = world.clock.now();
  agent::ReleaseCall call{{"sqlite:/a.db", "node-a", now.boot, Deadline::after(now, std::chrono::seconds(5))},
                          core::Owner{"net", "c", "eth0"}};
  EXPECT_TRUE(service.release(agent::encode(call), {})) << "a plugin that does not say";
  call.caller.file = ours;
  EXPECT_TRUE(service.release(agent::encode(call), {}));
  for (const agent::StoreFile other : {agent::StoreFile{7, 42}, agent::StoreFile{8, 41}}) {
    call.caller.file = other;
    const auto answer = service.release(agent::encode(call), {});
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::refused_by_configuration);
  }
}

}  // namespace
}  // namespace croft::edge
