#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/printable.h"
#include "register/owner.h"
#include "vpc/decide/stock.h"
#include "vpc/door/stock_server.h"

namespace croft::edge {
namespace {

namespace vpc = wire::vpc;
namespace warm = core::warm;
using std::chrono::nanoseconds;

std::string number(std::uint64_t value) { return std::to_string(value); }

/// Rounded up: what is still to be waited for is never 0.
std::string seconds_left(nanoseconds left) {
  const auto whole = std::chrono::ceil<std::chrono::seconds>(std::max(left, nanoseconds{0}));
  return number(static_cast<std::uint64_t>(whole.count()));
}

std::string seconds_ago(nanoseconds then, const Instant& now) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(std::max(now.since_boot - then, nanoseconds{0}));
  return number(static_cast<std::uint64_t>(whole.count()));
}

vpc::ShownTable stock_of(const StockShown& all, const Instant& now) {
  warm::Counts counts;
  for (const core::StockAddress& one : all.view.addresses) warm::count(counts, one, now);
  for (const core::StockIntent& one : all.view.intents) counts.asked += warm::is_rebuild(one) ? 0 : one.count;
  const auto lent = std::ranges::count(all.view.addresses, core::StockAddressState::lent, &core::StockAddress::state);
  vpc::ShownTable table{"stock", {{"state"}, {"count", true}}, {}};
  for (const auto& [state, count] :
       {std::pair("free", counts.free), std::pair("held", counts.held), std::pair("cooling", counts.cooling),
        std::pair("probing", counts.probing), std::pair("asked", counts.asked), std::pair("leaving", counts.leaving),
        std::pair("lent", static_cast<std::uint32_t>(lent)), std::pair("quarantined", counts.quarantined),
        std::pair("doubted", counts.doubted)}) {
    table.rows.push_back({state, number(count)});
  }
  return table;
}

std::string pod_before(const core::Cooling& cooling) {
  const auto value = [&](const char* key) {
    const auto found = cooling.previous_secondary.find(key);
    return found == cooling.previous_secondary.end() ? std::string() : found->second;
  };
  const std::string pod = value(core::kPodKey);
  return pod.empty() ? pod : value(core::kNamespaceKey) + "/" + pod;
}

/// The address that is free first comes first.
vpc::ShownTable cooling_of(const StockShown& all, const Instant& now) {
  std::vector<std::pair<WallTime, const core::StockAddress*>> queue;
  for (const core::StockAddress& one : all.view.addresses) {
    if (one.state != core::StockAddressState::cooling || !one.cooling || core::is_free_at(one, now)) continue;
    queue.emplace_back(core::cooldown_end(*one.cooling, one.cooling->cooldown, now), &one);
  }
  std::ranges::sort(queue, {}, [](const auto& one) { return std::pair(one.first, one.second->address); });
  vpc::ShownTable table{"cooling", {{"ip"}, {"leftSeconds", true}, {"pod"}}, {}};
  for (const auto& [end, one] : queue) {
    table.rows.push_back({one->address.to_string(), seconds_left(end - now.wall), pod_before(*one->cooling)});
  }
  return table;
}

std::string_view name_of(core::StockDoubt doubt) {
  switch (doubt) {
    case core::StockDoubt::not_in_cloud:
      return "the cloud does not show it here";
    case core::StockDoubt::used_by_host:
      return "the host uses it";
    case core::StockDoubt::used_by_pod:
      return "a pod says that it has it";
  }
  return "";
}

std::string doubts_of(const core::StockAddress& one) {
  std::string doubts;
  for (const core::StockDoubt doubt : one.doubts) {
    doubts += fmt::format("{}{}", doubts.empty() ? "" : "; ", name_of(doubt));
  }
  return doubts;
}

vpc::ShownTable aside_of(const StockShown& all) {
  vpc::ShownTable table{"setAside", {{"ip"}, {"state"}, {"why"}}, {}};
  for (const core::StockAddress& one : all.view.addresses) {
    const std::string ip = one.address.to_string();
    if (one.state == core::StockAddressState::quarantined) table.rows.push_back({ip, "quarantined", one.why});
    if (one.state == core::StockAddressState::releasing) table.rows.push_back({ip, "releasing", ""});
    if (one.state == core::StockAddressState::lending) table.rows.push_back({ip, "lending", "to " + one.peer});
    if (!one.doubts.empty()) table.rows.push_back({ip, "doubted", doubts_of(one)});
  }
  for (const auto& [name, why] : all.view.damaged) {
    const std::string ip = name.substr(name.find('/') + 1);  // of an intent it is no address
    if (net::Address::parse(ip)) table.rows.push_back({ip, "damaged", printable(why.message, Printed::line)});
  }
  return table;
}

vpc::ShownTable intents_of(const StockShown& all, const Instant& now) {
  vpc::ShownTable table{"intents", {{"id"}, {"what"}, {"count", true}, {"ageSeconds", true}}, {}};
  for (const core::StockIntent& one : all.view.intents) {
    const bool is_of_this_boot = one.begun_at.boot == now.boot;
    table.rows.push_back({one.id, one.what == core::StockIntent::What::borrow ? "borrow" : "allocate",
                          number(one.count), is_of_this_boot ? seconds_ago(one.begun_at.since_boot, now) : ""});
  }
  return table;
}

const char* name_of(warm::Outcome outcome) {
  switch (outcome) {
    case warm::Outcome::done:
      return "done";
    case warm::Outcome::conflict:
      return "conflict";
    case warm::Outcome::exhausted:
      return "exhausted";
    case warm::Outcome::away:
      return "away";
    case warm::Outcome::refused:
      return "refused";
  }
  return "";
}

vpc::ShownTable keeper_of(const StockShown& all, const Instant& now) {
  const engine::KeeperOutlook& is = all.outlook;
  vpc::ShownTable table{"keeper", {{"property"}, {"value"}}, {}};
  table.rows.push_back({"wish", is.why});
  table.rows.push_back({"lastOutcome", name_of(is.memory.last)});
  table.rows.push_back({"failuresInARow", number(is.memory.failures)});
  table.rows.push_back({"subnetExhausted", is.memory.is_exhausted ? "true" : "false"});
  table.rows.push_back({"asksAgainInSeconds", seconds_left(is.memory.grow_not_before - now.since_boot)});
  table.rows.push_back({"givesBackInSeconds", seconds_left(is.memory.shrink_not_before - now.since_boot)});
  table.rows.push_back({"nextRoundInSeconds", seconds_left(is.next_round - now.since_boot)});
  if (is.trouble) table.rows.push_back({"trouble", is.trouble->message});
  if (is.trouble) table.rows.push_back({"troubleSecondsAgo", seconds_ago(is.trouble_at, now)});
  return table;
}

vpc::ShownTable cloud_of(const StockShown& all, const Instant& now) {
  vpc::ShownTable table{"cloudCalls",
                        {{"action"},
                         {"good", true},
                         {"failed", true},
                         {"lastSecondsAgo", true},
                         {"lastFailure"},
                         {"failureSecondsAgo", true}},
                        {}};
  for (const auto& [action, calls] : all.cloud) {
    table.rows.push_back({action, number(calls.good), number(calls.failed), seconds_ago(calls.last, now),
                          calls.last_failure, calls.failed == 0 ? "" : seconds_ago(calls.failed_at, now)});
  }
  return table;
}

}  // namespace

