#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace croft::e2e {

/// What logged_disk.py wrote: everything that happened to a disk, in order.
class DiskLog {
 public:
  struct Event {
    enum class Kind : std::uint8_t { write, zero, flush } kind = Kind::write;
    std::uint64_t offset = 0;
    std::uint32_t length = 0;
    std::string_view data;  ///< of a write
    std::uint64_t end = 0;  ///< length of the log behind this event
  };

  /// Leaves out an event at the end that is not whole. Exits with a message when the file can't be read.
  explicit DiskLog(const std::string& path);

  [[nodiscard]] const std::vector<Event>& events() const { return events_; }
  /// The number of events that the first `bytes` of the log hold.
  [[nodiscard]] std::size_t events_within(std::uint64_t bytes) const;

 private:
  std::string bytes_;
  std::vector<Event> events_;
};

/// What may be on a disk after its power was cut behind the first `cut` events: all that was written before the last
/// flush, and of what was written later any sectors of 4096 bytes.
class CutImage {
 public:
  CutImage(const DiskLog& log, std::size_t disk_bytes, std::size_t cut, std::mt19937_64& random);

  [[nodiscard]] const std::string& bytes() const { return bytes_; }
  [[nodiscard]] std::uint64_t sectors_kept() const { return sectors_kept_; }
  [[nodiscard]] std::uint64_t sectors_lost() const { return sectors_lost_; }

 private:
  void apply(const DiskLog::Event& event);
  void apply_some_sectors(const DiskLog::Event& event, double share, std::mt19937_64& random);

  std::string bytes_;
  std::uint64_t sectors_kept_ = 0;
  std::uint64_t sectors_lost_ = 0;
};

}  // namespace croft::e2e
