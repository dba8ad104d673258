#include "cli/croft/life_sources.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/texts.h"
#include "cli/croft/listing.h"
#include "cli/stores/open_store.h"
#include "collector/use/node_facts.h"
#include "hostlocal/decide/audit.h"
#include "hostlocal/door/host_local_facts.h"
#include "ipam/use/inspect.h"
#include "ipam/use/nodes.h"
#include "ipam/use/release.h"
#include "noderanges/commands/node_range_inputs.h"
#include "store/kube/cluster_facts.h"

namespace croft::app {

Result<std::unique_ptr<Cluster>> Cluster::of(const CommandLine& line) {
  if (line.cluster_url.empty()) return nullptr;
  TRY(auto api, open_kube_api(line.cluster_url, line.clock, operator_parts(), kPageTime));
  return std::unique_ptr<Cluster>(new Cluster(line, std::move(api)));
}

Result<core::collect::Facts> Cluster::nodes(const engine::Context& context) {
  TRY(core::collect::Facts facts, engine::NodeFacts(context).facts());
  if (line_.cluster_url == line_.store_url) {
    own_.insert(facts.nodes().begin(), facts.nodes().end());
    return facts;
  }
  TRY(const auto cidrs, open_node_cidrs(line_.cluster_url, line_.clock, operator_parts()));
  TRY(const auto nodes, cidrs->all());
  for (const engine::NodeCidrs::OfNode& node : nodes) {
    own_.insert(node.node);
    facts.add_node({node.node, {}, {}});
  }
  bool is_of_store = false;
  TRY_VOID(engine::for_each_affinity(context, "", [&](const core::Affinity& one) {
    is_of_store |= one.owner.type == core::AffinityOwner::Type::host && own_.contains(one.owner.name);
  }));
  if (is_of_store) return facts;
  return fail(ErrorCode::refused_for_safety,
              "none of the cluster's {} has a block in {}; name the cluster whose pods have its addresses",
              counted(own_.size(), "node"), line_.store_url);
}

Result<std::vector<core::audit::RunningPod>> Cluster::running_pods(core::collect::Facts* all) {
  return store::kube::list_running_pods(*api_, line_.clock, all);
}

Result<void> LifeSources::read(const CommandLine& line, const engine::Context& context, const RuntimeCache& cache) {
  TRY(known_.runtime.live, read_runtime_cache(context, cache));
  known_.runtime.node = cache.node;
  known_.runtime.grace = std::chrono::seconds(cache.grace_seconds);
  core::host_local::SignsOfLife life;
  edge::add_namespace_addresses(true, life);
  known_.configured = std::move(life.configured);
  TRY(cluster_, Cluster::of(line));
  if (cluster_ == nullptr) return {};
  auto nodes = cluster_->nodes(context);
  if (!nodes && nodes.error().code != ErrorCode::permission_denied) return fail(nodes.error());
  if (!nodes) warn("the cluster is not asked for nodes: " + nodes.error().message);
  // The nodes of a cluster beside the store tell that it is the one.
  if (!nodes && line.cluster_url != line.store_url) return {};
  if (nodes && nodes->node_count() > 0) known_.nodes = *std::move(nodes);
  auto pods = cluster_->running_pods();
  if (!pods && pods.error().code != ErrorCode::permission_denied) return fail(pods.error());
  if (!pods) {
    warn("the cluster is not asked for pods: " + pods.error().message);
    return {};
  }
  known_.runtime.pods = *std::move(pods);
  known_.find_pod = [this, &line](const std::string& name_space, const std::string& name) {
    return store::kube::find_pod(cluster_->api(), name_space, name, Deadline::after(line.clock.now(), kPageTime));
  };
  return {};
}

namespace {

static_assert(engine::kCollectAgeMin.count() == 60, "RuntimeCache::grace_seconds");

/// Containers of which it can't be told count as alive; that is worth knowing.
void warn_of_unclear(const edge::CniCache& cache) {
  const auto& entries = cache.attachments.entries;
  const auto unclear = std::count_if(entries.begin(), entries.end(), [](const core::RuntimeAttachment& entry) {
    return entry.netns == core::RuntimeAttachment::Netns::unclear;
  });
  if (unclear == 0) return;
  warn(fmt::format(
      "the network namespaces of {} of {} can't be told to be there or gone{}; their containers count as alive",
      unclear, counted_as(entries.size(), "cache entry", "cache entries"),
      cache.blind_because.empty() ? "" : " (" + cache.blind_because + "; --in-container if it is the node)"));
}

[[nodiscard]] Result<edge::CniCache> read_caches(const RuntimeCache& cache) {
  auto read = edge::read_cni_caches(cache.directories, cache.in_container);
  if (read) return read;
  return fail(ErrorCode::invalid_argument, "--cni-cache: {}; name the directory that has `results`",
              read.error().message);
}

}  // namespace

std::string RuntimeCache::words() const {
  std::string text;
  for (const std::string& directory : directories) text += " --cni-cache " + in_shell_quotes_if_needed(directory);
  if (text.empty()) return text;
  if (!node.empty()) text += " --node " + in_shell_quotes_if_needed(node);
  if (grace_seconds != RuntimeCache{}.grace_seconds) text += fmt::format(" --grace-seconds {}", grace_seconds);
  return in_container ? text + " --in-container" : text;
}

void add_runtime_cache_options(CLI::App& command, RuntimeCache& cache, const std::string& first) {
  command.add_option("--cni-cache", cache.directories, first)->allow_extra_args(false);
  command.add_flag("--in-container", cache.in_container,
                   "With --cni-cache: this container is the node (kind, k3d), so a missing namespace is really gone");
  command.add_option(
      "--node", cache.node,
      "With --cni-cache: the node that the cache belongs to; addresses and pods of other nodes are skipped");
  command
      .add_option("--grace-seconds", cache.grace_seconds,
                  "With --cni-cache: skip addresses held for less time than this; their ADD may still be running")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{86400}))
      ->capture_default_str();
}

Result<std::optional<core::audit::LiveAttachments>> read_runtime_cache(const engine::Context& context,
                                                                       const RuntimeCache& cache) {
  std::optional<core::audit::LiveAttachments> live;
  if (cache.directories.empty()) {
    if (cache.node.empty()) return live;
    return fail(ErrorCode::invalid_argument, "--node: it says whose cache --cni-cache is; give both");
  }
  if (context.store.capabilities().foreign_writers && cache.node.empty()) {
    return fail(ErrorCode::invalid_argument,
                "--cni-cache: the store is a cluster's and the cache is one node's; say which with --node");
  }
  TRY(auto read, read_caches(cache));
  warn_of_unclear(read);
  live = std::move(read.attachments);
  if (!cache.node.empty()) TRY_VOID(engine::check_node_known(context, cache.node));
  return live;
}

Result<std::optional<core::audit::LiveAttachments>> read_runtime_cache_again(const RuntimeCache& cache) {
  if (cache.directories.empty()) return std::optional<core::audit::LiveAttachments>();
  TRY(auto read, read_caches(cache));
  return std::optional(std::move(read.attachments));
}

}  // namespace croft::app
