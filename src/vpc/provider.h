#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/letters.h"
#include "base/net/address.h"
#include "base/net/mac.h"
#include "base/net/prefix.h"
#include "base/result.h"

// Croft's view of a cloud that gives addresses to the interfaces of its machines (docs/notes/warm-pool.md#ucloud-api).
// One folder beside this a cloud; vpc/conformance holds all of them to this page.

namespace croft::cloud {

/// "52:54:00:26:6E:DA", as UCloud and its agents write it.
[[nodiscard]] inline std::string capital_text(const net::Mac& mac) { return raised(mac.to_string()); }

/// The length of a mask: dotted, as an IPv6 address, or a number. Nothing: it is none of the family.
[[nodiscard]] inline std::optional<int> parse_mask(std::string_view text, net::Family family) {
  const int bits = net::bit_length(family);
  if (const auto length = net::parse_prefix_length(text)) return *length <= bits ? length : std::nullopt;
  const auto mask = net::Address::parse(text);
  for (int length = 0; mask && mask->family() == family && length <= bits; ++length) {
    if (mask->value() == (net::U128::low_bits(bits) & ~net::U128::low_bits(bits - length))) return length;
  }
  return std::nullopt;
}

/// The interface of this node whose secondary addresses are the stock, as the cloud calls it.
struct Interface {
  net::Mac mac;
  std::string object;  ///< what it, or the machine, is to the cloud: `uni-…`, `uhost-…`
  std::string vpc;
  std::string subnet;
  std::string zone;
  std::string region;
  std::string project;
  std::string instance;  ///< of the machine
  friend bool operator==(const Interface&, const Interface&) = default;
};

/// A secondary address, as the cloud has it now.
struct CloudAddress {
  net::Address address;
  std::uint32_t prefix_length = 0;  ///< of its subnet
  std::optional<net::Address> gateway;
  net::Mac mac;  ///< of the interface that has it
  std::string vpc;
  std::string subnet;
  std::string object;  ///< empty: the cloud did not say
  friend bool operator==(const CloudAddress&, const CloudAddress&) = default;
};

/// A subnet, as far as it is known.
struct SubnetState {
  std::string subnet;
  std::optional<std::uint64_t> available;  ///< addresses that nobody has; the cloud may tell it late. Absent: not said
  std::optional<net::Prefix> range{};      ///< absent: not said
  std::optional<net::Address> gateway{};   ///< absent: not said
};

/// A cloud. All calls block until the deadline, and may come from several threads. They are safe to repeat: who does
/// not know what became of a write asks with describe() before anything else.
///
/// Errors of every call:
///   exhausted                 the subnet has no address left
///   unavailable               away, out of order or asked too often: it was surely not done; the caller waits then
///   unknown_outcome           a write may or may not have been done: no answer, or one that says so (time-out)
///   deadline_exceeded         nothing was sent
///   refused_by_configuration  the cloud will not, whatever is repeated: credentials, project, zone, an unknown
///                             action. The message names what, and never a secret
///   not_found                 what is named does not exist there
///   internal                  an answer that is none, to a read
class Provider {
 public:
  virtual ~Provider() = default;

  /// The interface of this machine, as its metadata say now: it may have been replaced.
  [[nodiscard]] virtual Result<Interface> interface(Deadline deadline) = 0;

  /// Gives `count` more addresses of a subnet to an interface, by one call. The addresses that
  /// it returns were given: 1 to `count`. An error says that none was, but for unknown_outcome.
  [[nodiscard]] virtual Result<std::vector<CloudAddress>> allocate(const Interface& to, const std::string& subnet,
                                                                   std::uint32_t count, Deadline deadline) = 0;
  /// Gives this very one. Error also: already_exists when somebody has it.
  [[nodiscard]] virtual Result<CloudAddress> allocate_address(const Interface& to, const std::string& subnet,
                                                              const net::Address& address, Deadline deadline) = 0;
  /// Takes one back. One that the interface does not have (any more) is a success.
  [[nodiscard]] virtual Result<void> release(const CloudAddress& address, Deadline deadline) = 0;
  /// From one interface of a subnet to another. Error also: not_found when the first does not have it.
  [[nodiscard]] virtual Result<void> move(const CloudAddress& address, const net::Mac& to, Deadline deadline) = 0;

  /// All secondary addresses of an interface in a subnet; never part of them.
  [[nodiscard]] virtual Result<std::vector<CloudAddress>> describe(const Interface& of, const std::string& subnet,
                                                                   Deadline deadline) = 0;
  /// The holder of one; nothing: nobody.
  [[nodiscard]] virtual Result<std::optional<CloudAddress>> describe_address(const std::string& vpc,
                                                                             const std::string& subnet,
                                                                             const net::Address& address,
                                                                             Deadline deadline) = 0;
  [[nodiscard]] virtual Result<SubnetState> subnet(const std::string& vpc, const std::string& subnet,
                                                   Deadline deadline) = 0;

  /// One finished call of the cloud.
  struct Call {
    std::string action;   ///< "AllocateSecondaryIp"
    std::string outcome;  ///< "ok", "throttled", or the name of the error
    std::chrono::nanoseconds took{};
  };
  /// Told of every call that has ended, from the thread that made it; for metrics. Before the first call, once.
  virtual void on_call(std::function<void(const Call&)> tell) = 0;
};

}  // namespace croft::cloud
