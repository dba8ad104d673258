#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/result.h"
#include "hostlocal/decide/assign.h"
#include "register/owner.h"

// Compares a host-local directory with what lives on this machine. Pure: facts in, findings out. The rule of a proven
// leak is on Finding::proven; when in doubt, an address is kept.

namespace croft::core::host_local {

/// The life on this machine, from two sources that know nothing of each other.
struct SignsOfLife {
  std::map<net::Address, std::string> configured;  ///< where: "eth0 in /run/netns/a"
  std::size_t namespaces = 0;                      ///< that were looked at
  std::vector<std::string> unseen;                 ///< why there may be more than was seen; then nothing is proven
  std::vector<RuntimeAttachment> attachments;
  std::vector<UnreadableEntry> unreadable;
};

/// A network's directory as it was read.
struct Directory {
  struct Cursor {
    std::size_t set = 0;
    std::optional<net::Address> address;  ///< absent when the file is no address
  };
  std::vector<Reservation> reservations;  ///< by address
  std::vector<Cursor> cursors;            ///< by set
  std::vector<std::string> foreign;       ///< names of everything else but `lock` and Croft's drafts
  std::optional<Error> unreadable;        ///< why the first one of the files that can't be read can't be
};

struct Finding {
  /// Stable identifiers, for scripts.
  enum class Kind : std::uint8_t {
    leak,             ///< reserved, and its holder is proven to be gone
    empty_file,       ///< says nobody; the reference would never give it out again
    unreadable_file,  ///< has an address for a name and is no file that can be read
    undecided,        ///< its holder seems to be gone, but not all could be seen: kept
    not_all_seen,     ///< not everything of this machine could be looked at: nothing else is proven, nor disproven
  };
  Kind kind;
  std::string subject;                ///< the name of the file
  std::vector<std::string> evidence;  ///< a sentence each
  std::string remedy;                 ///< what to do
  /// The reservation that it is about; absent for what concerns the machine.
  std::optional<Reservation> reservation;
  /// Only leaks and empty files. All of these hold: all namespaces could be looked at and neither the address nor
  /// another one of its container is configured in any; no entry of the cache about the container or with the address
  /// has a namespace or could have one (without a path, or with one in /proc, an entry of before this boot can't); the
  /// file has not changed for longer than the grace period.
  bool proven = false;
  bool before_boot = false;  ///< proven, and written before this boot: its holder cannot live
};
[[nodiscard]] std::string_view name_of(Finding::Kind kind);

struct Audit {
  std::string network;
  const Directory& directory;
  const SignsOfLife& life;
  Instant now;
  std::chrono::seconds grace{60};
  bool in_container = false;  ///< it was said that this container is the node
};

/// In the order of the directory's reservations.
[[nodiscard]] std::vector<Finding> audit_host_local(const Audit& audit);

/// The attachments of one network, by who they are.
using AttachmentsByHolder = std::map<Holder, const RuntimeAttachment*>;
[[nodiscard]] AttachmentsByHolder attachments_of(const std::vector<RuntimeAttachment>& attachments,
                                                 const std::string& network);
/// nullptr when there is none. A holder without interface has any attachment of the container.
[[nodiscard]] const RuntimeAttachment* find_attachment(const AttachmentsByHolder& attachments, const Holder& holder);

/// The findings, as of the second look, that both looks proved about a reservation which did not change in between.
[[nodiscard]] std::vector<Finding> proven_by_both(const std::vector<Finding>& first,
                                                  const std::vector<Finding>& second);

/// The brake: refused_for_safety when more than `share` of all reservations would go. Reservations from before this
/// boot do not count.
[[nodiscard]] Result<void> check_share(const std::vector<Finding>& proven, std::size_t reservations, double share);

/// "3h12m", "45s", "12d4h": the two largest units.
[[nodiscard]] std::string age_text(std::chrono::nanoseconds age);

}  // namespace croft::core::host_local
