#include "edge/croft_ipam.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/quoted.h"
#include "edge/decision_log.h"
#include "edge/error_table.h"
#include "edge/held_elsewhere.h"
#include "engine/assign.h"
#include "engine/attachments.h"
#include "engine/damage_telling.h"
#include "engine/pools.h"
#include "engine/release.h"
#include "wire/cni/config.h"

namespace croft::edge {
namespace {

namespace cni = wire::cni;
using cni::Checked;
using cni::NetworkConfig;

/// Who calls: what the dispatcher has checked of the environment.
struct Caller {
  std::string container_id;
  std::string interface_name;
};

core::AffinityOwner node_of(const NetworkConfig& config, const CroftIpamWorld& world) {
  return {core::AffinityOwner::Type::host, config.nodename.value_or(world.host_name)};
}

core::Owner owner_of(const Caller& caller, const NetworkConfig& config) {
  return {config.name, caller.container_id, caller.interface_name};
}

core::AssignRequest assign_request(const Caller& caller, const NetworkConfig& config, const CroftIpamWorld& world) {
  core::AssignRequest request;
  request.owner = owner_of(caller, config);
  request.pod = config.pod;
  request.node = node_of(config, world);
  request.count.v4 = config.ipam.assign_v4;
  request.count.v6 = config.ipam.assign_v6;
  request.pools.v4 = cni::texts_of(config.ipam.v4_pools);
  request.pools.v6 = cni::texts_of(config.ipam.v6_pools);
  request.addresses = config.requested_addresses;
  return request;
}

cni::AddResult result_of(const core::Assigned& assigned) {
  cni::AddResult result;
  for (const core::AssignedAddress& a : assigned.addresses) {
    const int length = a.gateway ? a.pool_cidr.length() : net::bit_length(a.address.family());
    result.ips.push_back({{a.address, length}, a.gateway});
  }
  return result;
}

/// Writes the log line of a command when it ends.
class Decision {
 public:
  Decision(const CroftIpamWorld& world, const NetworkConfig& config, const std::string& command, const Caller* caller)
      : world_(world),
        file_(config.ipam.log_file.value_or("")),
        line_(world.clock, subject_of(command, config, caller)) {}

  /// Logs the failure and turns it into a CNI error.
  cni::Error failed(const Error& error) {
    world_.log(file_, line_.ended("error", text_of(error)));
    return to_cni_error(error);
  }
  void succeeded(const std::string& what) { world_.log(file_, line_.ended("ok", what)); }

 private:
  static std::string subject_of(const std::string& command, const NetworkConfig& config, const Caller* caller) {
    std::string subject = fmt::format("{} network={}", command, config.name);
    if (caller != nullptr)
      subject +=
          fmt::format(" container={} ifname={}", caller->container_id, caller->interface_name) + pod_text(config.pod);
    return subject;
  }

  const CroftIpamWorld& world_;
  std::string file_;
  DecisionLine line_;
};

[[nodiscard]] Result<std::unique_ptr<store::Store>> open(const CroftIpamWorld& world, const NetworkConfig& config,
                                                         store::OpenMode mode) {
  TRY(auto store, world.open_store(config.ipam.store.value_or(kDefaultStoreUrl), mode));
  const std::string log_file = config.ipam.log_file.value_or("");
  return std::make_unique<engine::DamageTelling>(
      std::move(store), [&world, log_file](const core::Key& key, const Error& damage) {
        const DecisionLine line(world.clock,
                                fmt::format("DAMAGED {} {}", core::name_of(key.kind), in_quotes_if_needed(key.name)));
        world.log(log_file, line.ended("warning", text_of(damage)));
      });
}

/// How a call was served, for the log.
struct Path {
  bool by_agent = false;
  std::string why_not;  ///< the agent is there and did not serve

