// Cuts the power of a logged disk at a random moment and writes what may be on the disk then.
//
// cut_image DISK_LOG DISK_BYTES FROM SEED IMAGE
//
// FROM: no cut within the first FROM bytes of the log. Prints how long the log was at the next event behind the cut (or
// longer than it ever was), the number of the event, and how many sectors behind the last flush are on the disk and
// lost: what was noted with fewer bytes of log happened before the cut.

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "disk_log.h"

int main(int argc, char** argv) {
  using namespace croft::e2e;
  if (argc != 6) {
    std::fprintf(stderr, "usage: cut_image DISK_LOG DISK_BYTES FROM SEED IMAGE\n");
    return 2;
  }
  const auto number = [&](int i) { return std::strtoull(argv[i], nullptr, 10); };
  const DiskLog log(argv[1]);
  const auto& events = log.events();
  std::mt19937_64 random(number(4));
  const std::size_t cut =
      std::uniform_int_distribution<std::size_t>(log.events_within(number(3)), events.size())(random);
  const CutImage image(log, number(2), cut, random);
  std::ofstream file(argv[5], std::ios::binary);
  file << image.bytes();
  file.close();
  if (!file) return 2;
  const std::uint64_t next = cut < events.size() ? events[cut].end : UINT64_MAX;
  std::printf("%llu %zu %llu %llu\n", static_cast<unsigned long long>(next), cut,
              static_cast<unsigned long long>(image.sectors_kept()),
              static_cast<unsigned long long>(image.sectors_lost()));
}
