#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/result.h"
#include "hostlocal/directory/index.h"
#include "hostlocal/directory/reservation_files.h"
#include "hostlocal/directory/scanned_view.h"
#include "hostlocal/directory/view.h"
#include "os/directory.h"

namespace croft::store::hostlocal {

/// The view of a directory while it is locked: where it comes from, up to when it is believed, and whether it becomes
/// an index for the next call. docs/adr/0005-host-local-index.md has the rules. `files` and `clock` must outlive the
/// object.
///
/// A writer of files calls expect_unchanged() right before, mark_changed() right behind, before the directory is
/// synced, and has the view follow; when in doubt about the files it calls forget().
class ViewUpkeep {
 public:
  /// A file of the directory that has an address for a name, and is not one of the names an index can stand for.
  struct OddFile {
    net::Address address;
    std::string name;
  };

  ViewUpkeep(std::string data_dir, std::string network, const ReservationFiles& files, const Clock& clock)
      : data_dir_(std::move(data_dir)), network_(std::move(network)), files_(files), clock_(clock) {}

  /// The index as the view, if there is one that counts and there is no view yet.
  void open_index();
  /// A view, never null, until forget(): of the index that counts, else of all files, which are read then.
  [[nodiscard]] Result<View*> need_view();
  /// The one there is; null when nothing had to be looked at yet.
  [[nodiscard]] View* view() { return index_ ? static_cast<View*>(index_.get()) : scanned_.get(); }
  /// The files that a view of all files leaves out.
  [[nodiscard]] const std::vector<OddFile>& odd_files() const { return odd_files_; }
  /// Why a file could not be read when all were read last.
  [[nodiscard]] const std::optional<Error>& unreadable() const { return unreadable_; }
  /// Somebody else has read all files, with that outcome.
  void set_unreadable(std::optional<Error> unreadable) { unreadable_ = std::move(unreadable); }
  /// The view is not believed any more, and no index again.
  void forget();

  /// The state that must still hold, else the view is not to become an index.
  void expect_unchanged();
  /// From here on every change by somebody else shows.
  void mark_changed();

  /// Brings the index up to date, while the lock is still held. Best effort: an index that is not there, or counts for
  /// another state, costs the next call a look at all files.
  void publish();

 private:
  [[nodiscard]] Result<void> read_all();
  [[nodiscard]] Result<std::unique_ptr<ScannedView>> read_once();
  void read_into(ScannedView& view, const net::Address& address, const char* name);

  [[nodiscard]] bool is_worth_an_index(const ScannedView& view) const;
  [[nodiscard]] Result<void> publish_changes(IndexView& view);
  [[nodiscard]] Result<void> publish_new(const ScannedView& view);
  [[nodiscard]] Result<os::DirectoryStamp> mark_directory();

  const std::string data_dir_;
  const std::string network_;
  const ReservationFiles& files_;
  const Clock& clock_;

  // At most one of these two. An index is not opened again once it was found wrong.
  std::unique_ptr<IndexView> index_;
  std::unique_ptr<ScannedView> scanned_;
  bool index_is_wrong_ = false;
  std::vector<OddFile> odd_files_;  ///< with scanned_
  std::optional<Error> unreadable_;
  /// The stamp that the view is of. It is the one the index counts for, or the one before and after all files were
  /// read, then the one we marked the directory with. Absent: what the view says may be behind, and no index is
  /// written.
  std::optional<os::DirectoryStamp> seen_at_;
  bool changed_ = false;
};

}  // namespace croft::store::hostlocal
