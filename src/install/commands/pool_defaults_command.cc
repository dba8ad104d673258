#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/letters.h"
#include "base/printable.h"
#include "base/texts.h"
#include "cli/croft/command_line.h"
#include "cli/croft/json_output.h"
#include "cli/stores/open_store.h"
#include "install/format/node_network.h"
#include "ipam/commands/operator_warnings.h"
#include "ipam/use/inspect.h"
#include "ipam/use/pools.h"
#include "os/look_up.h"
#include "store/kube/cluster_facts.h"
#include "store/kube/format/api.h"
#include "store/store_url.h"

// The first pools of a cluster: by flags, by the variables that Calico's node takes, or by kubeadm's configuration.

namespace croft::app {
namespace {

constexpr std::chrono::seconds kApiTime{10};
/// For all nodes: 5,000 are ten pages.
constexpr std::chrono::seconds kListTime{60};
constexpr const char* kNone = "none";

struct FamilyOptions {
  std::string cidr;
  std::optional<int> block_size;
};
struct DefaultPoolOptions {
  FamilyOptions v4, v6;
  std::string gateways = kNone;
  bool no_kubeadm = false;
  bool is_required = false;
  bool dry_run = false;
};

/// The names of one family.
struct FamilyNames {
  net::Family family;
  const char* pool;
  const char* digit;  ///< of flags and variables
};
constexpr std::array<FamilyNames, 2> kFamilies{
    {{net::Family::v4, engine::kDefaultPoolV4, "4"}, {net::Family::v6, engine::kDefaultPoolV6, "6"}}};

/// A text with whoever said it.
struct Said {
  std::string by, text;
};
std::optional<Said> variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr || *value == '\0') return {};
  return Said{name, value};
}
/// The first of a flag, Croft's variable and Calico's.
std::optional<Said> first_said(const FamilyNames& names, const std::string& given, const char* flag, const char* part) {
  if (!given.empty()) return Said{fmt::format("--ipv{}-{}", names.digit, flag), given};
  for (const char* whose : {"CROFT", "CALICO"}) {
    if (auto said = variable(fmt::format("{}_IPV{}POOL_{}", whose, names.digit, part))) return said;
  }
  return {};
}
std::optional<Said> said_cidr(const FamilyNames& names, const DefaultPoolOptions& options) {
  return first_said(names, names.family == net::Family::v4 ? options.v4.cidr : options.v6.cidr, "cidr", "CIDR");
}

[[nodiscard]] Result<std::optional<int>> block_size_of(const FamilyNames& names, const FamilyOptions& options) {
  const auto said =
      first_said(names, options.block_size ? std::to_string(*options.block_size) : "", "block-size", "BLOCK_SIZE");
  if (!said) return std::optional<int>();
  const auto length = net::parse_prefix_length(said->text);
  if (!length) return fail(ErrorCode::invalid_argument, "{}: {} is no prefix length", said->by, echo(said->text));
  return std::optional(*length);
}

/// The cluster that a pool is for, as far as there is one: what kubeadm and its nodes say.
class ClusterFacts {
 public:
  ClusterFacts(const CommandLine& line, const DefaultPoolOptions& options) : line_(line), options_(options) {}

  /// Connects nothing yet. Without a Kubernetes API there is nobody to ask.
  [[nodiscard]] Result<void> open() {
    if (store::scheme_of(line_.store_url) != store::Scheme::kube) return {};
    TRY(api_, open_kube_api(line_.store_url, line_.clock, {nullptr, os::look_up_host}, kApiTime));
    return {};
  }
  /// Asked once. One that was not made by kubeadm, or says nothing to us, says nothing.
  [[nodiscard]] Result<const wire::KubeadmNetworking*> kubeadm() {
    if (networking_) return &*networking_;
    if (api_ == nullptr || options_.no_kubeadm) {
      why_none_ = api_ == nullptr ? "there is no Kubernetes API to ask" : "--no-kubeadm";
      return &networking_.emplace();
    }
    store::kube::Request request;
    TRY(request.path, wire::kube::object_path({"", "v1", "configmaps"}, "kube-system", "kubeadm-config"));
    const store::kube::Answer answer = api_->call(request, Deadline::after(line_.clock.now(), kApiTime));
    const bool is_nobodys = answer.outcome == store::kube::Answer::Outcome::refused &&
                            (answer.http_status == 401 || answer.http_status == 403 || answer.http_status == 404);
    if (is_nobodys) {
      why_none_ = answer.error.message;
      return &networking_.emplace();
    }
    if (answer.outcome != store::kube::Answer::Outcome::done) {
      return fail(unread(answer.error, "ConfigMap kube-system/kubeadm-config"));
    }
    const std::string which = fmt::format("ConfigMap kube-system/kubeadm-config, {} bytes", answer.body.size());
    const auto map = wire::kube::decode_object(answer.body);
    if (!map) return fail(unread(map.error(), which));
    const auto text = wire::member_of(wire::member_of(map->value, "data"), "ClusterConfiguration");
    auto said = wire::parse_kubeadm_config(text ? text->text() : std::string_view());
    if (!said) return fail(unread(said.error().in("data.ClusterConfiguration"), which));
    return &networking_.emplace(*std::move(said));
  }
  /// Why kubeadm says no CIDR.
  [[nodiscard]] const std::string& why_none() const { return why_none_; }
  [[nodiscard]] Result<std::vector<engine::TakenSpace>> taken() {
    std::vector<engine::TakenSpace> all;
    if (api_ == nullptr) return all;
    TRY(const wire::KubeadmNetworking* const networking, kubeadm());
    for (const net::Prefix& cidr : networking->service_subnets) {
      all.push_back({fmt::format("kubeadm's serviceSubnet {}", cidr), cidr});
    }
    TRY(const auto nodes, store::kube::list_nodes(*api_, line_.clock, Deadline::after(line_.clock.now(), kListTime)));
    for (const store::kube::NodeObject& node : nodes) {
      for (const net::Address& address : node.addresses) {
        all.push_back({fmt::format("address {} of node {}", address, node.name),
                       net::Prefix::containing(address, net::bit_length(address.family()))});
      }
    }
    return all;
  }

