#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/daemon/daemon.h"
#include "base/net/prefix.h"
#include "base/result.h"
#include "cni/format/network_list.h"
#include "collector/daemon/living_addresses.h"
#include "install/commands/install_options.h"
#include "install/commands/installed_cluster.h"
#include "install/door/installation.h"
#include "install/door/takeover.h"
#include "register/pool.h"

// Whether Croft's network may take the place of the one that a node has: pods that live keep the addresses they have
// (install/door/takeover.h has the rule; this asks the node, the register and the API what it needs).
namespace croft::app {

/// One installation's. Holds references to all that it is made of; for one thread.
class NetworkTakeover {
 public:
  NetworkTakeover(const InstallOptions& options, const Daemon& daemon, const edge::Installation& files, ToldOnce& told)
      : options_(options), daemon_(daemon), files_(files), told_(told) {}

  /// Pods of the network in use keep their addresses. Whoever gives addresses from now on knows of them where it goes
  /// by the same records, or where it has none of them to give; else somebody has to say that they are gone, or known.
  /// Tells what can't be known here. Errors: refused_for_safety, with the network, who gave and each way out; of the
  /// files; of the register and the API where they are asked.
  [[nodiscard]] Result<void> check_who_gave();
  /// Somebody says that no pod of a network lives any more. What a drain leaves, DaemonSets' pods and static pods, can
  /// be seen on its node: what they have and the register may give again is a reason. Other nodes' are for them to see.
  /// To be asked after check_who_gave(). With two looks, some seconds apart, what only came or went is no reason.
  /// Errors: the same.
  enum class Looks : bool { one, two };
  [[nodiscard]] Result<void> look_at_the_living(Looks looks) const;
  /// Whether the register that the plugin's kubeconfig led to until now is in the cluster that is asked now.
  void note_cluster(OneCluster cluster) { cluster_ = cluster; }
  /// The same of an installation without a network of its own, whose plugin's register changes all the same. Error:
  /// refused_for_safety.
  [[nodiscard]] Result<void> check_cluster();
  /// Who is to give the addresses of Croft's network, as far as the options are decided by now.
  [[nodiscard]] edge::NextGiver next_giver() const;
  /// Whether somebody said it of a network, or register, that check_who_gave() found here.
  [[nodiscard]] bool replaces_any() const { return !replaced_.empty(); }

 private:
  /// Who says that a network has pods here.
  struct Source {
    std::string file;
    bool is_ours = false;
    bool is_behind = false;  ///< the runtime surely goes by another
  };
  [[nodiscard]] static Source source_of(const edge::NodeNetwork& there);
  /// A network without a name no runtime takes.
  [[nodiscard]] Result<void> check_giver(const edge::NextGiver& next, const wire::cni::AddressGiver& giver,
                                         const Source& source);
  /// The same of a register of Croft's, which `file` names.
  [[nodiscard]] Result<void> check_register(const edge::NextGiver& next, const std::string& before,
                                            const std::string& file);
  /// What a register's pause says of a move.
  struct Move {
    std::string to;  ///< the URL of the other end, where it is complete; empty: `why_not` says why
    std::string why_not;
  };
  [[nodiscard]] Move look_at_move(const std::string& before) const;
  /// Empty: by its pause all that the register had is in ours by now, and it gives nothing any more.
  [[nodiscard]] std::string why_not_moved(const std::string& before) const;
  [[nodiscard]] static std::string name_of(const edge::NextGiver& next);
  struct Overlap {
    std::string why;         ///< empty: none of these addresses will be given by ours
    bool is_proven = false;  ///< else nobody knows
  };
  [[nodiscard]] Result<Overlap> overlap_with(const edge::NextGiver& next, const std::vector<net::Prefix>& theirs) const;
  /// Where the network of before gave from the node's podCIDRs, pods of other nodes have addresses of theirs.
  [[nodiscard]] Result<Overlap> overlap_of_others(const std::vector<net::Prefix>& theirs,
                                                  const std::vector<core::Pool>& pools) const;
  /// None where the register is a file that is not there yet.
  [[nodiscard]] Result<std::vector<core::Pool>> read_pools() const;
  /// From which host-local gives under flannel: flannel's agent says it where it runs, also where it has it from an
  /// etcd; else the node's podCIDRs are it. `why_none` gets the words where nobody says it.
  [[nodiscard]] std::vector<net::Prefix> ranges_of_host_local(std::string& why_none) const;
  /// The node's podCIDRs; nothing where no API says them: it may have some.
  [[nodiscard]] Result<std::optional<std::vector<net::Prefix>>> ranges_of_node() const;
  [[nodiscard]] Result<std::vector<LivingAddress>> living_not_known() const;
  void tell_not_looked(const Error& error) const;
  /// On this node, by a register that is to be replaced. What can't be looked at is told.
  [[nodiscard]] std::vector<LivingAddress> held_before(const std::string& url) const;
  [[nodiscard]] Result<std::vector<LivingAddress>> addresses_of_own_pods() const;
  /// Those that host-local may give again, or Croft's register.
  [[nodiscard]] Result<std::vector<LivingAddress>> not_in_directory(std::vector<LivingAddress> living) const;
  [[nodiscard]] Result<std::vector<LivingAddress>> not_in_register(std::vector<LivingAddress> living) const;

  const InstallOptions& options_;
  const Daemon& daemon_;
  const edge::Installation& files_;
  ToldOnce& told_;
  OneCluster cluster_ = OneCluster::not_said;
  mutable std::optional<std::vector<core::Pool>>
      pools_;                                      ///< as check_who_gave() read them: one file may have many givers
  std::vector<wire::cni::AddressGiver> replaced_;  ///< whose pods somebody says are gone, or known
};

}  // namespace croft::app
