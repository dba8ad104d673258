#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/result.h"
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

/// The hash of what a reservation's content comes down to (wire::host_local::holder_key). Part of the index's format.
[[nodiscard]] std::uint32_t content_hash(std::string_view key);

/// `<dataDir>/.croft/<network>.index`.
[[nodiscard]] std::string index_path(const std::string& data_dir, const std::string& network);

/// The knowledge of a directory without reading it again: either everything was read just now, or the index says so. A
/// view says where to look; what it says of holders has to be read from the file before anything is done about it.
class View {
 public:
  /// These addresses are taken, by the names in a directory that were just read, each once. see_content() and
  /// see_nothing() say what is in their files.
  explicit View(const std::vector<net::Address>& taken);
  /// The index, when there is one that counts for this stamp; null otherwise, whatever is wrong with it. No more of it
  /// is read than is needed.
  [[nodiscard]] static std::unique_ptr<View> open(const std::string& path, const os::DirectoryStamp& stamp,
                                                  const Clock& clock);
  ~View();

  void see_content(const net::Address& address, std::uint32_t hash);
  /// A file that turned out to have nothing in it, or to be gone.
  void see_nothing(const net::Address& address);

  /// False when it says so from the index and not from the files.
  [[nodiscard]] bool is_first_hand() const;
  [[nodiscard]] std::uint64_t reservation_count() const;
  /// `first` and `last` of one family.
  [[nodiscard]] std::optional<net::Address> next_free(const net::Address& first, const net::Address& last) const;
  /// Addresses whose content has this hash.
  [[nodiscard]] std::vector<net::Address> with_hash(std::uint32_t hash);

  /// Follow what was done to the files.
  void add(const net::Address& address, std::uint32_t hash);
  void remove(const net::Address& address, std::uint32_t hash);

  /// True when an answer may be wrong, because the view contradicts itself or the files, or could not be read.
  [[nodiscard]] bool failed() const;
  /// Whether the changes fit; else the index is to be built anew.
  [[nodiscard]] bool has_room() const;

  /// Writes the changes to the index and makes it count for this stamp; of a directory that was read at `now`, a new
  /// index in place of the old one.
  [[nodiscard]] Result<void> save(const std::string& data_dir, const std::string& network,
                                  const os::DirectoryStamp& stamp, const Instant& now);

 private:
  struct Tables;
  explicit View(std::unique_ptr<Tables> tables);

  std::unique_ptr<Tables> tables_;
};

}  // namespace croft::store::hostlocal
