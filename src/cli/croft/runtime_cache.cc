#include "cli/croft/runtime_cache.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/quoted.h"
#include "cli/croft/filters.h"
#include "collector/door/cni_cache.h"
#include "ipam/use/nodes.h"
#include "ipam/use/release.h"

namespace croft::app {
namespace {

static_assert(engine::kCollectAgeMin.count() == 60, "RuntimeCache::grace_seconds");

/// Containers of which it can't be told count as alive; that is worth knowing.
void warn_of_unclear(const edge::CniCache& cache) {
  const auto& entries = cache.attachments.entries;
  const auto unclear = std::count_if(entries.begin(), entries.end(), [](const core::CachedAttachment& entry) {
    return entry.netns == core::CachedAttachment::Netns::unclear;
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
  return fail(ErrorCode::invalid_argument,
              fmt::format("--cni-cache: {}; name the directory that has `results`", read.error().message));
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
