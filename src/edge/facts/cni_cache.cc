#include "edge/facts/cni_cache.h"

#include <utility>

#include "edge/facts/host_local_facts.h"
#include "os/network_namespaces.h"

namespace croft::edge {

using Netns = core::CachedAttachment::Netns;

Result<CniCache> read_cni_cache(const std::string& cache_directory, bool is_the_machine) {
  core::host_local::SignsOfLife read;
  TRY_VOID(read_cached_attachments(cache_directory, read));
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
