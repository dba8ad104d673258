// Gives each file of a corpus directory to a fuzz target once, in the order of names, without libFuzzer: so that the
// findings of the past are checked by every compiler and in every test run.
//
//   replay_<target> <directory>
//
// Exit code 0 when every file passed; 1 when the directory can't be read or holds no file, or a file can't be read. A
// target that finds a fault aborts; the last line printed names the file.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

/// The regular files right inside `directory`; none when it can't be read.
std::vector<fs::path> files_in(const fs::path& directory) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    if (it->is_regular_file()) files.push_back(it->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::optional<std::vector<std::uint8_t>> contents_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in.is_open() || in.bad()) return std::nullopt;
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s <corpus directory>\n", argv[0]);
    return 1;
  }
  const std::vector<fs::path> files = files_in(argv[1]);
  if (files.empty()) {
    std::fprintf(stderr, "no file to replay in %s\n", argv[1]);
    return 1;
  }
  for (const fs::path& file : files) {
    std::printf("%s\n", file.c_str());
    std::fflush(stdout);
    const auto bytes = contents_of(file);
    if (!bytes) {
      std::fprintf(stderr, "cannot read %s\n", file.c_str());
      return 1;
    }
    LLVMFuzzerTestOneInput(bytes->data(), bytes->size());
  }
  std::printf("%zu files replayed\n", files.size());
  return 0;
}
