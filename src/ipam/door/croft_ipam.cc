#include "ipam/door/croft_ipam.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/hex.h"
#include "base/printable.h"
#include "cni/decision_log.h"
#include "cni/door/cni_call.h"
#include "cni/door/tombstones.h"
#include "cni/error_table.h"
#include "cni/format/config.h"
#include "ipam/decide/assign.h"
#include "ipam/use/assign.h"
#include "ipam/use/damage_reporting_store.h"
#include "ipam/use/release.h"

namespace croft::edge {
namespace {

namespace cni = wire::cni;
using cni::Checked;
using cni::NetworkConfig;

/// With the configured routes of those families that there are addresses of: the main plugin fails on others.
cni::AddResult result_of(const core::Assigned& assigned, const std::vector<cni::Route>& routes) {
  cni::AddResult result;
  for (const core::AssignedAddress& a : assigned.addresses) {
    const int length = a.gateway ? a.pool_cidr.length() : net::bit_length(a.address.family());
    result.ips.push_back({{a.address, length}, a.gateway});
  }
  for (const cni::Route& route : routes) {
    const net::Family family = route.destination.address.family();
    const bool is_of_use = std::ranges::any_of(
        assigned.addresses, [family](const core::AssignedAddress& a) { return a.address.family() == family; });
    if (is_of_use) result.routes.push_back(route);
  }
  return result;
}

/// How long a DEL may take, the agent's part and the store's together: the limit of one call, but for a second, which
/// is the tombstone's.
constexpr std::chrono::seconds kDelTimeMax{14};

/// How long a call waits for its turn on this node. Behind it an ADD has the time of a use case, and both are over
/// before a kubelet gives up after two minutes. A DEL has the rest of its own time, and then leaves a tombstone.
constexpr std::chrono::seconds kAddTurnWaitMax{60};
constexpr std::chrono::seconds kDelTurnWaitMax{10};
constexpr std::chrono::seconds kConnectMax{2};

/// How a call was served, for the log.
struct Path {
  explicit Path(const std::optional<CallSoFar>& so_far = {}) {
    if (so_far) why_not = so_far->agent_said;
  }

  bool by_agent = false;
  std::string why_not;  ///< the agent is there and did not serve

  [[nodiscard]] std::string text() const {
    if (by_agent) return " via=agent";
    return " via=store" + (why_not.empty() ? "" : " agent=" + in_quotes(why_not));
  }
};

class Call final : public CniCall {
 public:
  static Checked<NetworkConfig> decode(const CroftIpamWorld& world, const CniRequest& request) {
    if (world.misplaced) return to_cni_error(*world.misplaced);
    return cni::decode_croft_ipam_config(request.network, request.environment.args, cni::needs_of(request.command));
  }

  Call(const CroftIpamWorld& world, const CniRequest& request, NetworkConfig config)
      : CniCall(world.clock, subject_of(world, request, config), writer_of(world, config), Logs::every_outcome,
                world.so_far),
        world_(world),
        began_(world.so_far ? world.so_far->began : world.clock.now()),
        config_(std::move(config)),
        owner_{config_.name, request.environment.container_id, request.environment.interface_name},
        sign_(cni::has_previous_result(request.network) ? Tombstones::Sign::result : Tombstones::Sign::none),
        tombstones_(world.tombstones, world.clock),
        node_{core::AffinityOwner::Type::host, config_.nodename.value_or(world.host_name)} {}

  [[nodiscard]] Result<Added> add() const {
    Path path(world_.so_far);
    bool was_lifted = false;
    // The other file has done so. One that lies there now was left since: by a DEL of what this call gives.
    if (!world_.so_far) {
      TRY(was_lifted, lift_tombstone(tombstones_, owner_, world_.clock));
    }
    TRY(const core::Assigned assigned, assign(path));
    return Added{result_of(assigned, config_.ipam.routes), text_of(assigned) + path.text() + lifted_text(was_lifted)};
  }

  [[nodiscard]] Result<std::string> del() const {
    Path path(world_.so_far);
    auto given_back = release(path);
    if (!given_back) given_back = defer_release(tombstones_, {store_url(), owner_, {}}, sign_, given_back.error());
    if (!given_back) return fail(given_back.error());
    return given_back->words() + path.text();
  }

  [[nodiscard]] Result<std::string> check() const {
    TRY(const auto store, open(store::OpenMode::existing, Path()));
    std::vector<net::Address> expected;
    for (const net::AddressWithLength& previous : config_.previous_addresses) expected.push_back(previous.address);
    TRY_VOID(engine::check_attachment(context(*store), owner_, expected));
    return std::string();
  }

