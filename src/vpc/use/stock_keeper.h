#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "ipam/use/transact.h"
#include "vpc/decide/assign.h"
#include "vpc/decide/reconcile.h"
#include "vpc/decide/supply.h"
#include "vpc/provider.h"
#include "vpc/use/stock_actor.h"
#include "vpc/use/stock_calls.h"
#include "vpc/use/stock_sources.h"

// Keeps a node's stock of cloud addresses between its water marks: asks the cloud and the wire, gives back, lends and
// borrows, and settles what crashes and lost replies left (docs/notes/warm-pool.md). It asks the world outside in
// threads of others, and decides and writes by messages to the actor (vpc/use/stock_actor.h). No ADD or DEL waits for
// it but one that finds the stock empty.

namespace croft::engine {

struct KeeperOptions {
  core::warm::Marks marks;
  core::warm::ReconcilePolicy reconcile;
  std::chrono::seconds doubt{60};  ///< so long the cloud may still do a call whose reply was lost
  std::string node;
  std::string subnet;  ///< empty: that of the interface
  std::chrono::seconds reconcile_every{60};
  bool looks_first = false;  ///< an agent's: may_give() waits for the first look_before_serving() too
};

/// The time of one call of the cloud.
inline constexpr std::chrono::nanoseconds kCloudLimit = std::chrono::seconds{30};
/// How soon what is half done is looked at again.
inline constexpr std::chrono::nanoseconds kSettleAgain = std::chrono::seconds{5};
/// The wait of a round that would give something back while look_before_serving() is under way, as at each start.
inline constexpr std::chrono::nanoseconds kLookIsOver = std::chrono::seconds{1};

[[nodiscard]] inline std::vector<core::StockAddress> in_state(const StockView& view, core::StockAddressState state) {
  std::vector<core::StockAddress> found;
  std::ranges::copy_if(view.addresses, std::back_inserter(found),
                       [&](const core::StockAddress& one) { return one.state == state; });
  return found;
}

/// Whether it goes back to the cloud, or to another node.
[[nodiscard]] inline bool is_leaving(const core::StockAddress& address) {
  return address.state == core::StockAddressState::releasing || address.state == core::StockAddressState::lending;
}

/// Whether a pod may get it, now or later: a look may show that it is not as the record says.
[[nodiscard]] inline bool is_on_interface(const core::StockAddress& address) {
  return address.state != core::StockAddressState::quarantined && address.state != core::StockAddressState::lent;
}

/// Whether the records name another interface as this node's.
[[nodiscard]] inline bool is_of_other_card(const StockView& view, const cloud::Interface& interface) {
  return view.node && !view.node->node.empty() && view.node->mac != interface.mac;
}

/// In commits of at most core::warm::kChangesMax.
template <class T>
[[nodiscard]] std::vector<std::vector<T>> parts_of(const std::vector<T>& all) {
  std::vector<std::vector<T>> parts;
  for (const T& one : all) {
    if (parts.empty() || parts.back().size() == core::warm::kChangesMax) parts.emplace_back();
    parts.back().push_back(one);
  }
  return parts;
}

[[nodiscard]] inline std::string text_of(const core::StockAddress& address) { return address.address.to_string(); }

class StockKeeper {
 public:
  /// The time that each source of a look has; 0: pods or the cloud are not asked.
  struct LookLimits {
    std::chrono::nanoseconds host, pods, cloud;
  };

  StockKeeper(const KeeperWorld& world, KeeperOptions options);

  /// Before anybody is served from a store that may be an older copy: what the host uses, a live pod says it has, or
  /// the cloud does not have on the interface, and the records know of nobody who does, is given to no pod until a look
  /// shows otherwise. A source that does not answer in time is passed over, and told. To be called again where the
  /// store's files were found to be others since. From any thread, also beside step(), but one at a time.
  void look_before_serving();
  /// One round: finds the interface if that is still to be done, settles what was left, then fills or trims, and looks
  /// for differences. Takes as long as the cloud and the wire take; one at a time.
  /// The answer is when the next round is due, since boot.
  [[nodiscard]] std::chrono::nanoseconds step();
  /// Where ADDs, DELs and what else is decided go.
  [[nodiscard]] StockActor& actor() { return actor_; }

  /// For who has no thread of rounds, a plugin that works alone: asks the cloud for one, and the wire, and puts it into
  /// the stock. Where the wire cannot be asked about what came before, nothing is asked for. Errors: what kept it from
  /// coming. In the place of step(), never beside it.
  [[nodiscard]] Result<void> fetch(Deadline deadline);

