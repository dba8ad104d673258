// Reads any bytes as a file of libcni's cache. Checked: nothing crashes; a file is an attachment or is named, and one
// that is named does not hide the other.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/assert.h"
#include "hostlocal/door/host_local_facts.h"
#include "os/scratch_directory.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const croft::os::ScratchDirectory kScratch;
  const std::string directory = kScratch.file("results");
  std::filesystem::create_directories(directory);
  std::ofstream(directory + "/net-c1-eth0", std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  const auto cache = croft::edge::read_cni_caches({kScratch.file(".")}, false);
  CROFT_ASSERT(cache && cache->attachments.entries.size() + cache->attachments.unreadable.size() <= 1);
  return 0;
}