 private:
  [[nodiscard]] static Error unread(const Error& why, const std::string& which) {
    Error error = Error(why).in(which);
    // It is not the caller who is wrong.
    if (error.code == ErrorCode::invalid_argument) error.code = ErrorCode::corrupt;
    error.message +=
        "; look at it (kubectl -n kube-system get configmap kubeadm-config -o yaml), or say --no-kubeadm and name the "
        "pools' CIDRs yourself";
    return error;
  }

  const CommandLine& line_;
  const DefaultPoolOptions& options_;
  std::unique_ptr<store::kube::Api> api_;
  std::optional<wire::KubeadmNetworking> networking_;
  std::string why_none_ = "its podSubnet is none";
};

/// The pool that is wanted of one family, or nothing.
[[nodiscard]] Result<std::optional<core::PoolSpec>> wanted(const FamilyNames& names, const DefaultPoolOptions& options,
                                                           ClusterFacts& cluster) {
  core::PoolSpec spec;
  spec.name = names.pool;
  const auto said = said_cidr(names, options);
  if (said && said->text == kNone) return std::optional<core::PoolSpec>();
  if (said) {
    TRY(spec.cidr, prefix_argument(said->by, said->text));
    if (spec.cidr.family() != names.family) {
      return fail(ErrorCode::invalid_argument, "{}: {} is of the other family", said->by, spec.cidr);
    }
  } else {
    TRY(const wire::KubeadmNetworking* const networking, cluster.kubeadm());
    const net::Prefix* found = nullptr;
    for (const net::Prefix& cidr : networking->pod_subnets) {
      if (cidr.family() == names.family) found = &cidr;
    }
    if (found == nullptr) return std::optional<core::PoolSpec>();
    spec.cidr = *found;
  }
  TRY(spec.block_length, block_size_of(names, names.family == net::Family::v4 ? options.v4 : options.v6));
  if (options.gateways == kNone) spec.gateway = core::GatewayChoice{core::GatewayChoice::Kind::none, {}};
  TRY_VOID(core::make_pool(spec));
  return std::optional(std::move(spec));
}

/// NO_DEFAULT_POOLS, where it says so in any case of letters.
std::optional<Said> none_at_all() {
  auto said = variable("NO_DEFAULT_POOLS");
  return said && lowered(said->text) == "true" ? said : std::nullopt;
}

const char* word_of(engine::DefaultPool::Outcome outcome) {
  if (outcome == engine::DefaultPool::Outcome::there) return "unchanged";
  return outcome == engine::DefaultPool::Outcome::made ? "created" : "would be created";
}

[[nodiscard]] Result<std::vector<core::PoolSpec>> all_wanted(const DefaultPoolOptions& options, ClusterFacts& cluster) {
  std::vector<core::PoolSpec> specs;
  for (const FamilyNames& names : kFamilies) {
    if (none_at_all()) {
      const auto said = said_cidr(names, options);
      if (!said) continue;
      return fail(ErrorCode::invalid_argument, "NO_DEFAULT_POOLS and {} contradict each other: leave one out",
                  said->by);
    }
    TRY(auto spec, wanted(names, options, cluster));
    if (spec) specs.push_back(*std::move(spec));
  }
  return specs;
}

/// Whether somebody said that a family gets no pool.
bool is_none_said(const DefaultPoolOptions& options) {
  return none_at_all() || std::ranges::any_of(kFamilies, [&](const FamilyNames& names) {
           const auto said = said_cidr(names, options);
           return said && said->text == kNone;
         });
}