  /// The reason that the last attempt to get more brought none; for those that wait. Empty: nothing did.
  [[nodiscard]] std::optional<Error> last_problem() const { return now_seen().last_problem; }
  [[nodiscard]] KeeperTally tally() const { return now_seen().keeper; }
  /// The interface, once it was found.
  [[nodiscard]] std::optional<cloud::Interface> interface() const { return now_seen().interface; }
  [[nodiscard]] const KeeperOptions& options() const { return options_; }
  [[nodiscard]] std::string subnet_of(const cloud::Interface& interface) const {
    return options_.subnet.empty() ? interface.subnet : options_.subnet;
  }
  /// All of the stock.
  [[nodiscard]] Result<StockView> view() const { return view_stock(context()); }

  // An operator's and the peers' calls; from any thread. They take as long as the cloud takes, no longer than
  // `deadline`.

  /// Puts one more address into the stock: this one, or any. One that is there already is the answer. Error also:
  /// refused_for_safety when the host, a pod or a claim has this one, or that is not known; or when no pod may have it.
  [[nodiscard]] Result<core::StockAddress> push(const std::optional<net::Address>& address, Deadline deadline);
  /// Gives one back to the cloud: this free one, or any. Errors: not_found (it is not free in the stock, or nothing
  /// is); those of the cloud, the address is free again then.
  [[nodiscard]] Result<core::StockAddress> pop(const std::optional<net::Address>& address, Deadline deadline);
  /// Addresses that nothing here uses: quarantined ones that the cloud has on this node's interface, unknown ones that
  /// no intent explains, and those that are unsure. A release or a loan without an outcome makes one unsure. Asks the
  /// cloud. Error: unavailable where one of the cloud, the host and the pods is silent: what it would have said is not
  /// known.
  [[nodiscard]] Result<std::vector<core::StockAddress>> unused(Deadline deadline);
  /// Gives such back, but for what is on its way already. Errors: refused_for_safety when one is in use or that is not
  /// known, unavailable before a look (nothing is done then); those of the cloud (those before it have gone).
  [[nodiscard]] Result<void> release_unused(std::vector<net::Address> addresses, Deadline deadline);
  /// Lends one to another node's interface. Errors: exhausted, where it has none to lend now: nothing was moved;
  /// unknown_outcome; conflict, where it went another way meanwhile; those of the cloud.
  [[nodiscard]] Result<core::StockAddress> lend(const core::warm::Lend& lend, Deadline deadline);

  // For pods that keep their address by name (vpc/decide/assign.h); from any thread, no longer than `deadline`.

  /// Whether the records tell that the pod of this UID keeps its address, or does not. Nothing: they say nothing of it.
  [[nodiscard]] std::optional<bool> is_known_as_fixed(const core::PodIdentity& pod);
  /// An address that lies here and waits for this pod, or that it holds by such a promise. Nothing also where the store
  /// cannot be read.
  [[nodiscard]] std::optional<net::Address> kept_for(const core::PodIdentity& pod);
  /// Brings the address that is promised to `request.pod` to this node, from the cloud or from the interface that the
  /// promise names, asks the wire, and gives it to the owner. Errors: those of plan_give_promised(); refused_for_safety
  /// where somebody answers for it, or another interface has it; those of the cloud, unknown_outcome included: asked
  /// again it finds out.
  [[nodiscard]] Result<core::warm::Assigned> give_promised(const FixedAddresses::Promise& promise,
                                                           const core::warm::Request& request, Deadline deadline);

 private:
  class UnderWay;

  template <class F>
  auto ask(F message) const {
    return actor_.ask(std::move(message));
  }
  [[nodiscard]] StockSeen now_seen() const {
    return ask([this] { return actor_.state.seen; });
  }
  void note_problem(const Error& error) {
    ask([&] { actor_.note_problem(error); });
  }
  /// As it is; an error is the trouble.
  template <class T>
  [[nodiscard]] Result<T> noted(Result<T> done) {
    if (!done) note_problem(done.error());
    return done;
  }
  void count(std::uint64_t KeeperTally::*what, std::size_t more = 1) {
    ask([&] { actor_.state.seen.keeper.*what += more; });
  }
  /// Something came into the stock: those that wait may look again.
  void stocked() {
    actor_.post([this] { actor_.state.stocked = true; });
  }
  [[nodiscard]] Context context() const { return {world_.store, world_.clock, world_.random}; }
  [[nodiscard]] Deadline cloud_deadline() const { return Deadline::after(world_.clock.now(), kCloudLimit); }
  template <class... PlanAndArguments>
  [[nodiscard]] auto decide(const PlanAndArguments&... all) {
    return actor_.decide(all...);
  }
  void log(const std::string& line) const { world_.log(line); }

