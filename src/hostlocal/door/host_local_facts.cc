#include "hostlocal/door/host_local_facts.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "cni/format/cache.h"
#include "os/directory.h"
#include "os/network_namespaces.h"

namespace croft::edge {
namespace {

using core::RuntimeAttachment;

constexpr std::size_t kCacheFilesMax = 1'000'000;
constexpr std::size_t kCacheFileBytesMax = std::size_t{4} << 20;

RuntimeAttachment::Netns netns_of(const std::string& path) {
  if (path.empty()) return RuntimeAttachment::Netns::unclear;
  switch (os::look_at_namespace_path(path)) {
    case os::NamespacePath::present:
      return RuntimeAttachment::Netns::present;
    case os::NamespacePath::gone:
      return RuntimeAttachment::Netns::gone;
    case os::NamespacePath::unclear:
    case os::NamespacePath::unseen:
      return RuntimeAttachment::Netns::unclear;
    case os::NamespacePath::unmounted:
      return RuntimeAttachment::Netns::unmounted;
  }
  return RuntimeAttachment::Netns::unclear;
}

void read_entry(const os::Directory& directory, const std::string& name, core::host_local::SignsOfLife& life) {
  const std::string path = directory.path_of(name);
  const auto bytes = os::read_file(path, kCacheFileBytesMax);
  auto entry = bytes ? wire::cni::read_whole_cache_entry(*bytes) : Result<wire::cni::CacheEntry>(fail(bytes.error()));
  if (!entry) {
    if (bytes || bytes.error().code != ErrorCode::not_found) {  // else gone since it was listed
      life.unreadable.push_back({name, fmt::format("{}: {}", path, entry.error().message)});
    }
    return;
  }
  // Asked last, so that what was read is not newer.
  const auto written = directory.modified(name.c_str());
  const auto netns = netns_of(entry->netns);
  life.attachments.push_back({std::move(entry->owner), netns, std::move(entry->netns), std::move(entry->pod),
                              std::move(entry->addresses), path, written ? written->value_or(WallTime()) : WallTime()});
}

}  // namespace

Result<void> read_cached_attachments(const std::string& directory, core::host_local::SignsOfLife& life) {
  const std::string results = directory + "/results";
  const auto names = os::list_directory(results, kCacheFilesMax);
  if (!names && names.error().code == ErrorCode::not_found) return fail(names.error());
  const auto opened = os::Directory::open(results);
  if (!names || !opened) {
    life.unseen.push_back(names ? opened.error().message : names.error().message);
    return {};
  }
  for (const std::string& name : *names) read_entry(*opened, name, life);
  return {};
}

void add_namespace_addresses(bool own_processes_are_all, core::host_local::SignsOfLife& life) {
  const os::NamespaceSurvey survey = os::addresses_of_all_namespaces(own_processes_are_all);
  life.namespaces = survey.namespaces.size();
  life.unseen.insert(life.unseen.end(), survey.unseen.begin(), survey.unseen.end());
  for (const os::NetworkNamespace& found : survey.namespaces) {
    for (const os::InterfaceAddress& configured : found.addresses) {
      life.configured.emplace(configured.address.unmapped(),
                              fmt::format("{} in {}", configured.interface_name, found.where));
    }
  }
}

namespace {

constexpr std::size_t kFilesMax = 1'000'000;
constexpr std::size_t kFileBytesMax = std::size_t{1} << 20;
constexpr std::size_t kUnusableMax = 8;

using Decoded = Result<std::optional<wire::cni::HostLocalConfig>>;

[[nodiscard]] Decoded decode_cached(const std::string& bytes, const std::string& network) {
  const auto entry = wire::cni::read_whole_cache_entry(bytes);
  if (!entry || entry->owner.network != network || entry->config.empty()) {
    return std::optional<wire::cni::HostLocalConfig>();
  }
  return wire::cni::find_host_local_config(entry->config, network, entry->capability_args);
}

[[nodiscard]] Decoded decode_plain(const std::string& bytes, const std::string& network) {
  return wire::cni::find_host_local_config(bytes, network);
}

/// Files of a directory whose names begin so, newest first; none when it can't be listed.
std::vector<std::string> newest_first(const std::string& path, const std::string& start) {
  const auto directory = os::Directory::open(path);
  const auto names = os::list_directory(path, kFilesMax);
  if (!directory || !names) return {};
  std::vector<std::pair<WallTime, std::string>> dated;
  for (const std::string& name : *names) {
    if (!name.starts_with(start)) continue;
    const auto written = directory->modified(name.c_str());
    if (written && *written) dated.emplace_back(**written, path + "/" + name);
  }
  std::sort(dated.rbegin(), dated.rend());
  std::vector<std::string> paths;
  for (auto& [written, file] : dated) paths.push_back(std::move(file));
  return paths;
}

/// As a runtime reads its directory: in the order of names.
std::vector<std::string> configurations_in(const std::string& path) {
  std::vector<std::string> paths;
  const auto names = os::list_directory(path, kFilesMax);
  if (!names) return paths;
  for (const std::string& name : *names) {
    if (name.ends_with(".conf") || name.ends_with(".conflist") || name.ends_with(".json")) {
      paths.push_back(path + "/" + name);
    }
  }
  return paths;
}

/// Takes the first file that serves; true when there was one.
bool take_first(const std::vector<std::string>& paths, const std::string& network,
                Decoded (*decode)(const std::string&, const std::string&), FoundSets& found) {
  for (const std::string& path : paths) {
    const auto bytes = os::read_file(path, kFileBytesMax);
    if (!bytes) continue;
    auto config = decode(*bytes, network);
    if (!config && found.unusable.size() < kUnusableMax) {
      found.unusable.push_back(path + ": " + config.error().message);
    }
    if (!config || !*config) continue;
    found.sets = std::move((*config)->sets);
    found.source = path;
    return true;
  }
  return false;
}

[[nodiscard]] Result<FoundSets> read_given(const std::string& path) {
  TRY(const std::string bytes, os::read_file(path, kFileBytesMax));
  auto config = wire::cni::find_host_local_config(bytes, "");
  if (!config) return fail(config.error().in(path));
  if (!*config) {
    return fail(ErrorCode::invalid_argument, path + " has no plugin whose ipam.type is host-local; name another file");
  }
  return FoundSets{std::move((*config)->sets), path, {}};
}

}  // namespace

Result<FoundSets> find_range_sets(const SetSources& sources) {
  if (!sources.config_file.empty()) return read_given(sources.config_file);
  FoundSets found;
  for (const std::string& cache : sources.cache_directories) {
    if (take_first(newest_first(cache + "/results", sources.network + "-"), sources.network, decode_cached, found))
      return found;
  }
  for (const std::string& cache : sources.cache_directories) {
    if (take_first(newest_first(cache + "/flannel", ""), sources.network, decode_plain, found)) return found;
  }
  take_first(configurations_in(sources.config_directory), sources.network, decode_plain, found);
  return found;
}

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
  using Netns = RuntimeAttachment::Netns;
  for (RuntimeAttachment& attachment : read.attachments) {
    if (attachment.netns == Netns::unmounted) attachment.netns = Netns::gone;
    if (attachment.netns == Netns::gone && !cache.blind_because.empty()) attachment.netns = Netns::unclear;
  }
  cache.attachments.entries = std::move(read.attachments);
  cache.attachments.unreadable = std::move(read.unreadable);
  return cache;
}

}  // namespace croft::edge
