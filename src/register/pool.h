#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/net/address.h"
#include "base/net/prefix.h"
#include "base/result.h"
#include "base/texts.h"
#include "register/foreign_rest.h"

namespace croft::core {

/// The uses of a pool (docs/notes/calico-ipam.md#pools, `allowedUses`).
enum class PoolUse : std::uint8_t { workload, tunnel, load_balancer };
inline constexpr Words<PoolUse, 3> kPoolUses{
    {{"Workload", PoolUse::workload}, {"Tunnel", PoolUse::tunnel}, {"LoadBalancer", PoolUse::load_balancer}}};

/// Whether a pool serves requests that do not name it (docs/notes/calico-ipam.md#pools, `assignmentMode`).
enum class AssignmentMode : std::uint8_t { automatic, manual };
inline constexpr Words<AssignmentMode, 2> kAssignmentModes{
    {{"Automatic", AssignmentMode::automatic}, {"Manual", AssignmentMode::manual}}};

/// Encapsulation of a pool's traffic (docs/notes/calico-ipam.md#pools); it has no effect on assignment and is
/// carried for the formats only.
enum class Encapsulation : std::uint8_t { never, always, cross_subnet };
inline constexpr Words<Encapsulation, 3> kEncapsulations{
    {{"Never", Encapsulation::never}, {"Always", Encapsulation::always}, {"CrossSubnet", Encapsulation::cross_subnet}}};

/// A prefix to hand out, cut into blocks of one size. The name is the key; `cidr` and `block_length` never change.
/// An aggregate: make_pool() is the way to a valid one.
struct Pool {
  std::string name;
  net::Prefix cidr;
  /// Prefix length of the blocks: 20..32 for IPv4, 116..128 for IPv6 (`blockSize` in every outside format).
  int block_length = 0;
  /// True: no new addresses; held ones stay valid and can be released.
  bool disabled = false;
  std::string node_selector = "all()";
  std::string namespace_selector;
  std::vector<PoolUse> allowed_uses = {PoolUse::workload, PoolUse::tunnel};
  AssignmentMode assignment_mode = AssignmentMode::automatic;
  Encapsulation ipip_mode = Encapsulation::never;
  Encapsulation vxlan_mode = Encapsulation::never;
  bool nat_outgoing = false;
  bool disable_bgp_export = false;
  /// Why nothing may be assigned now, though it is not disabled: it is being deleted, smaller than its blocks, or its
  /// status says so (docs/notes/calico-ipam.md#pools, `status.conditions[Allocatable]`). Empty: something may.
  /// Croft's own records don't have it.
  std::string unallocatable;

  // Croft's own; a foreign format keeps these in a record of Croft's beside the pool (docs/promises.md#cooling).

  /// The address pods use as gateway, kept out of use; absent: pods get /32 or /128 without gateway.
  std::optional<net::Address> gateway;
  /// How long a released address rests before it is assignable again; 0 means not at all.
  std::chrono::seconds cooldown{30};
  /// Pools of a higher one are tried before those of a lower one, where nobody names pools; equal ones by name.
  int priority = 0;
  /// Together with `disabled`: it is disabled only because its maker has not enabled it yet, as on stores that write
  /// one record at a time, or never came to it (ipam/use/transact.h). Nobody has disabled it on purpose. The next
  /// one that wants the same pool completes it. Kept only where a pool is made so.
  bool being_made = false;
  /// Together with `disabled`: somebody has begun to delete it and has not ended it, or is about to. Enabling it, and
  /// disabling it on purpose, takes that back.
  bool being_deleted = false;

  ForeignRestPtr rest{};

