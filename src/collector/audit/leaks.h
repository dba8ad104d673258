#pragma once

#include <string>

#include "collector/decide/facts.h"
#include "ipam/audit/findings.h"

namespace croft::core::audit {

/// The parameters of a look at leaks.
struct LeakLook {
  std::string node{};        ///< only what is held on it, and its blocks; empty: everything
  std::string asked_with{};  ///< options by which `croft ip release` asks the same cluster: " --kubeconfig /k"
  bool nodes_known = true;   ///< the facts have every node; else nothing is concluded about nodes
};

/// Compares what a register holds with the pods and nodes of its cluster, in one look. It finds what is held for a pod
/// or on a node that is not there, and blocks of such nodes. `facts` must be of after the register was read, as a pod
/// exists before its address is held. Adds findings and notes to the report, and marks as Allocation::gone what is held
/// for a holder that is gone. Nothing is concluded of lists that are empty, or of another cluster's: a note says so. An
/// address that a living pod may have by a second interface is never named.
void find_leaks(Report& report, const collect::Facts& facts, const LeakLook& look);

}  // namespace croft::core::audit
