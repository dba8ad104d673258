#include "ipam/door/calico_ipam.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/letters.h"
#include "base/texts.h"
#include "cni/decision_log.h"
#include "cni/door/cni_call.h"
#include "cni/door/tombstones.h"
#include "cni/error_table.h"
#include "ipam/use/assign.h"
#include "ipam/use/damage_reporting_store.h"
#include "ipam/use/pools.h"
#include "ipam/use/release.h"
#include "os/files.h"

namespace croft::edge {

namespace {

using core::RefusalCause;

int version_of(net::Family family) { return family == net::Family::v4 ? 4 : 6; }

/// The family that was short: the usable pools are all of one. IPv4 is tried first.
net::Family family_of(const core::Refusal& refusal, const core::AssignRequest& request) {
  for (const core::PoolVerdict& verdict : refusal.considered) {
    if (verdict.usable) return verdict.cidr.family();
  }
  return request.count.v4 > 0 ? net::Family::v4 : net::Family::v6;
}

/// Some or all addresses are missing, and this is why.
std::string shortage(const core::Refusal& refusal, const core::AssignRequest& request, std::string_view why) {
  const net::Family family = family_of(refusal, request);
  const int version = version_of(family);
  return fmt::format("failed to request IPv{} addresses: Assigned 0 out of {} requested IPv{} addresses; {}", version,
                     request.count[family], version, why);
}

std::string list_of_usable(const core::Refusal& refusal) {
  std::string text;
  for (const core::PoolVerdict& verdict : refusal.considered) {
    if (verdict.usable) text += (text.empty() ? "" : " ") + verdict.cidr.to_string();
  }
  return text;
}

/// The first requested pool that is not usable, as Calico reports it: determinePools checks a CIDR, the plugin itself a
/// name, before any address is looked for.
std::string unusable_pool(const core::Refusal& refusal, const core::AssignRequest& request) {
  for (const auto family : net::kFamilies) {
    for (const core::AskedPool& asked : request.pools[family]) {
      const auto* name = std::get_if<std::string>(&asked);
      if (name == nullptr) continue;
      const auto known = std::ranges::find(refusal.considered, *name, &core::PoolVerdict::pool);
      if (known == refusal.considered.end()) {
        return fmt::format("error parsing pool \"{}\": invalid CIDR address: {}", *name, *name);
      }
      if (known->cidr.family() != family) {
        return fmt::format("\"{}\" isn't a IPv{} address", known->cidr.first().to_string(), version_of(family));
      }
    }
  }
  return {};
}

/// The CIDR of a pool that was asked for and that no pool, or no enabled one, has.
std::string disabled_or_absent(const core::Refusal& refusal, const core::AssignRequest& request) {
  for (const auto* asked_pools : {&request.pools.v4, &request.pools.v6}) {
    for (const core::AskedPool& asked : *asked_pools) {
      const auto known = std::ranges::find_if(
          refusal.considered, [&](const auto& one) { return core::is_pool_asked_for(asked, one.pool, one.cidr); });
      if (known == refusal.considered.end()) return core::text_of(asked);
      if (known->reason == "disabled" || known->reason.starts_with("not allocatable")) return known->cidr.to_string();
    }
  }
  return {};
}

std::string message_of_pool(const core::Refusal& refusal, const core::AssignRequest& request) {
  if (std::string text = unusable_pool(refusal, request); !text.empty()) return text;
  const std::string cidr = disabled_or_absent(refusal, request);
  if (cidr.empty()) return refusal.summary;
  return fmt::format("the given pool ({}) does not exist, or is not enabled", cidr);
}

std::string message_of(const core::Refusal& refusal, const core::AssignRequest& request) {
  switch (refusal.cause) {
    case RefusalCause::no_pool_enabled:
      return "cannot find a qualified ippool";
    case RefusalCause::no_pool_qualified:
      return "cannot find a qualified ippool, no pools match the required use (Workload)";
    case RefusalCause::no_pool_for_node:
      return "no configured Calico pools for node " + request.node.name;
    case RefusalCause::pool_not_usable:
      return message_of_pool(refusal, request);
    case RefusalCause::full:
      return shortage(refusal, request, fmt::format("No IPs available in pools: [{}]", list_of_usable(refusal)));
    case RefusalCause::full_and_strict:
      return shortage(refusal, request, "No more free affine blocks and strict affinity enabled");
    case RefusalCause::block_limit:
      return "cannot allocate new block due to per host block limit";
    case RefusalCause::no_block_to_claim:
      return "failed to find or claim a block";
    case RefusalCause::address_in_no_pool:
      return "The provided IP address is not in a configured pool\n";
    case RefusalCause::address_taken:
      return "resource already exists: " + request.addresses.front().to_string();
    case RefusalCause::address_out_of_bounds:
      return "Block host affinity does not match";
    case RefusalCause::other:
      break;
  }
  return refusal.summary;
}

namespace cni = wire::cni;
using cni::CalicoNetconf;
using cni::Checked;

/// One call: what was asked, by whom, and where its lines go.
class Call final : public CniCall {
 public:
  static Checked<CalicoNetconf> decode(const CalicoIpamWorld& world, const CniRequest& request) {
    if (world.misplaced) return to_cni_error(*world.misplaced);
    return cni::decode_calico_netconf(request.network, request.environment.args, request.command, world.variable);
  }

