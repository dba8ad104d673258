#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "cni/door/cni_call.h"
#include "cni/door/skeleton.h"
#include "cni/format/config.h"
#include "register/stock.h"
#include "store/store.h"
#include "store/store_url.h"
#include "vpc/decide/assign.h"
#include "vpc/provider.h"
#include "vpc/use/stock_sources.h"

namespace croft::edge {

/// How a plugin that has no agent gets an address of the cloud.
struct VpcCloud {
  std::unique_ptr<cloud::Provider> provider;
  std::unique_ptr<engine::AddressProbe> probe;  ///< null: the wire is not asked
};

/// The world of the personality `croft-vpc`; `app` fills it in.
struct CroftVpcWorld {
  std::function<Result<std::unique_ptr<store::Store>>(const std::string& url, store::OpenMode mode)> open_store;
  const Clock& clock;
  Random& random;
  /// Takes one line for each decision, without newline; never fails. `log_file` is empty when none is configured.
  std::function<void(const std::string& log_file, const std::string& line)> log;
  /// Asks the node's agent. Error unavailable: it is not there, does not answer, or ends, and the plugin does it
  /// itself; any other is the agent's answer.
  std::function<Result<core::StockAddress>(const std::string& socket, const core::warm::Request& request)>
      ask_to_assign;
  std::function<Result<void>(const std::string& socket, const core::warm::Release& release)> ask_to_release;
  std::function<Result<VpcCloud>(const wire::cni::VpcConfig& config)> open_cloud;
  /// The node's own address on the interface that a cloud address came to, in the same subnet: the pod's gateway, which
  /// `ptp` needs in the pod's own subnet. Nothing: it has none. May be null.
  std::function<std::optional<net::Address>(const core::StockAddress& given)> node_address = nullptr;
  /// Every address that an interface of the host has or a route of it leads to by itself: a plugin that works alone
  /// gives none of them. May be null.
  std::function<Result<std::set<net::Address>>()> used_by_host = nullptr;
  /// Goes on in the sibling where the cloud has to be asked.
  HandOver hand_over = {};
  /// In the sibling, a call that began in the other file: no agent is asked again.
  std::optional<CallSoFar> so_far = {};
  /// Every call is refused with it.
  std::optional<Error> misplaced = {};
};

/// The personality `croft-vpc`: a cloud's addresses for pods (docs/notes/warm-pool.md#cnivpc), as an IPAM plugin
/// under `ptp`. `world` must outlive the plugin.
/// - ADD asks the node's agent, and takes from the node's stock itself when none answers: the same records, so the same
///   answer. An empty stock makes it ask the cloud, and the wire.
/// - The result has the subnet's prefix length and, where none is configured, the node's own address as gateway, as
///   UK8S' plugin has it: the cloud's gateway belongs to the cloud. A default route leads there.
/// - DEL of who holds nothing is a success. A released address rests in the stock.
/// - CHECK looks into the stock; GC releases what attachments hold that the runtime does not list, one minute after
///   their ADD at the earliest; STATUS tries whether it can be opened.
[[nodiscard]] CniPlugin croft_vpc_plugin(const CroftVpcWorld& world);

}  // namespace croft::edge