  [[nodiscard]] bool find_interface();
  [[nodiscard]] Result<void> describe_here(const cloud::Interface& interface);
  [[nodiscard]] bool begin_here(const cloud::Interface& interface);
  [[nodiscard]] core::warm::Look look(const LookLimits& limits, Deadline last);
  [[nodiscard]] core::warm::Look look_here(Deadline deadline);
  void note_silent(core::warm::Look& look, const std::string& what, const Error& error);
  [[nodiscard]] std::optional<cloud::Interface> look_at_cloud(core::warm::Look& look, Deadline deadline);
  void confirm_missing(core::warm::Look& look, const StockView& view, const core::warm::Memory& memory,
                       Deadline deadline);
  [[nodiscard]] Result<void> apply(const std::vector<core::warm::Correction>& corrections);
  void tell(const core::warm::Correction& done);
  void set_apart(core::warm::Look& look, const StockView& view, bool may_go, Deadline deadline);
  [[nodiscard]] core::StockIntent new_intent(core::StockIntent::What what, std::uint32_t count) const;

  [[nodiscard]] auto begin(const core::StockIntent& intent) { return decide(core::warm::plan_begin, intent); }
  [[nodiscard]] auto drop(const std::string& intent) {
    return decide(core::warm::plan_take, intent, std::vector<core::warm::Given>());
  }
  [[nodiscard]] Result<cloud::Interface> known_interface() const;
  void grow(std::uint32_t count);
  void learn_range(Deadline deadline);
  [[nodiscard]] std::vector<core::warm::Given> checked(std::vector<core::warm::Given> given, Deadline deadline);
  struct Taken {
    std::size_t usable = 0;    ///< a pod may come to have them, once the wire was asked
    std::size_t recorded = 0;  ///< said to be new, and had a record
  };
  [[nodiscard]] Result<void> check_nobodys(const net::Address& address, Deadline deadline);
  [[nodiscard]] Result<Taken> take(const std::string& intent, const std::vector<cloud::CloudAddress>& given,
                                   bool verified, const std::string& from);
  void shrink(std::uint32_t count);
  [[nodiscard]] Result<void> give_back(std::vector<core::StockAddress> addresses, Deadline deadline);
  [[nodiscard]] Result<std::size_t> probe_all(const std::vector<core::StockAddress>& addresses);
  [[nodiscard]] bool borrow();
  [[nodiscard]] bool take(bool StockState::*flag);
  struct Now {
    Result<StockView> view;
    std::set<std::string> leaving;
  };
  [[nodiscard]] Now look_at_records();
  void settle(const StockView& view);
  bool settle_leaving(const core::StockAddress& address, bool may_still_come, std::optional<core::warm::Look>& look);
  [[nodiscard]] bool leave_those_here(std::vector<core::warm::Given>& brought);
  void settle_intents(StockView& view);
  [[nodiscard]] Result<cloud::CloudAddress> bring_here(const std::optional<cloud::CloudAddress>& there,
                                                       const FixedAddresses::Promise& promise,
                                                       const core::StockIntent& intent, Deadline deadline);
  [[nodiscard]] Result<void> check_wire(const net::Address& address, const std::string& pod,
                                        const std::optional<net::Mac>& except, Deadline deadline);
  void reconcile();

  const KeeperWorld world_;
  const KeeperOptions options_;

  // The state of step() alone.
  core::warm::PlannerMemory memory_;
  core::warm::Memory seen_;
  std::chrono::nanoseconds next_reconcile_{};
  std::chrono::nanoseconds doubt_look_{};  ///< the span from a look that left doubts to the next one
  std::string told_wish_;

  StockActor actor_;
};

/// While it lives what it names is a call's that this process is making: nobody settles it.
class StockKeeper::UnderWay {
 public:
  explicit UnderWay(StockKeeper& keeper) : keeper_(keeper) {}
  UnderWay(StockKeeper& keeper, const std::string& intent) : keeper_(keeper) {
    keeper_.ask([&] { add(keeper_.actor_.state.asking, intent); });
  }
  ~UnderWay() {
    keeper_.ask([this] {
      for (const auto& [set, name] : names_) set->erase(name);
    });
  }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;

  /// Decides which addresses leave, where any may. They are under way from its commit on.
  [[nodiscard]] Result<core::warm::Changed> decide_leaving(const core::warm::ReturnToCloud& what) {
    return keeper_.ask([&] {
      auto moved = keeper_.actor_.decide_giving(core::warm::plan_return_to_cloud, what);
      if (moved) leave(*moved);
      return moved;
    });
  }
  /// In the loop.
  void leave(const std::vector<core::StockAddress>& addresses) {
    for (const core::StockAddress& one : addresses) add(keeper_.actor_.state.leaving, text_of(one));
  }

 private:
  void add(std::set<std::string>& set, const std::string& name) {
    set.insert(name);
    names_.emplace_back(&set, name);
  }

  StockKeeper& keeper_;
  std::vector<std::pair<std::set<std::string>*, std::string>> names_;
};

}  // namespace croft::engine
