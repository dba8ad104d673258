#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "vpc/decide/advice.h"

namespace croft::app {

/// What was asked of a stock of cloud addresses in the last day, kept in a file for `croft vpc advise`
/// (docs/formats/vpc-demand.md). It is a help for choosing marks: what cannot be read begins anew, what cannot be
/// written is told and tried again. From one thread.
class DemandRecord {
 public:
  /// What the agent counts, as of now.
  struct Look {
    std::uint64_t adds = 0;                ///< ADDs that got an address since the agent began
    std::uint32_t waiting = 0;             ///< ADDs that wait because the stock is empty
    std::uint32_t free = 0;                ///< addresses
    std::uint64_t brought = 0;             ///< addresses from the cloud and from peers since the agent began
    std::chrono::nanoseconds last_fill{};  ///< how long the last that came took
  };

  /// `path` empty: nothing is read or written. `clock` must outlive it; `tell` takes a line for people.
  DemandRecord(std::string path, const Clock& clock, std::function<void(const std::string&)> tell);

  /// Goes on with what an earlier agent wrote, less what lies in the future.
  void load();
  /// To be called each second or so. A sample is made every kEvery, the file written every kWrittenEvery.
  void look(const Look& look);
  /// Writes what there is.
  void save();
  /// Makes a sample of what happened since the last one, and writes all: for an agent that ends.
  void end();

  [[nodiscard]] std::vector<core::warm::DemandSample> samples() const { return {samples_.begin(), samples_.end()}; }

  static constexpr std::chrono::seconds kEvery{10};
  static constexpr std::chrono::seconds kWrittenEvery{60};
  static constexpr std::chrono::hours kKept{24};

 private:
  void append(core::warm::DemandSample sample);
  void tell_once(const std::string& line);

  const std::string path_;
  const Clock& clock_;
  const std::function<void(const std::string&)> tell_;
  std::deque<core::warm::DemandSample> samples_;
  core::warm::DemandSample open_;  ///< what happened since the last one
  std::optional<Look> last_;
  std::chrono::nanoseconds last_at_{};  ///< since boot, as below
  std::chrono::nanoseconds next_sample_{};
  std::chrono::nanoseconds next_save_{};
  std::string told_;
};

}  // namespace croft::app
