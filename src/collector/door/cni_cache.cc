#include "collector/door/cni_cache.h"

#include <algorithm>
#include <set>
#include <utility>

#include "hostlocal/door/host_local_facts.h"
#include "os/network_namespaces.h"

namespace croft::edge {

using Netns = core::CachedAttachment::Netns;

Result<CniCache> read_cni_caches(const std::vector<std::string>& directories, bool is_the_machine) {
  core::host_local::SignsOfLife read;
  for (const std::string& directory : std::set(directories.begin(), directories.end())) {
    const std::string of_multus = directory + "/multus";
    const bool is_named = std::ranges::find(directories, of_multus) != directories.end();
    const auto more = is_named ? Result<void>() : read_cached_attachments(of_multus, read);
    if (!more && more.error().code != ErrorCode::not_found) return fail(more.error());
    TRY_VOID(read_cached_attachments(directory, read));
  }
  if (!read.unseen.empty()) return fail(ErrorCode::permission_denied, read.unseen.front());
  CniCache cache;
  if (!is_the_machine) cache.blind_because = os::why_not_the_machines_view();
  for (core::CachedAttachment& attachment : read.attachments) {
    if (attachment.netns == Netns::unmounted) attachment.netns = Netns::gone;
    if (attachment.netns == Netns::gone && !cache.blind_because.empty()) attachment.netns = Netns::unclear;
  }
  cache.attachments.entries = std::move(read.attachments);
  cache.attachments.unreadable = std::move(read.unreadable);
  return cache;
}

}  // namespace croft::edge
