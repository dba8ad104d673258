#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/texts.h"
#include "cli/croft/command_line.h"
#include "cli/croft/json_output.h"
#include "cli/croft/listing.h"
#include "cli/croft/table.h"
#include "ipam/commands/operator_warnings.h"
#include "ipam/use/inspect.h"
#include "ipam/use/pools.h"

namespace croft::app {

namespace {

/// The options that `create` and `set` share.
struct PoolSettings {
  std::string name, gateway;
  std::optional<std::int64_t> cooldown_seconds;
  std::optional<std::string> node_selector, namespace_selector;
  std::optional<int> priority;
};
struct CreatePoolOptions {
  PoolSettings settings;
  std::string cidr;
  std::optional<int> block_size;
  bool disabled = false;
};

[[nodiscard]] Result<core::PoolSpec> spec_of(const PoolSettings& settings) {
  core::PoolSpec spec;
  spec.name = settings.name;
  if (settings.gateway == "none") {
    spec.gateway = core::GatewayChoice{core::GatewayChoice::Kind::none, {}};
  } else if (!settings.gateway.empty()) {
    TRY(const net::Address gateway, address_argument("--gateway", settings.gateway));
    spec.gateway = core::GatewayChoice{core::GatewayChoice::Kind::given, gateway};
  }
  if (settings.cooldown_seconds) spec.cooldown = std::chrono::seconds(*settings.cooldown_seconds);
  spec.node_selector = settings.node_selector;
  spec.namespace_selector = settings.namespace_selector;
  spec.priority = settings.priority;
  return spec;
}

[[nodiscard]] Result<core::PoolSpec> spec_of(const CreatePoolOptions& options) {
  TRY(core::PoolSpec spec, spec_of(options.settings));
  TRY(spec.cidr, prefix_argument("--cidr", options.cidr));
  spec.block_length = options.block_size;
  if (options.disabled) spec.disabled = true;
  return spec;
}

[[nodiscard]] Result<engine::PoolView> find_pool(const engine::Context& context, const std::string& name) {
  TRY(engine::Overview overview, engine::read_overview(context));
  for (engine::PoolView& pool : overview.pools) {
    if (pool.pool.name == name) return std::move(pool);
  }
  TRY(Error error, no_such_pool(context, name));
  return fail(std::move(error));
}

void warn_of_namespaces(const CommandLine& line, const core::PoolSpec& spec) {
  if (!spec.namespace_selector || !line.cluster_url.empty()) return;
  warn("--namespace-selector: namespaces have labels in a Kubernetes API alone; with this store it sees none");
}

[[nodiscard]] Result<int> create_pool(CommandLine& line, const CreatePoolOptions& options) {
  TRY(const core::PoolSpec spec, spec_of(options));
  TRY_VOID(core::make_pool(spec));  // before a store is made for it
  warn_of_namespaces(line, spec);
  TRY(const engine::Context context, line.open(true));
  TRY(const core::PoolCreated created, engine::create_pool(context, spec, [&] { return space_of_services(context); }));
  if (line.wants_data()) {
    TRY(const engine::PoolView view, find_pool(context, created.pool.name));
    print(line.data_text(json_of(std::vector{view})));
  } else {
    const char* const what = created.was_completed    ? "completed: it was begun and never enabled"
                             : created.existed_before ? "unchanged"
                                                      : "created";
    print(fmt::format("pool/{} {}\n", created.pool.name, what));
  }
  if (created.existed_before && created.pool.disabled && !spec.disabled.value_or(false)) {
    tell(
        fmt::format("croft: pool {} is there and disabled: no pod gets an address of it. If nobody meant that, `croft "
                    "pool enable {}`",
                    created.pool.name, created.pool.name));
  }
  if (created.existed_before) tell_if_unallocatable(created.pool);
  return 0;
}

Table pool_table(const std::vector<engine::PoolView>& pools, bool wide) {
  Table table({"NAME", "CIDR", "BLOCKSIZE", "GATEWAY", "COOLDOWN", "DISABLED", "BLOCKS", "HELD", "COOLING", "RESERVED",
               "FREE", "STRANDED"},
              {"SIZE", "PRIORITY", "NODESELECTOR", "NAMESPACESELECTOR"}, wide);
  for (const engine::PoolView& view : pools) {
    const core::Pool& pool = view.pool;
    table.add({pool.name, pool.cidr.to_string(), std::to_string(pool.block_length),
               pool.gateway ? pool.gateway->to_string() : "none", fmt::format("{}s", pool.cooldown.count()),
               pool.disabled ? "true" : (pool.unallocatable.empty() ? "false" : "unallocatable"),
               std::to_string(view.blocks.size()), percent_of(view.usage.held, view.usage.size - view.usage.reserved),
               std::to_string(view.usage.cooling), view.usage.reserved.to_string(), view.usage.free().to_string(),
               view.usage.stranded.is_zero() ? "" : view.usage.stranded.to_string(), view.usage.size.to_string(),
               std::to_string(pool.priority), pool.node_selector, pool.namespace_selector});
  }
  return table;
}

[[nodiscard]] Result<int> list_pools(CommandLine& line) {
  return list(line, [&line](const engine::Context& context) -> Result<Listing> {
    TRY(const engine::Overview overview, engine::read_overview(context));
    return Listing{"No pools.", pool_table(overview.pools, line.wide()),
                   line.wants_data() ? json_of(overview.pools) : Data(), ""};
  });
}

struct ShowPoolOptions {
  std::string name;
  bool blocks = false;
};

[[nodiscard]] Result<int> show_pool(CommandLine& line, const ShowPoolOptions& options) {
  TRY(const engine::Context context, line.open_to_look());
  if (options.name.empty()) {
    TRY(const engine::Overview overview, engine::read_overview(context));
    print(line.wants_data() ? line.data_text(json_of(overview.pools, options.blocks))
                            : usage_table(overview, options.blocks));
    return 0;
  }
  TRY(const engine::PoolView pool, find_pool(context, options.name));
  if (line.wants_data()) {
    print(line.data_text(json_of(std::vector{pool}, options.blocks)));
    return 0;
  }
  print(pool_table({pool}, line.wide()).to_string() + "\n");
  if (options.blocks) print(usage_table({{pool}, {}}, true) + "\n");
  print(draw(pool, line.in_colour()), Printed::coloured);
  return 0;
}

[[nodiscard]] Result<int> set_disabled(CommandLine& line, const std::string& name, bool disabled) {
  TRY(const engine::Context context, line.open());
  TRY(const core::Pool pool, engine::set_pool_disabled(context, name, disabled));
  print(fmt::format("pool/{} {}\n", pool.name, disabled ? "disabled: no new addresses, held ones stay" : "enabled"));
  return 0;
}

/// Between the decision and the commit a pod may have got the address that is the gateway now.
[[nodiscard]] Result<void> tell_if_held(const engine::Context& context, const net::Address& gateway) {
  TRY(const engine::AddressView view, engine::show_address(context, gateway));
  if (view.state != core::AddressState::held) return {};
  tell(fmt::format("croft: the gateway {} is held by {}: delete that pod, or choose another gateway", gateway,
                   view.pod.empty() ? view.handle_id : view.namespace_name + "/" + view.pod));
  return {};
}

[[nodiscard]] Result<int> set_pool(CommandLine& line, const PoolSettings& settings) {
  TRY(const core::PoolSpec change, spec_of(settings));
  const bool any =
      change.gateway || change.cooldown || change.node_selector || change.namespace_selector || change.priority;
  if (!any) {
    return fail(ErrorCode::invalid_argument, "nothing to set: give at least one option");
  }
  warn_of_namespaces(line, change);
  TRY(const engine::Context context, line.open());
  const auto pool = engine::change_pool(context, change);
  if (!pool && pool.error().code == ErrorCode::not_found) {
    TRY(Error error, no_such_pool(context, change.name));
    return fail(std::move(error));
  }
  if (!pool) return fail(pool.error());
  if (change.gateway && pool->gateway) TRY_VOID(tell_if_held(context, *pool->gateway));
  TRY(const engine::PoolView view, find_pool(context, pool->name));
  print(line.wants_data() ? line.data_text(json_of(std::vector{view})) : pool_table({view}, true).to_string());
  return 0;
}

struct DeleteOptions {
  std::string name;
  bool dry_run = false;
};

[[nodiscard]] Result<int> delete_pool(CommandLine& line, const DeleteOptions& options) {
  const std::string& name = options.name;
  TRY(const engine::Context context, line.open());
  if (options.dry_run) {
    TRY(const engine::PoolView view, find_pool(context, name));
    if (view.usage.held + view.usage.cooling > 0) {
      return fail(ErrorCode::refused_for_safety, "pool {} is in use: {} held and {} cooling", name,
                  counted(view.usage.held, "address", "es"), view.usage.cooling);
    }
    print(fmt::format("pool/{} would be deleted, with {}\n", name, counted(view.blocks.size(), "block")));
    return 0;
  }
  TRY_VOID(engine::delete_pool(context, name));
  print(fmt::format("pool/{} deleted\n", name));
  return 0;
}

void add_settings(CLI::App& command, PoolSettings& settings) {
  command.add_option("--gateway", settings.gateway,
                     "Gateway of the pods, never assigned; \"none\": pods get /32 or /128 without a gateway");
  command.add_option("--cooldown-seconds", settings.cooldown_seconds,
                     "How long a released address rests before reuse, 0 to 1200 seconds");
  command.add_option("--node-selector", settings.node_selector,
                     "Nodes whose pods the pool serves, in Calico's language: 'rack == \"a\"'; \"\": all");
  command.add_option("--namespace-selector", settings.namespace_selector,
                     "Namespaces whose pods the pool serves, likewise; needs a kube: store");
  command.add_option("--priority", settings.priority,
                     "Pools of a higher one serve first, 0 to 1000; networks that name pools keep their order");
}

/// A verb that takes the name of a pool.
template <class Action>
void add_named(CLI::App& pool, CommandLine& line, const char* verb, const char* help, Action action) {
  const auto name = std::make_shared<std::string>();
  CLI::App* command = pool.add_subcommand(verb, help);
  command->add_option("NAME", *name, "Name of the pool")->required();
  command->callback([&line, name, action] { line.run = [name, action](CommandLine& l) { return action(l, *name); }; });
}

}  // namespace

void tell_if_unallocatable(const core::Pool& pool) {
  if (pool.unallocatable.empty()) return;
  tell(fmt::format("croft: pool {} is there and no pod gets an address of it: {}. `croft check` has the remedy",
                   pool.name, pool.unallocatable));
}

void add_pool_commands(CLI::App& app, CommandLine& line) {
  CLI::App* const pool = add_noun(app, "pool", "Pools: prefixes to assign addresses from, divided into blocks");

  const auto [creation, options] =
      add_command(*pool, line, "create", "Create a pool (and the store, if it does not exist)", create_pool);
  creation->add_option("NAME", options->settings.name, "Name: lower-case letters, digits, '-' and '.'")->required();
  creation->add_option("--cidr", options->cidr, "Prefix to assign from, e.g. 10.1.0.0/16 or fd00:1::/64")->required();
  creation->add_option(
      "--block-size", options->block_size,
      "Prefix length of the blocks that nodes claim: 20 to 32 (default 26), IPv6 116 to 128 (default 122)");
  creation->add_flag("--disabled", options->disabled, "Create the pool disabled");
  add_settings(*creation, options->settings);
  creation->footer("Without --gateway it is the first address; without --cooldown-seconds addresses rest for 30 s.");

  CLI::App* listing = pool->add_subcommand("list", "List all pools with their usage");
  add_list_options(*listing, line);
  listing->callback([&line] { line.run = list_pools; });
  const auto [showing, shown] =
      add_command(*pool, line, "show",
                  "Usage of all pools, or of one with a picture of its blocks: held, cooling, free", show_pool);
  showing->add_option("NAME", shown->name, "Name of the pool");
  showing->add_flag("--show-blocks", shown->blocks, "Also show the usage of each block");
  const auto [setting, settings] =
      add_command(*pool, line, "set", "Change settings of a pool; the others stay as they are", set_pool);
  setting->add_option("NAME", settings->name, "Name of the pool")->required();
  add_settings(*setting, *settings);
  setting->footer(
      "Pods keep their addresses, and the gateway that they began with stays out of use. CIDR and block size of a pool "
      "never change: see `croft pool split`.");
  add_pool_split_command(*pool, line);
  add_pool_defaults_command(*pool, line);
  add_named(*pool, line, "disable", "No new addresses from a pool; held ones stay",
            [](CommandLine& l, const std::string& name) { return set_disabled(l, name, true); });
  add_named(*pool, line, "enable", "Hand out from a pool again",
            [](CommandLine& l, const std::string& name) { return set_disabled(l, name, false); });
  const auto [deletion, deleted] =
      add_command(*pool, line, "delete", "Delete a pool in which no address is held or cooling", delete_pool);
  deletion->add_option("NAME", deleted->name, "Name of the pool")->required();
  deletion->add_flag("--dry-run", deleted->dry_run, "Show what would happen and change nothing");
}

namespace {

struct SplitOptions {
  std::uint64_t parts = 0;
  std::string cidr, name, gateways;
  bool dry_run = false;
};

[[nodiscard]] Result<int> split_pool(CommandLine& line, const SplitOptions& options) {
  if (options.cidr.empty() == options.name.empty()) {
    return fail(ErrorCode::invalid_argument, "say which pool: --name NAME or --cidr CIDR");
  }
  core::PoolSplit wanted{options.name, options.parts, core::SplitGateways::refuse};
  if (options.name.empty()) {
    TRY(const net::Prefix cidr, prefix_argument("--cidr", options.cidr));
    wanted.pool = cidr.to_string();
  }
  if (options.gateways == "none") wanted.gateways = core::SplitGateways::none;
  if (options.gateways == "first") wanted.gateways = core::SplitGateways::first_address;
  TRY(const engine::Context context, line.open());
  TRY(const core::PoolsSplit done, engine::split_pool(context, wanted, !options.dry_run));
  if (line.wants_data()) {
    print(line.data_text(json_of(done)));
    return 0;
  }
  for (const core::Pool& part : done.parts) {
    print(fmt::format("pool/{} {} ({})\n", part.name, options.dry_run ? "would be created" : "created", part.cidr));
  }
  for (const net::Address& address : done.held_reserved) {
    print(fmt::format("{} is kept out of use from now on; its holder keeps it until it is released\n", address));
  }
  print(fmt::format("pool/{} {}\n", done.before, options.dry_run ? "would go" : "replaced"));
  return 0;
}

}  // namespace

void add_pool_split_command(CLI::App& pool, CommandLine& line) {
  const auto [command, options] = add_command(pool, line, "split", "Replace a pool by parts of equal size", split_pool);
  command->add_option("N", options->parts, fmt::format("Number of parts: 2, 4, 8 … {}", core::kSplitPartsMax))
      ->required();
  CLI::Option* cidr = command->add_option("--cidr", options->cidr, "The pool, by its CIDR");
  CLI::Option* name = command->add_option("--name", options->name, "The pool, by its name");
  cidr->excludes(name);
  command
      ->add_option("--gateways", options->gateways,
                   "For a pool with a gateway: \"first\" uses the first address of each part; \"none\" gives pods /32 "
                   "or /128 without a gateway")
      ->check(CLI::IsMember({"first", "none"}));
  command->add_flag("--dry-run", options->dry_run, "Show what would happen and change nothing");
  command->footer(
      "The parts are named split-NAME-0, split-NAME-1 … and inherit the settings of the pool. Nothing needs to be "
      "locked or emptied. One commit replaces the pool by its parts. Blocks keep their size, so each block lies in one "
      "part, with its owner and its addresses. An assignment that is about to claim a block of the old pool fails at "
      "its commit and starts again on the parts.");
}

Result<std::vector<engine::TakenSpace>> space_of_services(const engine::Context& context) {
  TRY(engine::ServiceSpace space, engine::service_space(context));
  if (space.unread) {
    tell(
        fmt::format("croft: whether a pool overlaps the range of Services is not known, as this API has no ServiceCIDR "
                    "(Kubernetes 1.33 and newer have) and Services can't be read: {}",
                    space.unread->message));
  }
  return std::move(space.taken);
}

// croft reservation: addresses that no pod gets by itself.
namespace {

[[nodiscard]] Result<Listing> look_at(const CommandLine& line, const engine::Context& context) {
  TRY(const auto reservations, engine::list_reservations(context));
  TRY(const auto pools, engine::list_pools(context));
  Table table({"NAME", "POOL", "CIDRS"});
  for (const core::Reservation& one : reservations) {
    std::set<std::string> of;
    for (const net::Prefix& cidr : one.cidrs) {
      for (const core::Pool& pool : pools) {
        if (pool.cidr.overlaps(cidr)) of.insert(pool.name);
      }
    }
    table.add({one.name, fmt::format("{}", fmt::join(of, ",")), net::joined(one.cidrs, ",")});
  }
  return Listing{"No reservations.", std::move(table), line.wants_data() ? json_of(reservations) : Data(), ""};
}

struct CreateOptions {
  std::string name;
  std::vector<std::string> cidrs;
};

/// Pods keep what they hold; somebody who reserves an address wants to know that it is not free yet.
[[nodiscard]] Result<void> tell_of_holders(const engine::Context& context, const core::Reservation& made) {
  TRY(const auto addresses, engine::list_addresses(context));
  std::size_t held = 0;
  const engine::AddressView* first = nullptr;
  for (const engine::AddressView& one : addresses) {
    const auto contains = [&](const net::Prefix& cidr) { return cidr.contains(one.address); };
    if (one.state != core::AddressState::held || std::ranges::none_of(made.cidrs, contains)) continue;
    if (held++ == 0) first = &one;
  }
  if (held == 0) return {};
  tell(fmt::format(
      "croft: {} of reservation {} {} held, {} by {}. The holders keep them until they end; `croft ip list` names them",
      counted(held, "address", "es"), made.name, held == 1 ? "is" : "are", first->address,
      first->pod.empty() ? first->handle_id : first->namespace_name + "/" + first->pod));
  return {};
}

[[nodiscard]] Result<int> create(CommandLine& line, const CreateOptions& options) {
  core::Reservation wanted;
  wanted.name = options.name;
  for (const std::string& text : options.cidrs) {
    // An address is a prefix of itself.
    if (const auto address = net::Address::parse(text)) {
      wanted.cidrs.push_back(net::Prefix::containing(*address, net::bit_length(address->family())));
      continue;
    }
    TRY(const net::Prefix cidr, prefix_argument("--cidr", text));
    wanted.cidrs.push_back(cidr);
  }
  TRY(const engine::Context context, line.open());
  TRY(const bool was_there, engine::create_reservation(context, wanted));
  print(fmt::format("reservation/{} {}\n", wanted.name, was_there ? "unchanged" : "created"));
  TRY_VOID(tell_of_holders(context, wanted));
  return 0;
}

[[nodiscard]] Result<int> remove(CommandLine& line, const DeleteOptions& options) {
  TRY(const engine::Context context, line.open());
  TRY_VOID(engine::delete_reservation(context, options.name, !options.dry_run));
  print(fmt::format("reservation/{} {}\n", options.name, options.dry_run ? "would be deleted" : "deleted"));
  return 0;
}

}  // namespace

void add_reservation_commands(CLI::App& app, CommandLine& line) {
  CLI::App* const noun = add_noun(app, "reservation", "Reservations: addresses that no pod gets by itself");
  const auto [creation, options] =
      add_command(*noun, line, "create", "Keep addresses from being handed out; holders keep theirs", create);
  creation->add_option("NAME", options->name, "Name: lower-case letters, digits, '-' and '.'")->required();
  creation->add_option("--cidr", options->cidrs, "Prefix or address to keep, e.g. 10.1.0.0/28; may be repeated")
      ->required()
      ->delimiter(',')
      ->allow_extra_args(false);
  CLI::App* listing = noun->add_subcommand("list", "List all reservations with the pools they lie in");
  add_list_options(*listing, line);
  listing->callback([&line] {
    line.run = [](CommandLine& l) {
      return list(l, [&l](const engine::Context& context) { return look_at(l, context); });
    };
  });
  const auto [deletion, deleted] =
      add_command(*noun, line, "delete", "Delete a reservation; a pool's own goes with its pool", remove);
  deletion->add_option("NAME", deleted->name, "Name of the reservation")->required();
  deletion->add_flag("--dry-run", deleted->dry_run, "Show what would happen and change nothing");
}

namespace {

const char* word_of(bool value) { return value ? "true" : "false"; }

std::string config_table(const core::IpamConfig& config) {
  Table table({"PROPERTY", "VALUE"});
  table.add({"strictAffinity", word_of(config.strict_affinity)});
  table.add({"autoAllocateBlocks", word_of(config.auto_allocate_blocks)});
  table.add({"maxBlocksPerHost", config.max_blocks_per_host == 0 ? "0 (no limit; calico-ipam: 20)"
                                                                 : std::to_string(config.max_blocks_per_host)});
  table.add({"kubeVirtVMAddressPersistence", config.kubevirt_vm_address_persistence.empty()
                                                 ? "Enabled (not set)"
                                                 : config.kubevirt_vm_address_persistence});
  table.add({"ipCooldownSeconds", std::to_string(config.ip_cooldown_seconds)});
  return table.to_string();
}

void show_config(const CommandLine& line, const core::IpamConfig& config) {
  print(line.wants_data() ? line.data_text(json_of(config)) : config_table(config));
}

[[nodiscard]] Result<int> show_config(CommandLine& line) {
  TRY(const engine::Context context, line.open_to_look());
  TRY(const core::IpamConfig config, engine::read_config(context));
  show_config(line, config);
  return 0;
}

[[nodiscard]] Result<int> set_config(CommandLine& line, const core::ConfigChange& change) {
  const bool any = change.strict_affinity || change.auto_allocate_blocks || change.max_blocks_per_host ||
                   change.kubevirt_vm_address_persistence || change.ip_cooldown_seconds;
  if (!any) return fail(ErrorCode::invalid_argument, "nothing to set: give at least one option");
  TRY(const engine::Context context, line.open());
  TRY(const core::IpamConfig config, engine::set_config(context, change));
  show_config(line, config);
  return 0;
}

}  // namespace

void add_config_commands(CLI::App& app, CommandLine& line) {
  CLI::App* const config = add_noun(app, "config", "Cluster-wide settings");
  config->add_subcommand("show", "Show the settings")->callback([&line] {
    line.run = [](CommandLine& l) { return show_config(l); };
  });

  const auto [setting, change] =
      add_command(*config, line, "set", "Change settings; the others stay as they are", set_config);
  setting
      ->add_option("--strict-affinity", change->strict_affinity,
                   "true: a node takes addresses only from its own blocks")
      ->check(CLI::IsMember({"true", "false"}));
  setting
      ->add_option("--auto-allocate-blocks", change->auto_allocate_blocks,
                   "false: nodes do not claim blocks by themselves; requires strict affinity")
      ->check(CLI::IsMember({"true", "false"}));
  setting->add_option("--max-blocks-per-host", change->max_blocks_per_host,
                      "Maximum blocks per family that a node may own; 0 means no limit; requires strict affinity");
  setting->add_option("--kubevirt-vm-address-persistence", change->kubevirt_vm_address_persistence,
                      "Enabled or Disabled: whether a virtual machine keeps its address when its pod is recreated");
  setting->add_option(
      "--ip-cooldown-seconds", change->ip_cooldown_seconds,
      "How long a released address rests before reuse, 0 to 1200 seconds; a pool's longer cooldown wins");
  setting->footer("Existing assignments do not change. Contradictory values are refused.");
}

}  // namespace croft::app