  friend bool operator==(const Pool&, const Pool&) = default;
};

/// Whether the pool gives new addresses at all (docs/notes/calico-ipam.md#pools, "enabled").
[[nodiscard]] inline bool is_enabled(const Pool& pool) { return !pool.disabled && pool.unallocatable.empty(); }

/// Whether the pool may be used so (docs/notes/calico-ipam.md#pools, `allowedUses`).
[[nodiscard]] bool allows(const Pool& pool, PoolUse use);

/// A pool that a request asks for, by its name or its CIDR.
using AskedPool = std::variant<std::string, net::Prefix>;
/// A text that is a CIDR, with or without host bits, is one; any other is a name.
[[nodiscard]] AskedPool asked_pool(const std::string& text);
[[nodiscard]] std::string text_of(const AskedPool& asked);
/// Whether the pool with this name and CIDR is the one asked for.
[[nodiscard]] bool is_pool_asked_for(const AskedPool& asked, const std::string& name, const net::Prefix& cidr);

/// How the gateway of a new pool is chosen.
struct GatewayChoice {
  enum class Kind : std::uint8_t { first_address, none, given } kind = Kind::first_address;
  net::Address address;  ///< only with Kind::given
  friend bool operator==(const GatewayChoice&, const GatewayChoice&) = default;
};

/// The settings of a pool that a person or a network configuration names. Absent members were not said.
struct PoolSpec {
  std::string name;
  net::Prefix cidr;
  std::optional<int> block_length;
  std::optional<GatewayChoice> gateway;
  std::optional<std::chrono::seconds> cooldown;
  std::optional<bool> disabled;
  std::optional<std::string> node_selector{}, namespace_selector{};  ///< core::Selector; "": all()
  std::optional<int> priority{};
  friend bool operator==(const PoolSpec&, const PoolSpec&) = default;
};

inline constexpr std::chrono::seconds kDefaultCooldown{30};
inline constexpr std::chrono::seconds kCooldownMax{1200};
inline constexpr int kPoolPriorityMax = 1000;
inline constexpr std::size_t kPoolNameBytesMax = 253;

/// The lengths that blocks may have, and the one that they have where nobody says another.
struct BlockLengths {
  int min, max, fallback;
};
[[nodiscard]] constexpr BlockLengths block_lengths(net::Family family) {
  return family == net::Family::v4 ? BlockLengths{20, 32, 26} : BlockLengths{116, 128, 122};
}
/// Whether a pool of this CIDR may be cut into blocks of this length.
[[nodiscard]] bool is_block_length(const net::Prefix& cidr, int length);
/// Whether a pool may have this cooldown.
[[nodiscard]] constexpr bool is_cooldown(std::chrono::seconds cooldown) {
  return cooldown.count() >= 0 && cooldown <= kCooldownMax;
}

/// Checks the name of a `what`: 1 to 253 bytes of lower-case letters, digits, `-` and `.`, first and last alphanumeric
/// (the rule of Kubernetes object names, so that a pool can move there). Error: invalid_argument.
[[nodiscard]] Result<void> check_object_name(std::string_view what, const std::string& name);
[[nodiscard]] inline Result<void> check_pool_name(const std::string& name) { return check_object_name("pool", name); }

/// A complete pool from a spec with the defaults of docs/notes/calico-ipam.md#pools and of
/// docs/promises.md#cooling. When no block size is given and the pool is smaller than the default block, the pool
/// becomes one block. Errors (invalid_argument, naming the field): name, block size out of range or larger than the
/// pool, no assignable address left beside network, gateway and broadcast, gateway outside the pool or on its network
/// or broadcast address, cooldown or priority out of range, a selector that does not parse, overlap with ranges that no
/// pod may be in.
[[nodiscard]] Result<Pool> make_pool(const PoolSpec& spec);

/// The pool with all that the spec says of it, but for its CIDR. Errors (invalid_argument): those of make_pool(); a
/// block size that it does not have.
[[nodiscard]] Result<Pool> with_settings(Pool pool, const PoolSpec& spec);

/// Every member that `spec` gives and `pool` contradicts, as text ("blockSize: the pool has 26, not 28"),
/// or empty when they agree. Members not given agree with anything.
[[nodiscard]] std::string contradictions_between(const Pool& pool, const PoolSpec& spec);

/// Addresses that are never handed out automatically. `name` is the key.
struct Reservation {
  std::string name;
  std::vector<net::Prefix> cidrs;
  ForeignRestPtr rest{};
  friend bool operator==(const Reservation&, const Reservation&) = default;
};

/// The name of the reservation that is made and deleted together with a pool: "pool-NAME". Where that is longer than a
/// name may be (kPoolNameBytesMax), its beginning and a hash of the pool's.
[[nodiscard]] std::string reservation_name_of(const std::string& pool);

/// The reservation made with a pool: its network address, its gateway if it has one, and for IPv4 its broadcast
/// address. A pool of one or two addresses keeps the gateway alone: without one it keeps nothing, and no reservation is
/// made.
[[nodiscard]] Reservation reservation_for(const Pool& pool);

/// The pool whose reservation this may be, by its name and by what it keeps: the first, the last and one more address
/// of a prefix at most. Absent for those that somebody has made for another purpose.
[[nodiscard]] std::optional<std::string> pool_of_reservation(const Reservation& reservation);

/// The wishes of a pod, or of its namespace, in annotations (docs/configuration.md): by Croft's names or, where these
/// are absent, by Calico's (docs/notes/calico-ipam.md#annotations).
struct PodWishes {
  net::PerFamily<std::optional<std::vector<AskedPool>>> pools;  ///< in the place of the configuration's
  std::vector<net::Address> addresses;                          ///< of a pod only
  std::optional<net::PerFamily<bool>> families;                 ///< in the place of the configuration's
  friend bool operator==(const PodWishes&, const PodWishes&) = default;
};

/// The wishes of a pod and its namespace. The pod's count before the namespace's.
struct AnnotatedWishes {
  PodWishes pod, name_space;
  friend bool operator==(const AnnotatedWishes&, const AnnotatedWishes&) = default;
};

/// The annotations in the Kubernetes API that count: those that the runtime has not handed over already.
struct WishesWanted {
  net::PerFamily<bool> pools{true, true};
  bool addresses = true, families = true;
  friend bool operator==(const WishesWanted&, const WishesWanted&) = default;
};

}  // namespace croft::core
