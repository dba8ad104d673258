#include "vpc/door/croft_vpc.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/printable.h"
#include "cni/decision_log.h"
#include "cni/door/cni_call.h"
#include "vpc/use/stock_calls.h"
#include "vpc/use/stock_keeper.h"

namespace croft::edge {
namespace {

namespace cni = wire::cni;
namespace warm = core::warm;
using cni::VpcConfig;

/// For the cloud, beside what probing takes.
constexpr std::chrono::seconds kCloudTime{30};
/// An attachment that is younger may be missing in the runtime's list.
constexpr std::chrono::seconds kYoung{60};
/// Between two who race for the same new address the slower one asks again.
constexpr int kFetchesMax = 3;

/// Where the node has no address of the subnet: it takes a main plugin that makes a route to the gateway first.
net::Address default_gateway(net::Family family) {
  return net::Address::parse(family == net::Family::v4 ? "169.254.1.1" : "fe80::1").value();
}

class VpcCall final : public CniCall {
 public:
  static cni::Checked<VpcConfig> decode(const CroftVpcWorld& world, const CniRequest& request) {
    if (world.misplaced) return CniCall::cni_error(*world.misplaced);
    return cni::decode_vpc_config(request.network, request.environment.args, request.command);
  }

  VpcCall(const CroftVpcWorld& world, const CniRequest& request, VpcConfig config)
      : CniCall(world.clock, subject_of(request, config), writer_of(world, config), Logs::every_outcome, world.so_far),
        world_(world),
        began_(world.clock.now()),
        config_(std::move(config)),
        owner_{config_.name, request.environment.container_id, request.environment.interface_name},
        netns_(request.environment.netns) {}

  [[nodiscard]] Result<Added> add() const;
  [[nodiscard]] Result<std::string> del() const;
  [[nodiscard]] Result<std::string> check() const;
  [[nodiscard]] Result<std::string> gc() const;
  [[nodiscard]] Result<void> status() const;

 private:
  static std::string subject_of(const CniRequest& request, const VpcConfig& config) {
    const std::string attachment = attachment_text(request);
    return fmt::format("{} network={}{}{}", name_of(request.command), config.name, attachment,
                       attachment.empty() ? "" : pod_text(config.pod));
  }
  static WriteLine writer_of(const CroftVpcWorld& world, const VpcConfig& config) {
    return [&world, file = config.log_file.value_or("")](const std::string& line) { world.log(file, line); };
  }
  [[nodiscard]] bool has_agent() const { return config_.agent != "none" && !world_.so_far; }
  [[nodiscard]] std::string agent_text(const std::string& said) const {
    return said.empty() ? "" : " agent=" + in_quotes(said);
  }
  [[nodiscard]] Result<std::unique_ptr<store::Store>> open(store::OpenMode mode) const {
    auto store = world_.open_store(config_.store, mode);
    if (store || store.error().code != ErrorCode::corrupt) return store;
    return fail(ErrorCode::corrupt, engine::damage_of_stock(store.error()) +
                                        "; start the node's agent (croftd vpc-agent), which begins the stock anew");
  }
  [[nodiscard]] engine::Context context(store::Store& store) const { return {store, world_.clock, world_.random}; }
  [[nodiscard]] warm::Request request() const { return {owner_, config_.pod, netns_, config_.subnet}; }
  [[nodiscard]] Result<std::chrono::seconds> cooldown(store::Store& store) const;
  [[nodiscard]] Result<core::StockAddress> assign_alone(const std::string& agent_said, std::string& how) const;
  [[nodiscard]] Result<std::string> release(warm::Release release) const;
  [[nodiscard]] Result<void> fetch_one(store::Store& store, const std::string& agent_said) const;
  [[nodiscard]] cni::AddResult result(const core::StockAddress& given) const;