  [[nodiscard]] std::string text() const {
    if (by_agent) return " via=agent";
    return " via=store" + (why_not.empty() ? "" : " agent=" + in_quotes(why_not));
  }
};

/// Asks the node's agent, if there is one. Nothing: the plugin goes to the store itself. What an agent does with a call
/// that was given up here does no harm: it decides on the same records, and the owner has one answer.
template <class Ask>
auto through_agent(const CroftIpamWorld& world, const NetworkConfig& config, Path& path, Ask ask)
    -> std::optional<typename decltype(ask(std::declval<Agent&>(), std::declval<wire::agent::Caller>()))::value_type> {
  const std::string socket = config.ipam.agent.value_or(world.agent_socket);
  const auto agent = world.find_agent && socket != kNoAgent ? world.find_agent(socket) : nullptr;
  if (agent == nullptr) return {};
  wire::agent::Caller self;
  self.store = config.ipam.store.value_or(kDefaultStoreUrl);
  self.node = node_of(config, world).name;
  auto answer = ask(*agent, std::move(self));
  if (!answer) {
    path.why_not = answer.error().message;
    return {};
  }
  path.by_agent = true;
  return *std::move(answer);
}

[[nodiscard]] Result<core::AssignAnswer> assign_alone(const CroftIpamWorld& world, const NetworkConfig& config,
                                                      const core::AssignRequest& request) {
  TRY(const auto store, open(world, config, store::OpenMode::create));
  const engine::Context context{*store, world.clock, world.random};
  TRY_VOID(engine::ensure_pools(context, config.ipam.pools));
  return engine::assign(context, request);
}

Result<core::Assigned> assign(const CroftIpamWorld& world, const Caller& caller, const NetworkConfig& config,
                              Path& path) {
  const core::AssignRequest request = assign_request(caller, config, world);
  if (!request.count.v4 && !request.count.v6 && request.addresses.empty()) {
    return fail(ErrorCode::invalid_argument,
                "neither family is wanted: set ipam.assign_ipv4 or ipam.assign_ipv6 to \"true\"");
  }
  TRY_VOID(core::check_node_name(request.node.name));
  auto answer = through_agent(world, config, path, [&](Agent& agent, wire::agent::Caller self) {
    return agent.assign({std::move(self), config.ipam.pools, request});
  });
  if (!answer) {
    TRY(answer, assign_alone(world, config, request));
  }
  if (const auto* refusal = std::get_if<core::Refusal>(&*answer)) return fail(core::to_error(*refusal));
  return std::get<core::Assigned>(*std::move(answer));
}

struct Release {
  std::vector<net::Address> addresses;
  std::string elsewhere;  ///< for the log
};

[[nodiscard]] Result<Release> release(const CroftIpamWorld& world, const Caller& caller, const NetworkConfig& config,
                                      Path& path) {
  auto by_agent = through_agent(world, config, path, [&](Agent& agent, wire::agent::Caller self) {
    return agent.release({std::move(self), owner_of(caller, config)});
  });
  if (by_agent && !by_agent->empty()) return Release{*std::move(by_agent), {}};
  const core::Owner owner = owner_of(caller, config);
  const auto store = open(world, config, store::OpenMode::existing);
  if (by_agent && !store) return Release{};
  if (!store && store.error().code == ErrorCode::not_found) return Release{};
  if (!store) return fail(store.error());
  Release release;
  if (!by_agent) {
    const engine::Context context{**store, world.clock, world.random};
    TRY(core::Released released, engine::release_owner(context, owner));
    release.addresses = std::move(released.addresses);
  }
  if (release.addresses.empty()) {
    release.elsewhere = elsewhere_text(**store, world.clock, world.random, owner, node_of(config, world));
  }
  return release;
}

[[nodiscard]] Result<void> check_recorded(const CroftIpamWorld& world, const Caller& caller,
                                          const NetworkConfig& config) {
  TRY(const auto store, open(world, config, store::OpenMode::existing));
  const engine::Context context{*store, world.clock, world.random};
  std::vector<net::Address> expected;
  for (const net::AddressWithLength& previous : config.previous_addresses) expected.push_back(previous.address);
  return engine::check_attachment(context, owner_of(caller, config), expected);
}

[[nodiscard]] Result<engine::Collected> collect(const CroftIpamWorld& world, const NetworkConfig& config) {
  if (config.valid_attachments.presence != cni::ValidAttachments::Presence::given) return engine::Collected{};
  const auto store = open(world, config, store::OpenMode::existing);
  if (!store && store.error().code == ErrorCode::not_found) return engine::Collected{};
  if (!store) return fail(store.error());
  const engine::Context context{**store, world.clock, world.random};
  engine::ValidAttachments valid;
  for (const cni::Attachment& a : config.valid_attachments.entries) valid.insert({a.container_id, a.interface_name});
  return engine::collect_attachments(context, config.name, node_of(config, world), valid);
}

[[nodiscard]] Result<void> ready(const CroftIpamWorld& world, const NetworkConfig& config) {
  TRY(const auto store, open(world, config, store::OpenMode::create));
  const engine::Context context{*store, world.clock, world.random};
  TRY_VOID(engine::ensure_pools(context, config.ipam.pools));
  const core::AssignRequest request = assign_request({}, config, world);
  return engine::check_status(
      context,
      {request.node, {request.count.v4 > 0, request.count.v6 > 0}, request.pools, config.ipam.status_when_full});
}

Checked<cni::AddResult> add(const CroftIpamWorld& world, const Caller& caller, const NetworkConfig& config) {
  Decision decision(world, config, "ADD", &caller);
  Path path;
  const auto assigned = assign(world, caller, config, path);
  if (!assigned) return decision.failed(assigned.error());
  std::string text;
  for (const core::AssignedAddress& a : assigned->addresses) {
    text += fmt::format("{}address={} pool={} block={}{}", text.empty() ? "" : " ", a.address.to_string(), a.pool,
                        a.block.to_string(), a.held_before ? " again" : "");
  }
  decision.succeeded(text + path.text());
  return result_of(*assigned);
}

using Failure = std::optional<cni::Error>;

Failure del(const CroftIpamWorld& world, const Caller& caller, const NetworkConfig& config) {
  Decision decision(world, config, "DEL", &caller);
  Path path;
  const auto released = release(world, caller, config, path);
  if (!released) return decision.failed(released.error());
  decision.succeeded("released=" + list_of(released->addresses) + released->elsewhere + path.text());
  return {};
}

Failure check(const CroftIpamWorld& world, const Caller& caller, const NetworkConfig& config) {
  Decision decision(world, config, "CHECK", &caller);
  const auto recorded = check_recorded(world, caller, config);
  if (!recorded) return decision.failed(recorded.error());
  decision.succeeded("");
  return {};
}

Failure gc(const CroftIpamWorld& world, const Caller&, const NetworkConfig& config) {
  Decision decision(world, config, "GC", nullptr);
  const auto collected = collect(world, config);
  if (!collected) return decision.failed(collected.error());
  decision.succeeded(fmt::format("released={} kept_young={}", list_of(collected->released), collected->kept_young));
  return {};
}

Failure status(const CroftIpamWorld& world, const Caller&, const NetworkConfig& config) {
  Decision decision(world, config, "STATUS", nullptr);
  const auto able = ready(world, config);
  if (able) return {};  // asked every few seconds: only failures are worth a line
  return decision.failed(able.error());
}

/// A handler that decodes as much of the configuration as its command needs, then does its work.
template <class Work>
auto decoded(const CroftIpamWorld& world, Work work) {
  return [&world, work](const CniRequest& request) -> decltype(work(world, Caller(), NetworkConfig())) {
    const auto config =
        cni::decode_network_config(request.document, request.environment.args, cni::needs_of(request.command));
    if (!config) return config.error();
    return work(world, Caller{request.environment.container_id, request.environment.interface_name}, *config);
  };
}

}  // namespace

CniPlugin croft_ipam_plugin(const CroftIpamWorld& world) {
  CniPlugin plugin;
  plugin.about = std::string("CNI croft-ipam plugin ") + CROFT_VERSION;
  plugin.handlers.add = decoded(world, add);
  plugin.handlers.del = decoded(world, del);
  plugin.handlers.check = decoded(world, check);
  plugin.handlers.gc = decoded(world, gc);
  plugin.handlers.status = decoded(world, status);
  plugin.owner_limits = cni::OwnerLimits();
  return plugin;
}

}  // namespace croft::edge
