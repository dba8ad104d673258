#include "edge/cni_cache.h"

#include "os/files.h"
#include "wire/cni_cache.h"

namespace croft::edge {
namespace {

constexpr std::size_t kFilesMax = 1'000'000;
constexpr std::size_t kFileBytesMax = std::size_t{4} << 20;

}  // namespace

Result<CniCache> read_cni_cache(const std::string& cache_directory) {
  const std::string directory = cache_directory + "/results";
  TRY(const std::vector<std::string> names, os::list_directory(directory, kFilesMax));
  CniCache cache;
  for (const std::string& name : names) {
    const auto bytes = os::read_file(directory + "/" + name, kFileBytesMax);
    const auto owner = bytes ? wire::cni::read_cache_entry(*bytes) : Result<core::Owner>(fail(bytes.error()));
    if (owner) {
      cache.attachments.insert(*owner);
    } else if (owner.error().code != ErrorCode::not_found) {  // gone since it was listed
      cache.unreadable.push_back(directory + "/" + name + ": " + owner.error().message);
    }
  }
  return cache;
}

}  // namespace croft::edge
