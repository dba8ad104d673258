// Any change of a sound index of a host-local directory. Input: places and bytes to write there, three bytes each (two
// say where), and what is left over cuts the file. Checked: an index that is taken for sound answers without crash, in
// bounded time, and takes changes; one that is not is no index.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/assert.h"
#include "base/clock.h"
#include "base/net/address.h"
#include "hostlocal/directory/index_file.h"
#include "os/directory.h"
#include "os/scratch_directory.h"

namespace hostlocal = croft::store::hostlocal;
using croft::net::Address;

namespace {

constexpr std::uint32_t kHash = 0x1234;
constexpr std::uint32_t kFirst = 0x0a000002;
constexpr std::uint32_t kCount = 40;

const croft::os::DirectoryStamp kStamp{{1, 2}, 3, 4};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const croft::os::ScratchDirectory kScratch;
  static const croft::ManualClock kClock;
  static const std::string kPath = hostlocal::index_path(kScratch.file("."), "net");
  static const std::string kSound = [] {
    std::vector<Address> taken;
    for (std::uint32_t i = 0; i < kCount; ++i) taken.push_back(Address::v4(kFirst + i));
    hostlocal::View view(taken);
    for (std::uint32_t i = 0; i < kCount; ++i) view.see_content(taken[i], kHash + i);
    CROFT_ASSERT(view.save(kScratch.file("."), "net", kStamp, kClock.now()));
    std::ifstream in(kPath, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }();
  std::string bytes = kSound;
  for (; size >= 3; data += 3, size -= 3) bytes[(data[0] * 256U + data[1]) % bytes.size()] = static_cast<char>(data[2]);
  if (size == 1) bytes.resize(bytes.size() * data[0] / 256);
  std::ofstream(kPath, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  const auto index = hostlocal::View::open(kPath, kStamp, kClock);
  if (bytes == kSound) CROFT_ASSERT(index != nullptr && index->reservation_count() == kCount);
  if (index == nullptr) return 0;
  static_cast<void>(index->next_free(Address::v4(kFirst), Address::v4(kFirst + 252)));
  static_cast<void>(index->with_hash(kHash));
  index->add(Address::v4(kFirst + 97), 7);
  index->remove(Address::v4(kFirst), kHash);
  if (!index->failed() && index->has_room())
    static_cast<void>(index->save(kScratch.file("."), "net", kStamp, kClock.now()));
  return 0;
}