  const CroftVpcWorld& world_;
  const Instant began_;
  const VpcConfig config_;
  const core::Owner owner_;
  const std::string netns_;
};

cni::AddResult VpcCall::result(const core::StockAddress& given) const {
  const net::Family family = given.address.family();
  const auto node_address = world_.node_address ? world_.node_address(given) : std::nullopt;
  const net::Address gateway = config_.gateways[family].value_or(node_address.value_or(default_gateway(family)));
  const int length = given.prefix_length > 0 ? static_cast<int>(given.prefix_length) : net::bit_length(family);
  cni::AddResult result;
  result.ips.push_back({{given.address, length}, gateway});
  for (const cni::Route& route : config_.routes) {
    if (route.destination.address.family() == family) result.routes.push_back(route);
  }
  if (config_.routes.empty()) {
    cni::Route route;
    route.destination = {net::Address::from(family, {}), 0};
    route.gateway = gateway;
    result.routes.push_back(route);
  }
  return result;
}

/// As the agent goes by it, where one has been.
Result<std::chrono::seconds> VpcCall::cooldown(store::Store& store) const {
  TRY(const auto view, engine::view_stock(context(store)));
  const bool is_described = view.node && !view.node->node.empty();
  return std::chrono::seconds{is_described ? static_cast<std::int64_t>(view.node->cooldown_seconds)
                                           : config_.cooldown_seconds};
}

Result<void> VpcCall::fetch_one(store::Store& store, const std::string& agent_said) const {
  // Where the sibling asks the cloud, it comes back only with an error.
  if (world_.hand_over) return fail(world_.hand_over({began_, agent_said}));
  TRY(const VpcCloud cloud, world_.open_cloud(config_));
  engine::KeeperWorld world{store, world_.clock, world_.random, *cloud.provider};
  world.probe = cloud.probe.get();
  world.log = [this](const std::string& line) { warn(line); };
  engine::KeeperOptions options;
  options.subnet = config_.subnet;
  engine::StockKeeper keeper(world, options);
  return keeper.fetch(Deadline::after(world_.clock.now(), kCloudTime));
}

Result<core::StockAddress> VpcCall::assign_alone(const std::string& agent_said, std::string& how) const {
  TRY(const auto store, open(store::OpenMode::create));
  warm::Request request = this->request();
  TRY(request.cooldown, cooldown(*store));
  // No agent compares the records with the host meanwhile; they may be an older copy.
  if (world_.used_by_host) {
    if (auto used = world_.used_by_host(); used) {
      request.in_use = *std::move(used);
    } else {
      warn("what the host uses is not known: " + used.error().message);
    }
  }
  for (int fetches = 0;; ++fetches) {
    TRY(auto answer, engine::assign_from_stock(context(*store), request));
    if (auto* assigned = std::get_if<warm::Assigned>(&answer)) {
      how += fetches == 0 ? " via=store" : " via=cloud";
      return std::move(assigned->address);
    }
    if (fetches == kFetchesMax) break;
    TRY_VOID(fetch_one(*store, agent_said));
  }
  return fail(ErrorCode::exhausted, "the cloud gave addresses, and each was taken or in use by somebody else");
}

Result<Added> VpcCall::add() const {
  std::string agent_said = world_.so_far ? world_.so_far->agent_said : "";
  if (has_agent()) {
    const auto given = world_.ask_to_assign(config_.agent, request());
    if (given) return Added{result(*given), fmt::format("ips={} via=agent", given->address.to_string())};
    if (given.error().code != ErrorCode::unavailable) return fail(given.error());
    agent_said = given.error().message;
  }
  std::string how = agent_text(agent_said);
  TRY(const core::StockAddress given, assign_alone(agent_said, how));
  return Added{result(given), fmt::format("ips={}{}", given.address.to_string(), how)};
}

Result<std::string> VpcCall::del() const { return release({owner_, config_.pod}); }

Result<std::string> VpcCall::release(warm::Release release) const {
  std::string agent_said = world_.so_far ? world_.so_far->agent_said : "";
  if (has_agent()) {
    const auto released = world_.ask_to_release(config_.agent, release);
    if (released) return std::string("via=agent");
    if (released.error().code != ErrorCode::unavailable) return fail(released.error());
    agent_said = released.error().message;
  }
  const std::string how = agent_text(agent_said);
  const auto store = open(store::OpenMode::existing);
  if (!store && store.error().code == ErrorCode::not_found) return "released=none" + how;
  if (!store) return fail(store.error());
  TRY(release.cooldown, cooldown(**store));
  TRY(const auto let_go, engine::release_to_stock(context(**store), release));
  std::vector<net::Address> addresses;
  for (const core::StockAddress& one : let_go) addresses.push_back(one.address);
  return fmt::format("released={} via=store{}", list_of(addresses), how);
}

Result<std::string> VpcCall::check() const {
  TRY(const auto store, open(store::OpenMode::existing));
  TRY(const auto view, engine::view_stock(context(*store)));
  for (const net::AddressWithLength& expected : config_.previous_addresses) {
    const core::StockAddress* found = view.find(expected.address);
    if (found == nullptr || !warm::is_holder(*found, owner_)) {
      return fail(ErrorCode::not_found,
                  fmt::format("{} is not held by container {}", expected.address.to_string(), owner_.container_id));
    }
  }
  return std::string();
}

/// Releases what attachments of this network hold that the runtime does not list. A young one is kept: its ADD may not
/// have reached the list.
Result<std::string> VpcCall::gc() const {
  const cni::ValidAttachments& valid = config_.valid_attachments;
  if (valid.presence != cni::ValidAttachments::Presence::given) return std::string("released=none");
  const auto store = open(store::OpenMode::existing);
  if (!store && store.error().code == ErrorCode::not_found) return std::string("released=none");
  if (!store) return fail(store.error());
  TRY(const auto view, engine::view_stock(context(**store)));
  std::vector<net::Address> released;
  std::size_t kept_young = 0;
  for (const core::StockAddress& one : view.addresses) {
    const core::Owner& owner = one.owner;
    if (one.state != core::StockAddressState::held || owner.network != config_.name || owner.container_id.empty())
      continue;
    const auto is_this = [&](const cni::Attachment& a) {
      return a.container_id == owner.container_id && a.interface_name == owner.interface_name;
    };
    if (std::ranges::any_of(valid.entries, is_this)) continue;
    const auto age = world_.clock.now().wall - one.since;
    if (age < kYoung) {
      ++kept_young;
      continue;
    }
    TRY_VOID(release({owner, {}, one.address}));
    released.push_back(one.address);
  }
  return fmt::format("released={} kept_young={}", list_of(released), kept_young);
}

Result<void> VpcCall::status() const {
  TRY(const auto store, open(store::OpenMode::create));
  TRY_VOID(engine::view_stock(context(*store)));
  return {};
}

}  // namespace

CniPlugin croft_vpc_plugin(const CroftVpcWorld& world) {
  CniPlugin plugin;
  plugin.about = std::string("CNI croft-vpc plugin ") + CROFT_VERSION;
  plugin.handlers = handlers_of<VpcCall>(world);
  plugin.limits_owner = true;
  return plugin;
}

}  // namespace croft::edge
