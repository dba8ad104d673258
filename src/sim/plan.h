#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/prefix.h"
#include "base/result.h"
#include "register/owner.h"
#include "register/pool.h"
#include "register/records.h"
#include "sim/schedule.h"
#include "store/store.h"

namespace croft::sim {

/// A pod as the register has it; tunnels and the like are none.
struct PodOfToday {
  net::Address address;
  std::string node;
  core::Owner owner;
  core::PodIdentity of;
};

/// A register as it is.
struct Today {
  std::vector<store::Record> records;
  std::vector<core::Pool> pools;  ///< of one family; the first is the one that is planned
  core::IpamConfig config;
  std::uint32_t nodes = 0;
  WallTime read_at;
  std::vector<PodOfToday> pods;
};

/// A cluster whose addresses are planned: what it has, and what happens to it.
struct Plan {
  enum class Way : std::uint8_t {
    agents,  ///< an agent on each node answers from memory
    alone,   ///< each plugin asks the store
  };
  std::string datastore = "kubernetes";  ///< one of kStores
  Way way = Way::agents;
  std::uint32_t nodes = 100, pods = 30;  ///< pods of a node
  double churn = 2;                      ///< pods of a node that are replaced in an hour
  double failures = 1;                   ///< nodes that are lost in a day; above 0 at least one of the run
  double growth = 0;                     ///< pods that the cluster gets in a day beside those that it has
  std::optional<net::Prefix> pool;       ///< absent: pool_for(), of IPv4
  std::optional<int> block_length;       ///< absent: Calico's, 26 or 122
  std::chrono::seconds cooldown{30};
  bool strict = false;                ///< strict affinity: a node uses its own blocks alone
  double cores = 16;                  ///< of the datastore's machine; its times were measured on two
  std::uint32_t at_once = 8;          ///< pods that a node starts at once …
  std::uint32_t in_flight = 500;      ///< … and the whole cluster, as its scheduler and its API let them
  Span life = std::chrono::hours(1);  ///< how long pods come and go
  std::uint64_t seed = 1;
  /// The register with which it begins, whose pools count (start_from_register); null: an empty one with the pool
  /// alone.
  std::shared_ptr<const Today> today;
};

[[nodiscard]] int block_length_of(const Plan& plan, net::Family family);
/// The smallest pool with a quarter of its blocks free, while each node has its pods and a third more. Addresses that
/// rest after pods that were replaced have room too.
[[nodiscard]] net::Prefix pool_for(const Plan& plan, net::Family family);

/// How the addresses of the pools are used at one moment.
struct Space {
  double size = 0;             ///< of the pools; more than a counter holds in IPv6
  std::uint64_t held = 0;      ///< by pods
  std::uint64_t borrowed = 0;  ///< of them, in blocks of other nodes
  std::uint64_t cooling = 0;
  std::uint64_t spare = 0;   ///< free, in a block that has a node
  std::uint64_t blocks = 0;  ///< that have a node
  [[nodiscard]] double free() const { return size - static_cast<double>(held + cooling + spare); }
};

struct Latency {
  double p50 = 0, p90 = 0, p99 = 0;  ///< milliseconds
};

/// The measures of a run of a plan.
struct Measured {
  net::Prefix pool;
  int block_length = 0;
  std::uint64_t nodes = 0;
  std::uint64_t pods = 0, without = 0;    ///< that have an address at the end, and that have none
  std::uint64_t refused = 0, failed = 0;  ///< tries of ADDs: for want of addresses, and otherwise
  Space space;                            ///< at the end
  double blocks_a_node = 0;
  double requests_an_add = 0, conflicts_an_add = 0;  ///< of a try, while all pods start
  double requests_a_pod = 0;                         ///< of the ADD and the DEL of a pod that is replaced
  double adds_a_second = 0;                          ///< while all pods start, until 99 % of those that do
  std::optional<double> start_seconds;               ///< until then; absent: some got no address
  Latency start, steady;                             ///< of ADDs, while all pods start and later
  /// From the loss of a node until the collector has freed what it held; of several the longest.
  std::optional<double> recovered_minutes;
  std::optional<double> full_share;  ///< of the pool held when the first ADD is refused, as the load grows
  std::optional<double> days_to_full;
};

/// Runs it: all pods start, then come and go for a while. The same plan comes to the same. Errors: invalid_argument for
/// a plan that cannot be run; those of a register that cannot be read.
[[nodiscard]] Result<Measured> run(const Plan& plan);

/// Makes a plan begin with a register as it is. Nodes, pods and strict affinity become those of today. Pool, block
/// length and cooldown become those of the first enabled pool, of IPv4 where there is one. Errors: of the store;
/// not_found without a pool.
[[nodiscard]] Result<void> start_from_register(Plan& plan, store::Store& store, const Clock& clock);

/// The same cluster with fewer nodes, and with as much smaller a pool.
[[nodiscard]] Plan part_of(const Plan& plan, std::uint32_t nodes_max);
inline constexpr std::uint32_t kPartNodes = 48;
/// The smallest prefix of so many addresses, at the beginning of this one.
[[nodiscard]] net::Prefix prefix_of(const net::Prefix& like, double addresses);

// ---------------------------------------------------------------- what is said of a run

/// Numbers over numbers, for a terminal.
struct Chart {
  struct Series {
    std::string name;
    std::vector<std::pair<double, double>> points;  ///< ascending
  };
  std::string title, x;  ///< and of the axis below
  std::vector<Series> series;
};

/// Bars, one for each point, in groups of one x.
[[nodiscard]] std::string to_terminal(const Chart& chart, std::size_t width);

/// A whole and its parts in one line, and below what the signs mean.
struct Part {
  std::string name;
  double value = 0;
  const char* sign = "█";
};
[[nodiscard]] std::string to_bar(const std::vector<Part>& parts, std::size_t width);

/// For people: "1,234", "12.3", "0.57".
[[nodiscard]] std::string to_text(double number);

/// A size to take, and why.
struct Advice {
  int block_length = 0;
  net::Prefix pool;
  std::vector<std::string> reasons;  ///< sentences
};
/// Tries other block lengths on a part of the cluster, and computes the pool from what was measured.
[[nodiscard]] Result<Advice> advise(const Plan& plan, const Measured& measured);

}  // namespace croft::sim
