#include "hostlocal/door/host_local_facts.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/net/echo.h"
#include "cni/format/cache.h"
#include "hostlocal/format/files.h"
#include "hostlocal/reservations.h"
#include "os/directory.h"
#include "os/network_namespaces.h"

namespace croft::edge {
namespace {

namespace files = wire::host_local;
using core::CachedAttachment;
using HostLocalDirectory = core::host_local::Directory;

constexpr std::size_t kContentBytesMax = std::size_t{132} << 10;
constexpr std::size_t kCursorBytesMax = 256;
constexpr std::size_t kCacheFilesMax = 1'000'000;
constexpr std::size_t kCacheFileBytesMax = std::size_t{4} << 20;
constexpr std::string_view kTemporaryStart = ".croft";
/// The share of a thread, below which it is not worth one; and how many share a directory, as they meet in its kernel
/// lock.
constexpr std::size_t kNamesPerThreadMin = 4096;
constexpr std::size_t kThreadsMax = 4;

/// Reads names of the directory into their places.
class DirectoryReader {
 public:
  explicit DirectoryReader(const os::Directory& directory) : directory_(directory) {}

  [[nodiscard]] Result<void> see_all(std::span<const std::string> names) {
    for (const std::string& name : names) TRY_VOID(see(name));
    return {};
  }

  void take_over(DirectoryReader&& other) {
    const auto append = [](auto& to, auto& from) {
      to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
    };
    append(found_.reservations, other.found_.reservations);
    append(found_.cursors, other.found_.cursors);
    append(found_.foreign, other.found_.foreign);
    append(found_.leftovers, other.found_.leftovers);
  }

  HostLocalDirectory done() {
    std::sort(found_.reservations.begin(), found_.reservations.end(),
              [](const auto& a, const auto& b) { return std::tie(a.address, a.file) < std::tie(b.address, b.file); });
    std::sort(found_.cursors.begin(), found_.cursors.end(), [](const auto& a, const auto& b) { return a.set < b.set; });
    return std::move(found_);
  }

 private:
  [[nodiscard]] Result<void> see(const std::string& name) {
    if (name == files::kLockFile) return {};
    if (const auto address = files::address_of_file(name)) return see_reservation(*address, name);
    if (const auto set = files::set_of_cursor_file(name)) return see_cursor(*set, name);
    if (!name.starts_with(kTemporaryStart)) {
      found_.foreign.push_back(name);
      return {};
    }
    TRY(const auto written, directory_.modified(name.c_str()));
    if (written) found_.leftovers.push_back({name, *written});
    return {};
  }

  [[nodiscard]] Result<void> see_reservation(const net::Address& address, const std::string& name) {
    const auto dated = directory_.read_dated(name.c_str(), kContentBytesMax);
    if (!dated && dated.error().code == ErrorCode::permission_denied) return fail(dated.error());
    if (dated && !*dated) return {};
    std::optional<WallTime> written = dated ? (*dated)->modified : std::nullopt;
    if (!written) {
      TRY(written, directory_.modified(name.c_str()));
    }
    if (!written) return {};
    store::Reservation reservation{address, std::nullopt, *written, false, name};
    if (const os::SmallFile* const file = dated ? &(*dated)->file : nullptr; file && file->regular && !file->cut) {
      reservation.holder = files::parse_holder(file->content);
      reservation.empty = file->content.empty();
    }
    found_.reservations.push_back(std::move(reservation));
    return {};
  }

  [[nodiscard]] Result<void> see_cursor(std::size_t set, const std::string& name) {
    TRY(const auto file, directory_.read(name.c_str(), kCursorBytesMax));
    if (!file) return {};
    const std::string text = file->regular ? net::echo(file->content) : std::string("no file");
    found_.cursors.push_back({set, file->regular ? files::parse_cursor(file->content) : std::nullopt,
                              file->regular && file->content.empty() ? std::string() : text});
    return {};
  }

  const os::Directory& directory_;
  HostLocalDirectory found_;
};

/// Almost all of the time is the kernel's, for opening and closing files, which processors do side by side.
[[nodiscard]] Result<HostLocalDirectory> read_by_threads(const os::Directory& directory,
                                                         std::span<const std::string> names) {
  struct Share {
    DirectoryReader reader;
    std::span<const std::string> names;
    Result<void> seen;
    void read() { seen = reader.see_all(names); }
  };
  const std::size_t count = std::clamp<std::size_t>(
      std::min<std::size_t>(names.size() / kNamesPerThreadMin, std::thread::hardware_concurrency()), 1, kThreadsMax);
  std::vector<Share> shares;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t begin = names.size() * i / count;
    shares.push_back({DirectoryReader(directory), names.subspan(begin, names.size() * (i + 1) / count - begin), {}});
  }
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < count; ++i) {
      try {
        threads.emplace_back(&Share::read, &shares[i]);
      } catch (const std::system_error&) {  // no more threads for this user
        shares[i].read();
      }
    }
    shares.front().read();
  }
  DirectoryReader& all = shares.front().reader;
  for (Share& share : shares) {
    if (!share.seen) return fail(share.seen.error());
    if (&share != &shares.front()) all.take_over(std::move(share.reader));
  }
  return all.done();
}

CachedAttachment::Netns netns_of(const std::string& path) {
  if (path.empty()) return CachedAttachment::Netns::unclear;
  switch (os::look_at_namespace_path(path)) {
    case os::NamespacePath::present:
      return CachedAttachment::Netns::present;
    case os::NamespacePath::gone:
      return CachedAttachment::Netns::gone;
    case os::NamespacePath::unclear:
    case os::NamespacePath::unseen:
      return CachedAttachment::Netns::unclear;
    case os::NamespacePath::unmounted:
      return CachedAttachment::Netns::unmounted;
  }
  return CachedAttachment::Netns::unclear;
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

Result<HostLocalDirectory> read_host_local_directory(const std::string& path) {
  TRY(const os::Directory directory, os::Directory::open(path));
  std::vector<std::string> names;
  TRY_VOID(directory.for_each_name([&](const char* name) {
    names.emplace_back(name);
    return names.size() <= kHostLocalFilesMax;
  }));
  if (names.size() > kHostLocalFilesMax) {
    return fail(ErrorCode::invalid_argument, fmt::format("{} has more than {} files", path, kHostLocalFilesMax));
  }
  return read_by_threads(directory, names);
}

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

void look_at_namespaces(bool own_processes_are_all, core::host_local::SignsOfLife& life) {
  const os::NamespaceSurvey survey = os::survey_network_namespaces(own_processes_are_all);
  life.namespaces = survey.namespaces.size();
  life.unseen.insert(life.unseen.end(), survey.unseen.begin(), survey.unseen.end());
  for (const os::NetworkNamespace& found : survey.namespaces) {
    for (const os::InterfaceAddress& configured : found.addresses) {
      const auto address = net::parse_address(configured.address);
      if (!address) continue;
      life.configured.emplace(address->unmapped(), fmt::format("{} in {}", configured.interface_name, found.where));
    }
  }
}

}  // namespace croft::edge