std::string why_aside(const core::StockAddress& one) {
  switch (one.state) {
    case core::StockAddressState::quarantined:
      return one.why;
    case core::StockAddressState::releasing:
      return "it is being given back" + std::string(vpc::kNotConfirmed);
    case core::StockAddressState::lending:
      return fmt::format("it is being lent to {}{}", one.peer, vpc::kNotConfirmed);
    default:
      return doubts_of(one);
  }
}

vpc::ShowAnswer shown(const StockShown& all, const Instant& now) {
  vpc::ShownTable agent{"agent", {{"property"}, {"value"}}, {}};
  for (const auto& [property, value] : all.agent) agent.rows.push_back({property, value});
  vpc::ShownTable peers{"peers", {{"node"}, {"address"}, {"free", true}}, {}};
  for (const auto& peer : all.peers) peers.rows.push_back({peer.node, peer.address, number(peer.free)});
  vpc::ShownTable calls{"lastCalls", {{"secondsAgo", true}, {"call"}, {"who"}, {"outcome"}}, {}};
  for (const StockHeard& one : all.heard) {
    calls.rows.push_back({seconds_ago(one.at, now), one.call, one.who, one.outcome});
  }
  vpc::ShowAnswer answer;
  answer.tables = {std::move(agent),    stock_of(all, now), cooling_of(all, now), aside_of(all),   intents_of(all, now),
                   keeper_of(all, now), cloud_of(all, now), std::move(peers),     std::move(calls)};
  return answer;
}

}  // namespace croft::edge
