#include "vpc/door/adapters.h"

#include <algorithm>
#include <span>

#include "os/interfaces.h"

namespace croft::edge {
namespace {

/// More than it takes to say thousands of addresses.
constexpr std::chrono::seconds kAnnounceSlack{5};

std::span<const net::Address> part_of(const std::vector<net::Address>& all, std::size_t begin) {
  return std::span(all).subspan(begin, std::min(os::kProbedMax, all.size() - begin));
}

}  // namespace

Result<std::string> WireProbe::name(Deadline deadline) const {
  if (!wire_.interface.empty()) return wire_.interface;
  TRY(const net::Mac known, wire_.mac(deadline));
  TRY(auto found, os::find_interface(known, clock_, deadline));
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
  TRY(const std::string name, this->name(deadline));
  std::vector<core::warm::Probed> answers;
  answers.reserve(addresses.size());
  for (std::size_t begin = 0; begin < addresses.size(); begin += os::kProbedMax) {
    TRY(const auto others, os::probe_neighbours(name, part_of(addresses, begin), timing(), clock_, random_, deadline));
    for (const auto& other : others) answers.push_back({addresses[answers.size()], other});
  }
  return answers;
}

void WireProbe::announce(const std::vector<net::Address>& addresses) {
  const auto name = this->name(Deadline::after(clock_.now(), kAnnounceSlack));
  if (!name) return;
  const os::ProbeTiming timing = this->timing();
  const auto time = timing.announce_num * timing.announce_interval + kAnnounceSlack;
  for (std::size_t begin = 0; begin < addresses.size(); begin += os::kProbedMax) {
    // Nobody waits for it to succeed: others learn of an address at the latest when they ask for it.
    (void)os::announce_neighbours(*name, part_of(addresses, begin), timing, clock_,
                                  Deadline::after(clock_.now(), time));
  }
}

Result<engine::HostUse> host_use(const Clock& clock, Deadline deadline) {
  TRY(auto found, os::host_use(os::kNamedNamespaces, clock, deadline));
  return engine::HostUse{std::move(found.own), std::move(found.namespaces)};
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
