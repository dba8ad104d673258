#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/mac.h"
#include "base/net/prefix.h"
#include "base/result.h"
#include "vpc/format/ucloud/signing.h"

namespace croft::cloud::simulator {

using Span = std::chrono::nanoseconds;

/// A subnet: its first and last address, the gateway and the nodes' own addresses are given to nobody.
struct Subnet {
  std::string id;
  net::Prefix range;
  net::Address gateway;
};

/// A machine with one interface.
struct Node {
  std::string name;      ///< in front of its metadata: `/<name>/meta-data/v1.json`
  std::string instance;  ///< `uhost-<name>`
  std::string interface_id;
  net::Mac mac;
  std::string subnet;
  std::optional<net::Address> address;  ///< its interface's own, of the subnet
};

/// Bounds of something that is drawn anew each time.
struct Between {
  Span least{0};
  Span most{0};
};

struct Config {
  std::string region = "cn-sim1";
  std::string zone = "cn-sim1-01";
  std::string project = "org-sim";
  std::string vpc = "uvnet-sim";
  std::vector<Subnet> subnets;
  std::vector<Node> nodes;
  wire::ucloud::Keys user{"sim-public", "sim-private", {}};  ///< keys without token
  std::string role = "Uk8sServiceCharacter";
  std::chrono::seconds token_life{3600};
  double calls_per_second = 0;  ///< of each action; 0: no limit
  double burst = 20;
  Between latency;        ///< of a call: half before, half after what it does
  Between flow;           ///< how long an address is silent after it was given or moved
  Span available_lag{0};  ///< how old AvailableIPs is
};
/// The file of a simulator: an object with the members above (docs/formats/vpc-simulator.md).
/// Error: invalid_argument, naming the member.
[[nodiscard]] Result<Config> decode_config(std::string_view json);

/// What is to go wrong with the next calls of an action.
struct Fault {
  enum class Kind : std::uint8_t { lose, hang, ret_code, http } kind = Kind::lose;
  std::string action;      ///< "*": any
  std::int64_t value = 0;  ///< the RetCode or the status
  bool committed = true;   ///< whether what was asked is done all the same; with `hang` it never is
  std::uint32_t count = 1;
};

/// How a call is answered.
struct Reply {
  int status = 200;
  std::string body;
  bool lost = false;  ///< no answer
};

/// A cloud as one value: who has which address, and all that has happened. No clock, no threads: whoever calls has
/// both. Not synchronised. `wall` time counts for tokens, time since boot for the rest.
class World {
 public:
  World(Config config, wire::ucloud::Sha1 sha1, Random& random);

  /// What to do with a call before it is looked at.
  struct Plan {
    Span before{0};
    Span after{0};
    std::optional<Fault> fault;
  };
  [[nodiscard]] Plan plan(const std::string& action);
  /// One call of the API. With `plan.fault`, as that says.
  [[nodiscard]] Reply api(const wire::ucloud::Parameters& parameters, const Plan& plan, const Instant& now);
  /// Metadata and credentials: the target of a GET, or nothing when it is none of them.
  [[nodiscard]] std::optional<Reply> metadata(std::string_view target, const Instant& now);
  /// `/sim/…`.
  [[nodiscard]] Reply control(std::string_view target, std::string_view body, const Instant& now);

  enum class Outage : std::uint8_t { none, refuse, hang } outage = Outage::none;

  /// What contradicts itself; empty: nothing.
  [[nodiscard]] std::vector<std::string> check() const;
  [[nodiscard]] std::string truth(const Instant& now) const;

 private:
  struct Holding {
    net::Mac mac;
    Span since{0};
    Span usable_at{0};
  };
  struct Event {
    Span at{0};
    std::string what;  ///< the action, or the control path
    std::string subnet;
    net::Address address;
    std::optional<net::Mac> from, to;
  };
  struct CallSeen {
    Span at{0};
    std::string action;
    std::int64_t ret_code = 0;
    std::string fault;
  };
  struct Bucket {
    double tokens = 0;
    Span at{0};
    double per_second = 0, burst = 1;
  };
  using Place = std::pair<std::string, net::Address>;

  struct Answer {
    std::int64_t ret_code = 0;
    std::string members;  ///< JSON behind RetCode, Action and Message
    std::string message;
  };
  [[nodiscard]] std::optional<Answer> refusal(const wire::ucloud::Parameters& parameters, const Instant& now);
  [[nodiscard]] Answer act(const wire::ucloud::Parameters& parameters, const Instant& now);
  [[nodiscard]] Answer allocate(const wire::ucloud::Parameters& parameters, const Instant& now, bool batch);
  [[nodiscard]] Answer remove(const wire::ucloud::Parameters& parameters, const Instant& now);
  [[nodiscard]] Answer move(const wire::ucloud::Parameters& parameters, const Instant& now);
  [[nodiscard]] Answer describe(const wire::ucloud::Parameters& parameters) const;
  [[nodiscard]] Answer describe_subnet(const wire::ucloud::Parameters& parameters, const Instant& now) const;
  [[nodiscard]] Answer describe_host(const wire::ucloud::Parameters& parameters) const;
  [[nodiscard]] const Subnet* subnet_of(std::string_view id) const;
  [[nodiscard]] const Node* node_of(const net::Mac& mac) const;
  [[nodiscard]] bool may_have(const Subnet& subnet, const net::Address& address) const;
  [[nodiscard]] std::optional<net::Address> free_in(const Subnet& subnet) const;
  [[nodiscard]] std::uint64_t free_count(const Subnet& subnet) const;
  void set(const std::string& what, const Place& place, const std::optional<net::Mac>& to, const Instant& now);
  [[nodiscard]] std::string ip_info(const Place& place, const net::Mac& mac) const;
  [[nodiscard]] Span draw(const Between& between);

  Config config_;
  const wire::ucloud::Sha1 sha1_;
  Random& random_;
  std::map<Place, Holding> held_;
  std::set<Place> own_;                                                    ///< of the nodes' interfaces
  std::map<std::string, std::pair<wire::ucloud::Keys, WallTime>> tokens_;  ///< by token
  std::map<std::string, Bucket> buckets_;
  std::set<std::string> exhausted_;
  std::deque<Fault> faults_;
  std::map<std::string, std::deque<std::pair<Span, std::uint64_t>>> free_history_;
  std::uint32_t fail_items_ = 0;
  std::deque<Event> events_;
  std::map<Place, net::Mac> folded_;  ///< what the events that were dropped come to
  std::deque<CallSeen> calls_;
};

}  // namespace croft::cloud::simulator