  Call(const CalicoIpamWorld& world, const CniRequest& request, CalicoNetconf config)
      : CniCall(world.clock, subject_of(request, config), writer_of(world, config),
                config.log_only_failures ? Logs::failures_only : Logs::every_outcome),
        world_(world),
        began_(world.clock.now()),
        config_(std::move(config)),
        owner_{config_.name, request.environment.container_id, request.environment.interface_name},
        sign_(cni::has_previous_result(request.network) ? Tombstones::Sign::result : Tombstones::Sign::none),
        tombstones_(world.tombstones, world.clock) {}

  [[nodiscard]] Result<Added> add() const;
  [[nodiscard]] Result<std::string> del() const;

  [[nodiscard]] const CalicoIpamWorld& world() const { return world_; }
  [[nodiscard]] const CalicoNetconf& config() const { return config_; }
  [[nodiscard]] const core::Owner& owner() const { return owner_; }
  [[nodiscard]] const Instant& began() const { return began_; }
  void make_up(const engine::Context& context) const {
    replay_some(tombstones_, context, cni::url_of(config_.datastore), writer_of(world_, config_));
  }

 private:
  static std::string subject_of(const CniRequest& request, const CalicoNetconf& config) {
    return fmt::format("{} network={}{}{}", name_of(request.command), config.name, attachment_text(request),
                       config.names_pod() ? pod_text(config.pod) : "");
  }
  static WriteLine writer_of(const CalicoIpamWorld& world, const CalicoNetconf& config) {
    const auto bytes_max = static_cast<std::uint64_t>(config.log_megabytes_max) << 20;
    return [&world, file = config.log_file.value_or(""), bytes_max](const std::string& line) {
      world.log(file, line, bytes_max);
    };
  }