/// A caller that runs it until there are pools must not take "nothing to do" for that.
[[nodiscard]] Result<void> check_has_pools(CommandLine& line, const ClusterFacts& cluster) {
  const auto opened = line.open();
  if (!opened && opened.error().code != ErrorCode::not_found) return fail(opened.error());
  TRY(const auto pools, opened ? engine::list_pools(*opened) : Result<std::vector<core::Pool>>());
  if (!pools.empty()) return {};
  return fail(ErrorCode::no_pool,
              "no pool is asked for, and the register has none, so no pod would get an address: no flag and no "
              "variable names a CIDR, nor does kubeadm ({}). Say it with --ipv4-cidr (the chart's "
              "defaultPools.ipv4Cidr), or make one: croft pool create",
              cluster.why_none());
}

[[nodiscard]] Result<int> make_default_pools(CommandLine& line, const DefaultPoolOptions& options) {
  ClusterFacts cluster(line, options);
  TRY_VOID(cluster.open());
  TRY(const std::vector<core::PoolSpec> specs, all_wanted(options, cluster));
  std::vector<engine::DefaultPool> pools;
  if (!specs.empty()) {  // else no store is made for nothing
    TRY(const engine::Context context, line.open(!options.dry_run));
    const auto taken = [&]() -> Result<std::vector<engine::TakenSpace>> {
      TRY(auto all, cluster.taken());
      TRY(auto of_services, space_of_services(context));
      std::ranges::move(of_services, std::back_inserter(all));
      return all;
    };
    TRY(pools, engine::ensure_default_pools(context, specs, {taken, options.dry_run}));
  }
  if (specs.empty() && options.is_required && !is_none_said(options)) TRY_VOID(check_has_pools(line, cluster));
  for (const engine::DefaultPool& one : pools) {
    if (one.outcome != engine::DefaultPool::Outcome::there) continue;
    tell_if_unallocatable(one.pool);
    if (one.pool.disabled) {
      tell(
          fmt::format("croft: pool {0} is there and disabled: no pod gets an address of it. If nobody meant that, "
                      "`croft pool enable {0}`",
                      one.pool.name));
    }
  }
  if (line.wants_data()) {
    std::vector<nlohmann::ordered_json> rows;
    for (const engine::DefaultPool& one : pools) {
      rows.push_back({{"name", one.pool.name}, {"cidr", one.pool.cidr.to_string()}, {"outcome", word_of(one.outcome)}});
    }
    print(line.data_text(Data(rows)));
    return 0;
  }
  for (const engine::DefaultPool& one : pools) {
    print(fmt::format("pool/{} {} ({})\n", one.pool.name, word_of(one.outcome), one.pool.cidr));
  }
  if (pools.empty()) {
    print(is_none_said(options)
              ? std::string("No pool is asked for.\n")
              : fmt::format("No pool is asked for: neither flags, nor variables, nor kubeadm's podSubnet name a CIDR "
                            "(kubeadm: {}).\n",
                            cluster.why_none()));
  }
  return 0;
}

}  // namespace

void add_pool_defaults_command(CLI::App& pool, CommandLine& line) {
  const auto [command, options] = add_command(
      pool, line, "defaults", "Create a cluster's first pools, unless its family has one", make_default_pools);
  command->add_option("--ipv4-cidr", options->v4.cidr,
                      "Prefix of the IPv4 pool; \"none\": no such pool (default: CROFT_IPV4POOL_CIDR, "
                      "CALICO_IPV4POOL_CIDR, or kubeadm's podSubnet)");
  command->add_option(
      "--ipv4-block-size", options->v4.block_size,
      "Prefix length of its blocks (default: CROFT_IPV4POOL_BLOCK_SIZE, CALICO_IPV4POOL_BLOCK_SIZE, or 26)");
  command->add_option("--ipv6-cidr", options->v6.cidr, "The same of IPv6");
  command->add_option("--ipv6-block-size", options->v6.block_size, "The same of IPv6; else 122");
  command
      ->add_option("--gateways", options->gateways,
                   "\"first\": the first address of each pool is the pods' gateway, as ptp and bridge need it; "
                   "\"none\": they get /32 and /128, as Calico's plugin takes them")
      ->check(CLI::IsMember({"first", "none"}))
      ->capture_default_str();
  command->add_flag("--no-kubeadm", options->no_kubeadm, "Do not read kubeadm's configuration");
  command->add_flag("--required", options->is_required,
                    "An error where nothing names a CIDR, no family is \"none\" and the register has no pool: for who "
                    "runs it until there is one");
  command->add_flag("--dry-run", options->dry_run, "Show what would happen and change nothing");
  command->footer(
      "Every node may run it at once: one makes the pools. A pool of the family that is there, whatever its name, is "
      "left as it is. On a kube: store, a CIDR is refused that overlaps a range of Services, an address of a Service "
      "or a node's address. "
      "NO_DEFAULT_POOLS=true makes none.");
}

}  // namespace croft::app