  [[nodiscard]] Result<std::string> gc() const {
    TRY(const engine::Collected collected, collect());
    return fmt::format("released={} kept_young={}", list_of(collected.released), collected.kept_young);
  }

  [[nodiscard]] Result<void> status() const {
    TRY_VOID(annotations());
    TRY(const auto store, open(store::OpenMode::create, Path()));
    const core::AssignRequest request = this->request();
    TRY_VOID(engine::check_status(
        context(*store),
        {request.node, {request.count.v4 > 0, request.count.v6 > 0}, request.pools, config_.ipam.status_when_full},
        config_.ipam.pools));
    make_up(context(*store));
    return {};
  }

 private:
  static std::string subject_of(const CroftIpamWorld& world, const CniRequest& request, const NetworkConfig& config) {
    const std::string attachment = attachment_text(request);
    return fmt::format("{} network={}{}{} node={}", name_of(request.command), config.name, attachment,
                       attachment.empty() ? "" : pod_text(config.pod),
                       in_quotes_if_needed(config.nodename.value_or(world.host_name)));
  }
  static WriteLine writer_of(const CroftIpamWorld& world, const NetworkConfig& config) {
    return [&world, file = config.ipam.log_file.value_or("")](const std::string& line) { world.log(file, line); };
  }

  [[nodiscard]] std::string store_url() const { return config_.ipam.store.value_or(kDefaultStoreUrl); }
  [[nodiscard]] AgentDoor door() const {
    if (world_.so_far) return {};
    return {world_.find_agent, config_.ipam.agent.value_or(world_.agent_socket), store_url(), node_.name};
  }
  [[nodiscard]] engine::Context context(store::Store& store) const { return {store, world_.clock, world_.random}; }
  [[nodiscard]] core::AssignRequest request() const {
    core::AssignRequest request;
    request.owner = owner_;
    request.pod = config_.pod;
    request.node = node_;
    request.count.v4 = config_.ipam.assign_v4;
    request.count.v6 = config_.ipam.assign_v6;
    request.pools = config_.ipam.asked_pools;
    request.addresses = config_.requested_addresses;
    return request;
  }

  [[nodiscard]] Result<std::unique_ptr<store::Store>> open(store::OpenMode mode, const Path& path) const {
    TRY_VOID(hand_over(path));
    TRY(auto store, world_.open_store(store_url(), mode));
    const auto tell = [&clock = world_.clock, write = writer_of(world_, config_)](const core::Key& key,
                                                                                  const Error& damage) {
      const DecisionLine line(clock,
                              fmt::format("DAMAGED {} {}", core::name_of(key.kind), in_quotes_if_needed(key.name)));
      write(line.ended("warning", text_of(damage)));
    };
    return std::make_unique<engine::DamageReportingStore>(std::move(store), tell);
  }

  /// Does not come back where the sibling is to do the rest, but for an error.
  [[nodiscard]] Result<void> hand_over(const Path& path) const {
    const auto scheme = store::scheme_of(store_url());
    const bool is_siblings = scheme == store::Scheme::etcd || scheme == store::Scheme::kube;
    if (!world_.hand_over || !is_siblings) return {};
    return fail(world_.hand_over({began_, path.why_not}));
  }

  /// Its turn among the calls of its node and store, no later than at `limit`; SQLite has a queue of its own.
  [[nodiscard]] std::optional<NodeTurn> take_turn(store::Store& store, std::chrono::nanoseconds wait_max,
                                                  Deadline limit = {}) const {
    if (world_.turns.empty() || store::scheme_of(store_url()) == store::Scheme::sqlite) return std::nullopt;
    const std::uint64_t of = hash_of_name(store_url() + " " + node_.name);
    const auto until = [&](std::chrono::nanoseconds span) {
      return Deadline{std::min(Deadline::after(world_.clock.now(), span).at_since_boot, limit.at_since_boot)};
    };
    return std::optional<NodeTurn>(
        std::in_place, *this, world_.clock, fmt::format("{}/turn-{:016x}.lock", world_.turns, of), until(wait_max),
        [&] {
          // Connects, so that no turn is held for that.
          static_cast<void>(!store.get(core::handle_key(core::handle_of(owner_)), until(kConnectMax)));
        });
  }

  template <class Ask>
  auto through_agent(Path& path, Ask ask) const {
    auto answer = edge::through_agent(door(), ask, [&](const std::string& why) { path.why_not = why; });
    path.by_agent = answer.has_value();
    return answer;
  }

