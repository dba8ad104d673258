#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/net/prefix.h"
#include "cni/format/network_list.h"
#include "store/store_url.h"

// One network of a node in the place of another. Pods that live keep the addresses that they have: whoever gives
// addresses next has to know of them, or must have none of them to give.
namespace croft::edge {

/// Who is to give a network's addresses.
struct NextGiver {
  bool is_register = true;  ///< Croft's; else host-local, in its directory of the network's name
  std::string network;      ///< that name
  /// The datastore of Calico's IPAM whose records are the register's own: kubernetes, etcdv3; empty: none is.
  std::string_view calicos = {};
  std::string store = {};      ///< the register's URL, as the configuration is to have it; empty: not said
  std::string directory = {};  ///< of network configurations, how its path ends: "/net.d"; empty: any
};

/// Whether `before` is a register of Croft's too, and which one that is by its URL. `not_said` also where one of both
/// names none.
[[nodiscard]] store::OneRegister same_register(const NextGiver& next, const wire::cni::AddressGiver& before);

/// Whether what `before` gave is known to `next`: it goes by the same records, or may do so by what it says.
[[nodiscard]] bool knows(const NextGiver& next, const wire::cni::AddressGiver& before);

/// Whether a network's addresses are given by the same one, for sure: by the same register, or from the same directory.
[[nodiscard]] bool is_same(const NextGiver& next, const wire::cni::NetworkCalls& calls);

/// Whether a network that the runtime takes before `file`, which is ours, has no addresses but ours: it calls that by
/// its file or its name, or has it in itself, as multus; or it asks the same register.
[[nodiscard]] bool calls_only(const NextGiver& ours, std::string_view file, const wire::cni::NetworkCalls& calls);

/// Two ranges that have addresses in common.
struct CommonRange {
  net::Prefix before, next;
};
[[nodiscard]] std::optional<CommonRange> common_range(const std::vector<net::Prefix>& before,
                                                      const std::vector<net::Prefix>& next);

/// What a node has for its pods.
struct NodeCidrs {
  std::string node;
  std::vector<net::Prefix> cidrs;
};
struct CommonRangeOfNode {
  std::string node;
  CommonRange common;
};
/// Where `before` gave from what a node has for its pods, the other nodes gave, and give, from theirs just so: the
/// first that `next` has too. Whatever nodes have, a network with ranges of its own is of one node alone.
[[nodiscard]] std::optional<CommonRangeOfNode> common_range_of_others(const std::vector<net::Prefix>& before,
                                                                      const std::vector<NodeCidrs>& nodes,
                                                                      const std::string& own,
                                                                      const std::vector<net::Prefix>& next);

}  // namespace croft::edge
