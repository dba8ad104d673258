#include "vpc/door/adapters.h"

#include <algorithm>
#include <cstdint>
#include <span>

#include "os/interfaces.h"

namespace croft::edge {
namespace {

/// More than it takes to say thousands of addresses.
constexpr std::chrono::seconds kAnnounceSlack{5};

[[nodiscard]] Result<std::vector<os::IpBytes>> all_bytes(const std::vector<net::Address>& addresses) {
  std::vector<os::IpBytes> out;
  out.reserve(addresses.size());
  for (const net::Address& address : addresses) {
    if (!address.is_valid()) return fail(invalid_argument("one of the addresses to probe is none"));
    out.push_back(to_bytes(address));
  }
  return out;
}

std::span<const os::IpBytes> part_of(const std::vector<os::IpBytes>& all, std::size_t begin) {
  return std::span(all).subspan(begin, std::min(os::kProbedMax, all.size() - begin));
}

std::vector<net::Address> addresses_of(const std::vector<os::IpBytes>& found) {
  std::vector<net::Address> all;
  all.reserve(found.size());
  for (const auto& one : found) all.push_back(from_bytes(one));
  return all;
}

}  // namespace

Result<std::string> WireProbe::name(Deadline deadline) const {
  if (!wire_.interface.empty()) return wire_.interface;
  TRY(const net::Mac known, wire_.mac(deadline));
  os::MacBytes mac{};
  std::ranges::copy(known.bytes, mac.begin());
  TRY(auto found, os::find_interface(mac, clock_, deadline));
  return std::move(found.name);
}

os::ProbeTiming WireProbe::timing() const {
  os::ProbeTiming timing;
  timing.probe_wait = timing.probe_min = wire_.unit;
  timing.probe_max = timing.announce_wait = timing.announce_interval = 2 * wire_.unit;
  return timing;
}

Result<std::vector<core::warm::Probed>> WireProbe::probe(const std::vector<net::Address>& addresses,
                                                         Deadline deadline) {
  TRY(const auto all, all_bytes(addresses));
  TRY(const std::string name, this->name(deadline));
  std::vector<core::warm::Probed> answers;
  answers.reserve(all.size());
  for (std::size_t begin = 0; begin < all.size(); begin += os::kProbedMax) {
    TRY(const auto others, os::probe_neighbours(name, part_of(all, begin), timing(), clock_, random_, deadline));
    for (const auto& other : others) {
      answers.push_back({addresses[answers.size()], other ? std::optional(net::Mac{*other}) : std::nullopt});
    }
  }
  return answers;
}

void WireProbe::announce(const std::vector<net::Address>& addresses) {
  const auto all = all_bytes(addresses);
  const auto name = this->name(Deadline::after(clock_.now(), kAnnounceSlack));
  if (!all || !name) return;
  const os::ProbeTiming timing = this->timing();
  const auto time = timing.announce_num * timing.announce_interval + kAnnounceSlack;
  for (std::size_t begin = 0; begin < all->size(); begin += os::kProbedMax) {
    // Nobody waits for it to succeed: others learn of an address at the latest when they ask for it.
    (void)os::announce_neighbours(*name, part_of(*all, begin), timing, clock_, Deadline::after(clock_.now(), time));
  }
}

os::IpBytes to_bytes(const net::Address& address) {
  os::IpBytes out;
  out.is_v6 = address.is_v6();
  net::U128 rest = address.value();
  for (std::size_t i = out.is_v6 ? 16 : 4; i-- > 0;) {
    out.bytes.at(i) = static_cast<std::uint8_t>(rest.lo & 0xff);
    rest = rest >> 8;
  }
  return out;
}

net::Address from_bytes(const os::IpBytes& bytes) {
  net::U128 value;
  const std::size_t size = bytes.is_v6 ? 16 : 4;
  for (std::size_t i = 0; i < size; ++i) value = (value << 8) + net::U128(bytes.bytes.at(i));
  return net::Address::from(bytes.is_v6 ? net::Family::v6 : net::Family::v4, value);
}

Result<engine::HostUse> host_use(const Clock& clock, Deadline deadline) {
  TRY(const auto found, os::host_use(os::kNamedNamespaces, clock, deadline));
  engine::HostUse use{addresses_of(found.own), {}};
  for (const auto& one : found.namespaces) use.namespaces.push_back(addresses_of(one));
  return use;
}

Result<std::vector<core::warm::LivePod>> live_pods(const ListPods& list) {
  std::vector<core::warm::LivePod> all;
  const auto take = [&](const core::collect::PodFact& fact) {
    if (fact.is_in_node_network) return;
    // The mirror of a static pod has a UID that kubelet and its runtime do not know.
    all.push_back({{fact.name, fact.namespace_name, fact.is_mirror ? std::string() : fact.uid},
                   fact.addresses,
                   fact.phase == "Succeeded" || fact.phase == "Failed"});
  };
  TRY_VOID(list([&] { all.clear(); }, take));
  return all;
}

}  // namespace croft::edge
