#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/net/address.h"
#include "base/net/prefix.h"
#include "register/block.h"
#include "register/node.h"
#include "register/owner.h"
#include "register/pool.h"
#include "sim/run/troubled_server.h"
#include "sim/schedule.h"
#include "sim/server.h"

namespace croft::sim {

/// An ADD that may have been decided at any time.
inline constexpr Span kUninformed{-1};

/// Holds the register to its promises, after every commit and every answer, by the dumbest means: it is told who lives
/// with what, and sees every record that changes. It knows the true time, which no clock of the run does.
class Checker {
 public:
  explicit Checker(const Schedule& schedule) : schedule_(schedule) {}

  /// The first violation, as "what: detail"; empty: none.
  [[nodiscard]] const std::string& violation() const { return violation_; }
  /// When that was seen.
  [[nodiscard]] Span violated_at() const { return violated_at_; }

  /// A machine boots: by its boots the times of releases are told.
  void booted(const MachineClock& clock) { boots_[clock.boot()] = clock.booted_at(); }

  void committed(const std::vector<Changed>& changes);
  /// Everything is other than it was, and nobody lives with anything that is not told anew.
  void put_back(TroubledServer& server);

  /// An ADD was answered with these. From now on the owner lives with them.
  /// With `strict_node`, only from blocks of this node. Its decision knew the commits until `informed`.
  void given(Server& server, const core::Owner& owner, const std::vector<net::Address>& addresses,
             const std::string& strict_node, Span informed);
  /// Whether the register has the owner as holder of them.
  [[nodiscard]] bool is_held(Server& server, const core::Owner& owner,
                             const std::vector<net::Address>& addresses) const;
  /// Nobody lives with what the owner had any more.
  void left(const core::Owner& owner);

  /// Whether nothing is held, and no handle counts anything, but of those who live.
  [[nodiscard]] bool is_clean() const { return leak().empty(); }
  /// Every trouble is over, and there was time: what is held without a living holder is leaked.
  void expect_clean();
  void violate(const std::string& what, const std::string& detail);

  /// Whether the enabled pools of the family have as many blocks.
  [[nodiscard]] bool has_room(net::Family family, std::size_t blocks) const;
  /// The pod that lives with the address; empty: none.
  [[nodiscard]] std::string living_with(const net::Address& address) const;

 private:
  struct Rest {
    Span until{0};  ///< true time
    std::string of;
  };
  /// The last who lived with an address.
  struct Had {
    std::string handle;
    Span left = kNever;  ///< true time; kNever: it lives with it
  };
  struct KnownPool {
    core::Pool pool;
    bool is_open = false;  ///< it is there and enabled
    Span since{0};         ///< is_open is as it is
  };
  struct KnownReservation {
    std::vector<net::Prefix> cidrs;
    Span since{0};
  };
  /// The rows of claims on a block, and whom the block itself names.
  struct Claims {
    std::map<core::AffinityOwner, core::AffinityState> rows;
    std::optional<core::AffinityOwner> owner;
    bool is_empty = false;  ///< the block
  };

  void pool_changed(const std::string& name, const core::Pool* pool);
  void claim_changed(const std::optional<core::Value>& before, const std::optional<core::Value>& after);
  void check_claims(const net::Prefix& block);
  [[nodiscard]] bool is_open(const net::Prefix& block) const;
  void check_in_use(const net::Address& address, const std::string& handle, Span informed);
  void rest_begins(const net::Address& address, const core::Cooling& cooling, const std::string& handle, Span left);
  void block_changed(const std::optional<core::Value>& before, const std::optional<core::Value>& after);
  void ordinal_changed(const net::Address& address, const core::Attribute* was, const core::Attribute* is);
  void handle_changed(const core::Key& key, const std::optional<core::Value>& after);
  void count(const std::string& handle, const std::string& cidr, int by);
  /// The block in which the handle holds the address.
  [[nodiscard]] std::optional<core::Block> find(Server& server, const std::string& handle,
                                                const net::Address& address) const;
  void check_counts(const std::string& handle);
  /// An address that is held without a living holder; empty: none.
  [[nodiscard]] std::string leak() const;
  /// Null: there never was one.
  [[nodiscard]] const KnownPool* pool_of(const net::Address& address) const;

  const Schedule& schedule_;
  std::string violation_;
  Span violated_at_{0};
  std::map<BootId, Span> boots_;
  std::map<net::Address, core::Owner> lives_;
  std::map<net::Address, Had> had_;
  std::map<net::Address, Span> taken_;  ///< when its holder came by it
  std::map<net::Address, Rest> rests_;
  std::map<std::string, KnownPool> pools_;  ///< those that are gone too
  std::map<std::string, KnownReservation> reservations_;
  std::map<net::Prefix, Claims> claims_;
  std::set<net::Prefix> touched_claims_;
  std::map<net::Prefix, core::SequenceNumber> sequences_;
  /// By handle and block: what is held, and what the handle's record says.
  std::map<std::string, std::map<std::string, int>> held_;
  std::map<std::string, std::map<std::string, std::uint32_t>> counted_;
  std::set<std::string> touched_;
};

}  // namespace croft::sim
