#include "floors.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

namespace croft::bench {
namespace {

constexpr int kFloorRounds = 200;

}  // namespace

Milliseconds disk_sync(const std::filesystem::path& directory) {
  const int fd = ::open((directory / "sync").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  const std::string page(4096, 'x');
  std::vector<Milliseconds> samples;
  for (int i = 0; i < kFloorRounds; ++i) {
    if (::pwrite(fd, page.data(), page.size(), 0) != static_cast<ssize_t>(page.size())) std::abort();
    samples.push_back(time_of([&] {
      if (::fdatasync(fd) != 0) std::abort();
    }));
  }
  ::close(fd);
  return median(samples);
}

Milliseconds empty_process(const std::string& bin) {
  const Call empty{{bin + "/../bench/empty_process"}, {}, ""};
  std::vector<Milliseconds> samples;
  for (int i = 0; i < kFloorRounds; ++i) {
    samples.push_back(time_of([&] {
      if (run(empty) != 0) std::abort();
    }));
  }
  return median(samples);
}

}  // namespace croft::bench
