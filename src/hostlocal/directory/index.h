#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "hostlocal/directory/view.h"
#include "os/directory.h"

// The index of a directory's reservations: a file `<dataDir>/.croft/<network>.index` that spares reading them all on
// each call. It is only a hint (docs/adr/0005-host-local-index.md says why it cannot lie): it counts for one state of
// the directory, told by the directory's stamp, in one boot of the machine. Its loss costs one rebuild.

namespace croft::store::hostlocal {

/// No index is made for a directory with fewer reservations: it is read on each call.
inline constexpr std::uint64_t kIndexedCountMin = 33;
/// An index is not used longer than this without a look at all files. It bounds how long an invisible change, such as a
/// reservation edited in place, stays unseen.
inline constexpr std::chrono::nanoseconds kIndexAgeMax = std::chrono::hours{1};

/// `<dataDir>/.croft/<network>.index`.
[[nodiscard]] std::string index_path(const std::string& data_dir, const std::string& network);

/// A view that reads from the index no more than it needs, and keeps changes in memory until they are published.
class IndexView : public View {
 public:
  /// The index, when there is one that counts for this stamp; null otherwise, whatever is wrong with it.
  [[nodiscard]] static std::unique_ptr<IndexView> open(const std::string& path, const os::DirectoryStamp& stamp,
                                                       const Clock& clock);

  [[nodiscard]] bool is_first_hand() const override { return false; }
  /// Whether the changes fit; else the index is to be built anew.
  [[nodiscard]] virtual bool has_room() const = 0;
  /// Writes the changes, but not yet that they count.
  [[nodiscard]] virtual Result<void> write_changes() = 0;
  /// Makes the index count for this stamp.
  [[nodiscard]] virtual Result<void> confirm(const os::DirectoryStamp& stamp) = 0;
};

/// Writes a new index for a directory that was read whole, in place of the old one.
[[nodiscard]] Result<void> write_index(const std::string& data_dir, const std::string& network, const ScannedView& view,
                                       const os::DirectoryStamp& stamp, const Instant& now);

}  // namespace croft::store::hostlocal