  /// The annotations to read from the API; nothing where the call is for no pod.
  [[nodiscard]] Result<std::optional<core::WishesWanted>> annotations() const {
    if (!config_.ipam.annotations) return std::optional<core::WishesWanted>();
    if (store::scheme_of(store_url()) != store::Scheme::kube) {
      return fail(invalid_argument(fmt::format(
          "ipam.annotations: \"api\" needs a kube: store, and ipam.store is {}: leave it out, or let the runtime hand "
          "annotations over",
          echo(store::without_user(store_url())))));
    }
    const bool is_pod = !config_.pod.name.empty() && !config_.pod.namespace_name.empty();
    return is_pod ? config_.ipam.annotations : std::nullopt;
  }

  [[nodiscard]] Result<core::AssignAnswer> assign_alone(Path& path, const core::AssignRequest& request) const {
    TRY(const auto store, open(store::OpenMode::create, path));
    auto turn = take_turn(*store, kAddTurnWaitMax);
    const engine::Living living{world_.device_of, [&](const std::string& line) { warn(line); }};
    auto answer = engine::assign(context(*store), request, config_.ipam.pools, &living);
    turn.reset();
    if (answer) make_up(context(*store));
    return answer;
  }

  [[nodiscard]] Result<core::Assigned> assign(Path& path) const {
    core::AssignRequest request = this->request();
    TRY(const auto annotations, this->annotations());
    if (!annotations) TRY_VOID(core::check_something_is_asked(request));
    TRY_VOID(core::check_node_name(request.node.name));
    auto answer = through_agent(path, [&](Agent& agent, wire::agent::Caller self) {
      return agent.assign({std::move(self), config_.ipam.pools, request, annotations});
    });
    if (!answer) {
      if (annotations) {
        TRY_VOID(hand_over(path));
        TRY(const core::AnnotatedWishes wishes, world_.ask_for_wishes(store_url(), config_.pod));
        TRY_VOID(core::apply_wishes(wishes, *annotations, request));
        TRY_VOID(core::check_something_is_asked(request));
      }
      TRY(answer, assign_alone(path, request));
    }
    if (const auto* refusal = std::get_if<core::Refusal>(&*answer)) return fail(core::to_error(*refusal));
    return std::get<core::Assigned>(*std::move(answer));
  }

  [[nodiscard]] Result<GivenBack> release(Path& path) const {
    auto by_agent = through_agent(path, [&](Agent& agent, wire::agent::Caller self) {
      self.ends = Deadline::after(began_, kAnswerTimeMax);
      return agent.release({std::move(self), owner_});
    });
    if (by_agent) return GivenBack{*std::move(by_agent), {}};
    const auto store = open(store::OpenMode::existing, path);
    if (!store && store.error().code == ErrorCode::not_found) return GivenBack{};
    if (!store) return fail(store.error());
    // It is over in time whatever it meets. An agent that answered too late has used up the time of the turn.
    const Deadline limit = Deadline::after(began_, kDelTimeMax);
    const engine::Context context{**store, world_.clock, world_.random, kDelTimeMax, limit};
    auto turn = take_turn(**store, kDelTurnWaitMax, limit);
    TRY(core::Released released, engine::release_owner(context, owner_));
    turn.reset();
    make_up(context);
    return GivenBack{std::move(released.addresses)};
  }

  [[nodiscard]] Result<engine::Collected> collect() const {
    if (config_.valid_attachments.presence != cni::ValidAttachments::Presence::given) return engine::Collected{};
    const auto store = open(store::OpenMode::existing, Path());
    if (!store && store.error().code == ErrorCode::not_found) return engine::Collected{};
    if (!store) return fail(store.error());
    engine::GcAttachments valid;
    for (const cni::Attachment& a : config_.valid_attachments.entries) valid.insert({a.container_id, a.interface_name});
    return engine::collect_attachments(context(**store), config_.name, node_, valid);
  }

  void make_up(const engine::Context& context) const {
    replay_some(tombstones_, context, store_url(), writer_of(world_, config_));
  }

  const CroftIpamWorld& world_;
  const Instant began_;
  const NetworkConfig config_;
  const core::Owner owner_;
  const Tombstones::Sign sign_;  ///< of an ADD that succeeded
  const Tombstones tombstones_;
  const core::AffinityOwner node_;
};

}  // namespace

CniPlugin croft_ipam_plugin(const CroftIpamWorld& world) {
  CniPlugin plugin;
  plugin.about = std::string("CNI croft-ipam plugin ") + CROFT_VERSION;
  plugin.handlers = handlers_of<Call>(world);
  plugin.limits_owner = true;
  return plugin;
}

}  // namespace croft::edge
