#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/prefix.h"
#include "base/result.h"
#include "base/shared_map.h"
#include "base/space/free_ordinals.h"
#include "base/strong.h"
#include "register/foreign_rest.h"
#include "register/node.h"
#include "register/owner.h"

namespace croft::core {

/// Guards an ordinal against a late release: grows with every write of a block and never repeats for one block CIDR.
using SequenceNumber = Strong<struct SequenceNumberTag, std::uint64_t>;

/// A moment on the clock of one boot of one machine, which nobody can set.
struct ClockMark {
  BootId boot;
  std::chrono::nanoseconds since_boot{};
  friend auto operator<=>(const ClockMark&, const ClockMark&) = default;
};

/// Calico's schema keeps sequence numbers in a signed 64-bit integer. A block past this one is not written any more.
inline constexpr std::uint64_t kSequenceMax = (std::uint64_t{1} << 63) - (std::uint64_t{1} << 20);
/// The same for a high-water mark, above which a block has to have room to count.
inline constexpr std::uint64_t kHighWaterMarkMax = kSequenceMax - (std::uint64_t{1} << 20);

/// When and by whom a cooling address was released.
struct Cooling {
  /// The clocks at release. Read back from a foreign format only `wall` is known and `boot` is all zero.
  Instant released_at;
  /// The last holder, for people; not a claim to the address. Empty when unknown.
  std::string previous_handle;
  SharedMap<std::string, std::string> previous_secondary;
  /// Recorded in Calico's own way (`releasedAt`, docs/notes/calico-ipam.md#freeing), which only a Calico that knows
  /// cool-down understands: its cooldown is the configuration's, not the pool's. Means nothing in stores of Croft's own
  /// format.
  bool in_calicos_way = false;
  /// When other machines, or later boots of the same, first wrote the block while the address cooled: from there each
  /// counts by its own clock (cooldown_ended). One a boot, ascending, at most kClockMarksMax.
  std::vector<ClockMark> seen{};
  /// The cooldown that held at the release, up to kCooldownMax: the address rests no shorter, whatever pool it is in
  /// later. 0: not recorded, as in Calico's way and by older versions.
  std::chrono::seconds cooldown{0};

  friend bool operator==(const Cooling&, const Cooling&) = default;
};

inline constexpr std::size_t kClockMarksMax = 16;
/// By how much the wall clocks of two machines may differ without a cooldown becoming shorter.
inline constexpr std::chrono::hours kClockSkewMax{1};
/// The cooldown of a pool or configuration that cannot be read: longer than anybody waits for it to be mended.
inline constexpr std::chrono::seconds kUnknownCooldown = std::chrono::hours{24 * 365 * 50};

/// How long released addresses rest: Croft's cooldown, a property of the pool, and Calico's, of the configuration.
struct Cooldowns {
  std::chrono::seconds own, calicos;
  // NOLINTNEXTLINE(google-explicit-constructor): a pool without Calico has only its own
  Cooldowns(std::chrono::seconds own_one = {}, std::chrono::seconds calicos_one = {})
      : own(own_one), calicos(calicos_one) {}
  /// The one by which an address released now rests; the longer, so that no promise is broken.
  [[nodiscard]] bool calicos_way() const { return calicos.count() > 0 && calicos >= own; }
  /// How long this address rests. One second more in Calico's way, which records no fractions. There too the pool's
  /// counts when it is longer by now: that of the configuration may be taken back, and is recorded nowhere.
  [[nodiscard]] std::chrono::seconds of(const Cooling& cooling) const {
    if (!cooling.in_calicos_way) return std::max(own, cooling.cooldown);
    const std::chrono::seconds longer = std::max(own, calicos);
    return longer.count() > 0 ? longer + std::chrono::seconds{1} : longer;
  }
};

/// The holder of one or several ordinals, as the block knows it (docs/notes/calico-ipam.md#attributes). Either somebody
/// holds (handle and owner maps) or the address cools (`cooling` set, the others empty).
struct Attribute {
  std::optional<std::string> handle_id;
  /// Owner metadata: node, timestamp, pod, namespace, type, ifname …
  SharedMap<std::string, std::string> secondary;
  /// The second owner during a live migration of a virtual machine.
  SharedMap<std::string, std::string> alternate_owner;
  std::optional<Cooling> cooling;

