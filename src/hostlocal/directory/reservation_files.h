#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "hostlocal/reservations.h"
#include "os/directory.h"

namespace croft::store::hostlocal {

/// Whether a file has nothing in it: what a crash left, or what a plugin of the old kind is about to write.
[[nodiscard]] bool is_empty_file(const os::SmallFile& file);
/// The holder of its address by a file's content. A text that is no CNI container ID is somebody's note: it names
/// nobody.
[[nodiscard]] std::optional<Holder> holder_of(const os::SmallFile& file);

/// The files in a network's directory: one for each address that is held, with its name, and one for each set's cursor.
/// They are the truth. Remembers nothing of them. `clock` must outlive the object. All errors as os::path_error.
class ReservationFiles {
 public:
  ReservationFiles(os::Directory directory, const Clock& clock) : directory_(std::move(directory)), clock_(clock) {}

  [[nodiscard]] const os::Directory& directory() const { return directory_; }

  // ---- reading

  /// Nothing when there is none.
  [[nodiscard]] Result<std::optional<os::SmallFile>> read(const std::string& name) const;
  /// The same, and nothing is read through a link: for looks at all that is there.
  [[nodiscard]] Result<std::optional<os::SmallFile>> read_own(const std::string& name) const;
  /// The reservation that a file with this content is.
  [[nodiscard]] Result<Reservation> reservation_of(const net::Address& address, const std::string& name,
                                                   const os::SmallFile& file) const;
  /// Whether an empty file is what a crash left, and nobody's.
  [[nodiscard]] bool is_takeable(const std::string& name, const os::SmallFile& file) const;
  [[nodiscard]] Result<std::optional<net::Address>> cursor(std::size_t set) const;

  // ---- writing; durable once the directory is synced

  /// All that can fail for want of space, before anything has a name: the content, and the cursor. `number`: a draft's
  /// own, of those that are there at once.
  [[nodiscard]] Result<os::DraftFile> prepare(const NewReservation& wanted, const std::string& content,
                                              std::size_t number) const;
  /// Gives a draft its address for a name, unless somebody has that.
  [[nodiscard]] Result<Reserved> place(const os::DraftFile& draft, const NewReservation& wanted) const;
  [[nodiscard]] Result<void> move_cursor(const NewReservation& to) const;

 private:
  os::Directory directory_;
  const Clock& clock_;
};

}  // namespace croft::store::hostlocal