  const CalicoIpamWorld& world_;
  const Instant began_;
  const CalicoNetconf config_;
  const core::Owner owner_;
  const Tombstones::Sign sign_;  ///< of an ADD that succeeded
  const Tombstones tombstones_;
};

/// The store, with a line in the log for every damaged record that is set aside.
[[nodiscard]] Result<std::unique_ptr<store::Store>> open_store(const Call& call, store::OpenMode mode) {
  TRY(auto store, call.world().open_store(call.config().datastore, mode));
  return std::make_unique<engine::DamageReportingStore>(
      std::move(store),
      [&call](const core::Key&, const Error& damage) { call.warn("damaged record, set aside: " + damage.message); });
}

// ---- the node's name

/// The content of the node name's file; empty when there is none. A file that cannot be read is an error: under the
/// wrong name the address would be taken for a leak of another node.
[[nodiscard]] Result<std::string> read_nodename_file(const std::string& path) {
  const auto content = os::read_file(path, wire::cni::kNodenameFileBytesMax);
  if (!content && content.error().code == ErrorCode::not_found) return std::string();
  if (!content) return fail(content.error().code, "nodename_file: " + content.error().message);
  auto name = wire::cni::decode_nodename_file(*content);
  if (name) return name;
  return fail(ErrorCode::invalid_argument, "nodename_file {}: {}; set nodename in the network configuration", path,
              name.error().message);
}

/// docs/notes/calico-ipam.md#plugin-configuration.
[[nodiscard]] Result<std::string> node_name_of(const Call& call) {
  const CalicoNetconf& config = call.config();
  if (!config.nodename.empty()) return config.nodename;
  TRY(std::string from_file, read_nodename_file(config.nodename_file));
  if (!from_file.empty()) return from_file;
  if (!config.hostname.empty()) return config.hostname;
  const auto checked = core::check_node_name(call.world().host_name);
  if (checked) return call.world().host_name;
  return fail(ErrorCode::invalid_argument, "this host's name: {}; set nodename in the network configuration",
              checked.error().message);
}

// ---- ADD

[[nodiscard]] Result<core::AssignRequest> request_of(const Call& call) {
  const CalicoNetconf& config = call.config();
  core::AssignRequest request;
  TRY(request.node.name, node_name_of(call));
  request.owner = call.owner();
  if (config.names_pod()) request.pod = config.pod;
  if (config.requested_address) {
    request.count.v4 = 0;
    request.addresses = {*config.requested_address};
    request.reserved_addresses = true;
  } else {
    request.count.v4 = config.assign_v4;
    request.count.v6 = config.assign_v6;
    request.pools = config.asked_pools;
  }
  TRY_VOID(core::check_something_is_asked(request));
  request.block_limit = config.single_block ? 1 : 0;
  request.default_block_limit = core::kCalicoBlockLimit;
  return request;
}

/// Where virtual machines keep their addresses (docs/notes/calico-ipam.md#virtual-machines), the pod that runs one
/// would need the machine's address, and its migration the same one again. This version can't see the machine, so it
/// must not make as if.
[[nodiscard]] Result<void> check_no_virtual_machine(const Call& call, const engine::Context& context) {
  const core::PodIdentity& pod = call.config().pod;
  if (!call.config().names_pod() || !pod.name.starts_with("virt-launcher-")) return {};
  TRY(const core::IpamConfig config, engine::read_config(context));
  if (!equals_ignoring_case(config.kubevirt_vm_address_persistence, "Enabled")) return {};
  return fail(ErrorCode::refused_by_configuration,
              fmt::format("pod {}/{} runs a virtual machine whose address would have to persist "
                          "(kubeVirtVMAddressPersistence is Enabled), which this version cannot do; set it to Disabled",
                          pod.namespace_name, pod.name));
}

/// Asks the node's agent, with a word in the log when it is there and did not serve.
template <class Ask>
auto ask_agent(const Call& call, const std::string& node, Ask ask) {
  const AgentDoor door{call.world().find_agent, call.world().agent_socket, cni::url_of(call.config().datastore), node};
  return through_agent(door, ask, [&](const std::string& why) { call.warn("the agent did not serve: " + why); });
}

[[nodiscard]] Result<core::AssignAnswer> assign_alone(const Call& call, const core::AssignRequest& request) {
  const CalicoIpamWorld& world = call.world();
  // Calico's own plugin takes it too.
  const NodeTurn turn(call, world.clock, call.config().ipam_lock_file,
                      Deadline::after(world.clock.now(), kCalicoLockWaitMax));
  TRY(const auto store, open_store(call, store::OpenMode::create));
  const engine::Context context{*store, world.clock, world.random, kCalicoWorkMax};
  TRY_VOID(check_no_virtual_machine(call, context));
  const engine::Living living{world.device_of, [&](const std::string& line) { call.warn(line); }};
  auto answer = engine::assign(context, request, {}, &living);
  if (answer) call.make_up(context);
  return answer;
}

[[nodiscard]] Result<core::Assigned> assign(const Call& call) {
  TRY(const core::AssignRequest request, request_of(call));
  // Whether a virtual machine's pod may have an address depends on what only the store knows.
  const bool may_be_machine = call.config().names_pod() && call.config().pod.name.starts_with("virt-launcher-");
  std::optional<core::AssignAnswer> answer;
  if (!may_be_machine) {
    answer = ask_agent(call, request.node.name, [&](Agent& agent, wire::agent::Caller self) {
      return agent.assign({std::move(self), {}, request});
    });
  }
  if (!answer) {
    TRY(answer, assign_alone(call, request));
  }
  if (const auto* refusal = std::get_if<core::Refusal>(&*answer)) return fail(calico_error(*refusal, request));
  return std::get<core::Assigned>(*std::move(answer));
}

/// docs/notes/calico-ipam.md#plugin-result: an address has the length of its block, one that was asked for its full
/// length; a route to each.
cni::AddResult result_of(const core::Assigned& assigned, bool requested) {
  cni::AddResult result;
  for (const core::AssignedAddress& a : assigned.addresses) {
    const int length = requested ? net::bit_length(a.address.family()) : a.block.length();
    cni::Route route;
    route.destination = {a.address, length};
    result.ips.push_back({route.destination, {}});
    result.routes.push_back(route);
  }
  return result;
}

// ---- DEL

[[nodiscard]] Result<GivenBack> release_alone(const Call& call) {
  const CalicoIpamWorld& world = call.world();
  const NodeTurn turn(call, world.clock, call.config().ipam_lock_file,
                      Deadline::after(world.clock.now(), kCalicoDelLockWaitMax));
  const auto store = open_store(call, store::OpenMode::existing);
  if (!store && store.error().code == ErrorCode::not_found) return GivenBack{};
  if (!store) return fail(store.error());
  // It is over in time, whatever it meets.
  const Deadline limit = Deadline::after(call.began(), kCalicoWorkMax);
  const engine::Context context{**store, world.clock, world.random, kCalicoWorkMax, limit};
  TRY(core::Released released, engine::release_owner(context, call.owner()));
  call.make_up(context);
  return GivenBack{std::move(released.addresses)};
}

[[nodiscard]] Result<GivenBack> release(const Call& call) {
  const auto node = node_name_of(call);
  if (!node) return release_alone(call);
  auto by_agent = ask_agent(call, *node, [&](Agent& agent, wire::agent::Caller self) {
    self.ends = Deadline::after(call.began(), kAnswerTimeMax);
    return agent.release({std::move(self), call.owner()});
  });
  if (!by_agent) return release_alone(call);
  return GivenBack{*std::move(by_agent), {}};
}

Result<Added> Call::add() const {
  for (const cni::NearMiss& miss : config_.near_misses) {
    warn(fmt::format("unknown member {} is ignored; did you mean {}?", miss.member, miss.meant));
  }
  TRY(const bool was_lifted, lift_tombstone(tombstones_, owner_, world_.clock));
  TRY(const core::Assigned assigned, assign(*this));
  return Added{result_of(assigned, config_.requested_address.has_value()), text_of(assigned) + lifted_text(was_lifted)};
}

Result<std::string> Call::del() const {
  auto given_back = release(*this);
  if (!given_back) {
    given_back = defer_release(tombstones_, {cni::url_of(config_.datastore), owner_, {}}, sign_, given_back.error());
    // Said where only failures are logged, too.
    if (given_back) warn("the register is away, the release is left for later in " + world_.tombstones);
  }
  if (!given_back) return fail(given_back.error());
  return given_back->words();
}

}  // namespace

Error calico_error(const core::Refusal& refusal, const core::AssignRequest& request) {
  Error error = core::to_error(refusal);
  if (error.details.empty()) error.details = error.message;
  error.message = message_of(refusal, request);
  return error;
}

CniPlugin calico_ipam_plugin(const CalicoIpamWorld& world) {
  CniPlugin plugin;
  plugin.about = std::string("CNI calico-ipam plugin of Croft ") + CROFT_VERSION;
  plugin.supported_versions = {"0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0"};
  plugin.handlers = handlers_of<Call>(world);
  plugin.limits_owner = true;
  return plugin;
}

}  // namespace croft::edge