  friend bool operator==(const Attribute&, const Attribute&) = default;
};

/// A slice of a pool, the unit of commit. Carries every field of docs/notes/calico-ipam.md#block, so that Calico's
/// formats lose nothing. Never edited in place: the functions below return the changed block.
struct Block {
  net::Prefix cidr;
  /// The owner whose affinity this is; absent: nobody's.
  std::optional<AffinityOwner> affinity;
  /// Set when a claim created the block, cleared when the affinity is removed.
  std::optional<WallTime> affinity_claim_time;
  /// Per ordinal the index into `attributes`, or nothing when the ordinal is free. Length: the block's size.
  std::vector<std::optional<std::uint32_t>> allocations;
  /// The free ordinals in hand-out order: from the head, back to the tail.
  space::OrderedFreeList unallocated;
  std::vector<Attribute> attributes;
  SequenceNumber sequence_number;
  /// Ordinal -> the block's sequence number as it was before the write that allocated (or cooled) the ordinal.
  SharedMap<std::uint32_t, SequenceNumber> sequence_number_for_allocation;
  /// Soft delete of the Kubernetes datastore; readers treat the block as absent.
  bool deleted = false;
  ForeignRestPtr rest{};

  friend bool operator==(const Block&, const Block&) = default;
};

/// Tells whether an address is kept out of automatic use.
using IsReserved = std::function<bool(const net::Address&)>;

/// The state of one address in a block.
enum class AddressState : std::uint8_t { free, held, cooling, reserved };
[[nodiscard]] std::string_view name_of(AddressState state);

/// A block with more addresses than 2 to the power of this is not read; its CIDR is taken all the same
/// (block_cidr_of). No pool has blocks of more than 4096 (make_pool), but those of another program may: Calico lets the
/// `blockSize` of a pool change over blocks that are there. 65,536 empty ones are half of what an etcd takes.
inline constexpr int kBlockHostBitsMax = 16;
inline constexpr std::uint32_t kBlockSizeMax = std::uint32_t{1} << kBlockHostBitsMax;

/// Number of addresses of a block of this prefix: 1 to kBlockSizeMax.
[[nodiscard]] std::uint32_t block_size(const net::Prefix& cidr);

/// A new block, all free in order 0..n-1 (docs/notes/calico-ipam.md#new-block). Its sequence number is the later of
/// the wall clock in nanoseconds and one more than `high_water_mark`, so that a block made again never repeats one,
/// also after the clock was set back. The mark is at most kHighWaterMarkMax, or the number of a block that was checked.
[[nodiscard]] Block new_block(const net::Prefix& cidr, std::optional<AffinityOwner> owner, const Instant& now,
                              std::optional<SequenceNumber> high_water_mark);

/// Finds what contradicts itself in a block that was read: lengths, indexes, ordinals both free and taken, attributes
/// nobody refers to. Error: corrupt, naming block and ordinal. Every block read passes through here first.
[[nodiscard]] Result<void> check_block(const Block& block);

/// The same, and whether the block can still be written: its sequence number has to have room to grow. Error: corrupt.
[[nodiscard]] Result<void> check_writable(const Block& block);

/// Frees each ordinal whose cooldown has ended at `now`: to the tail of the free list, longest released first, sequence
/// entry removed. Changes no sequence number: it becomes part of the next write
/// (docs/notes/calico-ipam.md#block-gc).
[[nodiscard]] Block with_cooled_freed(Block block, const Cooldowns& cooldowns, const Instant& now);

/// Whether the cooldown of a released address has ended, as the machine and boot of `now` can know it.
/// - Released in this boot: the clock that cannot jump has counted the cooldown since. Exact.
/// - Seen by this boot while it cooled (`seen`): it has counted the cooldown since then. Never too early, whatever any
///   wall clock says; late by the time until the first write.
/// - Else wall clocks are compared, the releaser's with this machine's, and no one can tell how far they are apart: the
///   cooldown and kClockSkewMax must have passed, and this boot must have lasted the cooldown. Never too early as
///   long as the clocks differ by no more than that; a release in the future ends only by a mark.
/// So a cooldown ends at the latest a cooldown after the first write of its block, or refusal for want of addresses, by
/// the node that asks; and without any once the wall clock of whoever looks has passed the release by it and an hour:
/// two hours after the release where that clock is an hour behind.
/// In Calico's way no boot is recorded and Calico's own rule holds: the cooldown by the wall clocks. They shorten it by
/// their difference; Croft adds that this boot must have lasted the cooldown.
[[nodiscard]] bool cooldown_ended(const Cooling& cooling, std::chrono::seconds cooldown, const Instant& now);

/// With a mark of this boot, where another machine or boot released; the same when there is none to make.
[[nodiscard]] Cooling with_clock_mark(Cooling cooling, const Instant& now);
/// The block with a mark of this boot on each cooling address that another machine or boot released. Part of the next
/// write, as with_cooled_freed; the same block when there is nothing to mark.
[[nodiscard]] Block with_clock_marks(Block block, const Instant& now);

/// The earliest wall-clock time at which a cooling address of the block is assignable; absent when none cools.
[[nodiscard]] std::optional<WallTime> first_cooldown_end(const Block& block, const Cooldowns& cooldowns,
                                                         const Instant& now);

/// When the cooldown of one release ends, on the wall clock as it stands now. For display and hints.
[[nodiscard]] WallTime cooldown_end(const Cooling& cooling, std::chrono::seconds cooldown, const Instant& now);

/// The outcome of taking an address: the changed block and the address.
struct Taken {
  Block block;
  net::Address address;
};

/// Takes the free ordinal that has been idle longest and is not reserved; absent when there is none.
[[nodiscard]] std::optional<Taken> take_next(Block block, const Attribute& attribute, const IsReserved& is_reserved);

/// Takes one given address. Error: already_exists when it is held or cooling. The address must lie in the block.
[[nodiscard]] Result<Taken> take_address(Block block, const net::Address& address, const Attribute& attribute);

/// How many addresses could be taken now: free and not reserved.
[[nodiscard]] std::uint32_t free_count(const Block& block, const IsReserved& is_reserved);

/// The state of one address of the block, ignoring reservations (a reserved address that is free reads `free`).
[[nodiscard]] AddressState state_of(const Block& block, net::Ordinal ordinal);

/// The attribute an ordinal points at, or null when it is free.
[[nodiscard]] const Attribute* attribute_of(const Block& block, net::Ordinal ordinal);

/// Calls `visit(net::Ordinal, const Attribute&)` for each address of a block that somebody holds; none that cools.
template <class Visit>
void for_each_held(const Block& block, Visit visit) {
  for (std::uint32_t i = 0; i < block.allocations.size(); ++i) {
    const Attribute* holder = attribute_of(block, net::Ordinal(i));
    if (holder != nullptr && !holder->cooling) visit(net::Ordinal(i), *holder);
  }
}

/// A member of a holder's attributes, as kNodeKey; empty when there is none.
[[nodiscard]] std::string member_of(const std::map<std::string, std::string>& attributes, const char* key);

/// The pod of a holder, as far as its attributes say.
[[nodiscard]] PodIdentity pod_of(const std::map<std::string, std::string>& attributes);

/// Whether an address is held on a node that does not own the block; one that records no node is not.
[[nodiscard]] bool is_borrowed(const Block& block, const Attribute& holder);

/// The sequence number of an allocation; 0 when the block has none for it
/// (docs/notes/calico-ipam.md#release-from-block).
[[nodiscard]] SequenceNumber sequence_of(const Block& block, net::Ordinal ordinal);

/// The ordinals that `owner` holds in the block, ascending.
[[nodiscard]] std::vector<net::Ordinal> held_by(const Block& block, const Owner& owner);

/// Releases ordinals, each of which must be held: to cooling when a cooldown is positive, else to free
/// (docs/notes/calico-ipam.md#freeing).
[[nodiscard]] Block release(Block block, std::span<const net::Ordinal> ordinals, const Cooldowns& cooldowns,
                            const Instant& now);

/// One taken ordinal freed, to the tail of the order.
[[nodiscard]] Block with_freed(Block block, net::Ordinal ordinal);

/// The handle of addresses that Calico keeps out of use on Windows nodes (docs/notes/calico-ipam.md#host-reserved).
/// A block with no others is empty.
inline constexpr const char* kWindowsReservedHandle = "windows-reserved-ipam-handle";

/// No ordinal is taken (a cooling one is), but those reserved for Windows.
[[nodiscard]] bool is_empty(const Block& block);

/// Advances the sequence number: called once for each block that a commit writes, after all changes to it.
[[nodiscard]] Block with_next_sequence_number(Block block);

/// A cooling address as it is recorded beside a block: in the formats of others, whose older programs would keep an
/// address for ever that they find cooling (docs/promises.md#cooling). The block itself shows it as free, at the tail
/// of its order.
struct CoolingBeside {
  std::uint32_t ordinal = 0;
  SequenceNumber sequence_number;
  Cooling cooling;
  friend bool operator==(const CoolingBeside&, const CoolingBeside&) = default;
};

/// The block as others see it, and what is recorded beside it, ascending by ordinal. Addresses that cool in Calico's
/// own way stay in the block.
[[nodiscard]] std::pair<Block, std::vector<CoolingBeside>> without_cooling(Block block);

/// The inverse. A record of an address that is taken, or not of the block, is out of date and passed over. One that is
/// so much older by its sequence number that it is of a block before this one counts only as far as a cooldown can go
/// on. It counts not at all when the longest one was over when this block was made, else from then at the latest. One
/// with a later sequence number than the block is of a block before this one, which another made anew with the numbers
/// of its own clock. The address cools on, without the number, which would be of the future here.
[[nodiscard]] Block with_cooling(Block block, const std::vector<CoolingBeside>& beside);

}  // namespace croft::core
