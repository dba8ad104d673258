#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/ranges.h"
#include "base/result.h"
#include "hostlocal/decide/assign.h"

// The contract of host-local's reservations: one directory a network, shared with any plugin that keeps the rules of
// the reference (docs/notes/host-local.md#files). It is not a Store: no revisions, no conditional commits; one
// lock, and files.

namespace croft::store {

using core::host_local::Holder;
using core::host_local::Reservation;

/// How sure a "nobody" has to be. A reservation that is found is always read from its file.
enum class Care : std::uint8_t {
  quick,     ///< the index is believed, and a file that can't be read is somebody else's
  thorough,  ///< in a directory of ordinary size (kThoroughCountMax) every file is read before "nobody" is said
};
inline constexpr std::size_t kThoroughCountMax = 256;

/// An address to reserve, and the set whose cursor goes to it.
struct NewReservation {
  net::Address address;
  std::size_t set;
};

/// The outcome of reserving.
enum class Reserved : std::uint8_t {
  done,   ///< all of them, on disk
  taken,  ///< one of them was taken by somebody who did not ask for the lock; nothing was reserved: decide again
};

/// The reservations of one network on this node, locked: while it lives, nobody else who keeps the rules changes them.
/// One thread. Errors of all functions: as the operating system gives them, the message in the reference's form
/// (`open <path>: no such file or directory`).
class Reservations : public core::host_local::Taken {
 public:
  // ---- reading; empty files of a crashed plugin count as free

  /// The reservations of this very holder, by address. Each was read from its file just now. Those that an old plugin
  /// recorded are of the holder without an interface.
  [[nodiscard]] virtual Result<std::vector<Reservation>> held_by(const Holder& holder, Care care) = 0;
  /// The holder of one address: nullopt when it is free.
  [[nodiscard]] virtual Result<std::optional<Reservation>> look_up(const net::Address& address) = 0;
  /// All reservations, by address: every file is read. Other files are passed over; one that can't be read, and a link,
  /// which is not followed, has no holder.
  [[nodiscard]] virtual Result<std::vector<Reservation>> list() = 0;
  /// Why a file could not be read when all were read last; nothing when they could, or when the index answered.
  [[nodiscard]] virtual std::optional<Error> unreadable() const = 0;

  // ---- writing

  /// Reserves all of them for a holder and moves their cursors, or reserves none. `done` means that it survives a power
  /// cut. An error at one of them begins as in the reference, `failed to allocate for range <set>: `. After an error or
  /// `taken` nothing is reserved, unless the error says otherwise; cursors may have moved, and what was known is
  /// forgotten: the next question reads the files again.
  [[nodiscard]] virtual Result<Reserved> reserve(const Holder& holder, std::span<const NewReservation> wanted) = 0;
  /// Moves cursors without reserving: what a refused ADD leaves behind in the reference.
  [[nodiscard]] virtual Result<void> move_cursors(std::span<const NewReservation> to) = 0;
  /// Removes the files of these reservations as they were read, on disk before it returns; one whose file has changed
  /// since, or is gone, is passed over. All are tried; the first error is returned.
  [[nodiscard]] virtual Result<void> release(std::span<const Reservation> reservations) = 0;
  /// Makes sure that earlier removals are on disk.
  [[nodiscard]] virtual Result<void> settle() = 0;
};

}  // namespace croft::store
