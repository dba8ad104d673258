#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include <sqlite3.h>

namespace croft::store {

/// Whether the index of a log (`-shm`, https://www.sqlite.org/walformat.html §2) finds what is in the log. Its array of
/// page numbers and its table of hashes have no checksum: one flipped bit there, and the newest version of a page is
/// not found, and an older one is handed out. The log itself says which page each frame has; what was read of it is
/// kept, and compared with all of the index each time. Of a log of more than kFramesMax frames the first so many.
class IndexedFrames {
 public:
  static constexpr std::uint32_t kFramesMax = 4062;

  /// `memory`: the first region of the index. `salt` and `frames` are those of its header; so many are in the database
  /// file already (`copied`). False also when the log is another one meanwhile: the header tells.
  [[nodiscard]] bool are_found(const volatile void* memory, sqlite3_file& log, const std::array<std::uint8_t, 8>& salt,
                               std::uint32_t frames, std::uint32_t copied);

  /// The newest frame of a page among the first so many, from 1; nothing when there is none. After are_found().
  [[nodiscard]] std::optional<std::uint32_t> newest(std::uint32_t page, std::uint32_t frames) const;

 private:
  struct Frame {
    std::uint32_t page = 0;
    bool ends_commit = false;
  };
  [[nodiscard]] bool read_new(sqlite3_file& log, std::uint32_t frames);

  std::array<std::uint8_t, 8> salt_{};
  std::vector<Frame> frames_;
  std::map<std::uint32_t, std::uint32_t> newest_;  ///< by page
};

}  // namespace croft::store
