#include "core/warm/reconcile.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace croft::core::warm {
namespace {

/// Findings of one pass: more are not looked at before these are settled.
constexpr std::size_t kFindingsMax = 1000;

const LivePod* pod_of(const std::vector<LivePod>& pods, const PodIdentity& identity) {
  const auto found = std::ranges::find_if(pods, [&](const LivePod& one) {
    const bool is_same_uid = identity.uid.empty() || one.pod.uid.empty() || identity.uid == one.pod.uid;
    return one.pod.name == identity.name && one.pod.namespace_name == identity.namespace_name && is_same_uid;
  });
  return found == pods.end() ? nullptr : &*found;
}

const LivePod* user_of(const std::optional<std::vector<LivePod>>& pods, const net::Address& address) {
  if (!pods) return nullptr;
  const auto found = std::ranges::find_if(*pods, [&](const LivePod& one) {
    return !one.ended && std::ranges::find(one.addresses, address) != one.addresses.end();
  });
  return found == pods->end() ? nullptr : &*found;
}

bool is_used_by_host(const Look& look, const net::Address& address) {
  return look.host && look.host->contains(address);
}

/// Records whose address lies on this node's interface, or is said to.
bool is_in_the_cloud(WarmState state) {
  return state == WarmState::free || state == WarmState::cooling || state == WarmState::held ||
         state == WarmState::probing || state == WarmState::quarantined;
}

class Judge {
 public:
  Judge(const Look& look, const Seen& before, const ReconcilePolicy& policy, const Instant& now)
      : look_(look), before_(before), policy_(policy), now_(now) {}

  void look_at(const WarmAddress& record) {
    if (record.since > look_.begun.wall - policy_.young) return;
    if (record.state == WarmState::held) look_at_holder(record);
    if (look_.cloud && is_in_the_cloud(record.state) && !given(record.address)) {
      const bool is_held = record.state == WarmState::held;
      Finding finding{record.address, is_held ? Odd::held_not_in_cloud : Odd::not_in_cloud,
                      "the cloud does not have it on this node's interface"};
      finding.record = record;
      add(std::move(finding));
    }
  }

  void look_at_unknown(const Given& given) {
    const LivePod* user = user_of(look_.pods, given.address);
    Finding finding{given.address, user != nullptr ? Odd::pod_unrecorded : Odd::unknown,
                    user != nullptr ? fmt::format("pod {}/{} has it, and there is no record", user->pod.namespace_name,
                                                  user->pod.name)
                                    : std::string("the cloud has it on this node's interface, and there is no record")};
    finding.given = given;
    if (user != nullptr) finding.pod = user->pod;
    if (user == nullptr && is_used_by_host(look_, given.address)) finding.detail += "; the host uses it";
    add(std::move(finding));
  }

  [[nodiscard]] const Given* given(const net::Address& address) const {
    const auto found = std::ranges::find(*look_.cloud, address, &Given::address);
    return found == look_.cloud->end() ? nullptr : &*found;
  }

  [[nodiscard]] Judgement done(std::size_t held) && {
    const auto is_gone = [](const Finding& finding) { return finding.odd == Odd::pod_gone && finding.is_due; };
    const auto gone = static_cast<std::size_t>(std::ranges::count_if(judgement_.findings, is_gone));
    const bool is_too_much =
        gone > policy_.share_of_at_least && static_cast<double>(gone) > policy_.share_max * static_cast<double>(held);
    if (is_too_much) {
      judgement_.brake =
          fmt::format("the pods of {} of {} held addresses seem to be gone at once: none is let go", gone, held);
      for (Finding& finding : judgement_.findings) finding.is_due &= finding.odd != Odd::pod_gone;
    }
    return std::move(judgement_);
  }

 private:
  void look_at_holder(const WarmAddress& record) {
    // Without pods, or with none at all, nothing is known; without the host one source alone would speak.
    if (!look_.pods || look_.pods->empty() || !look_.host || record.pod.name.empty()) return;
    const LivePod* pod = pod_of(*look_.pods, record.pod);
    if ((pod != nullptr && !pod->ended) || look_.host->contains(record.address)) return;
    if (user_of(look_.pods, record.address) != nullptr) return;
    Finding finding{record.address, Odd::pod_gone,
                    fmt::format("pod {}/{} {}, and the host does not use the address", record.pod.namespace_name,
                                record.pod.name, pod == nullptr ? "is not there" : "has ended")};
    finding.record = record;
    add(std::move(finding));
  }

  void add(Finding finding) {
    if (judgement_.findings.size() == kFindingsMax) return;
    const std::pair key(finding.address, finding.odd);
    const auto known = before_.since_boot.find(key);
    const auto since = known != before_.since_boot.end() ? known->second : now_.since_boot;
    judgement_.seen.since_boot.emplace(key, since);
    finding.is_due = known != before_.since_boot.end() && now_.since_boot - since >= policy_.grace &&
                     finding.odd != Odd::held_not_in_cloud;
    judgement_.findings.push_back(std::move(finding));
  }

  const Look& look_;
  const Seen& before_;
  const ReconcilePolicy& policy_;
  const Instant& now_;
  Judgement judgement_;
};

}  // namespace

std::string_view name_of(Odd odd) {
  switch (odd) {
    case Odd::pod_gone:
      return "pod_gone";
    case Odd::not_in_cloud:
      return "not_in_cloud";
    case Odd::held_not_in_cloud:
      return "held_not_in_cloud";
    case Odd::unknown:
      return "unknown";
    case Odd::pod_unrecorded:
      return "pod_unrecorded";
  }
  return "unknown";
}

bool is_used_by_pod(const Look& look, const net::Address& address) { return user_of(look.pods, address) != nullptr; }

Judgement judge(const std::vector<WarmAddress>& records, const std::vector<WarmIntent>& intents, const Look& look,
                const Seen& before, const ReconcilePolicy& policy, const Instant& now) {
  Judge judge(look, before, policy, now);
  std::size_t held = 0;
  std::set<net::Address> recorded;
  for (const WarmAddress& record : records) {
    held += record.state == WarmState::held ? 1U : 0U;
    // One that went to another node, and came back without our knowing, is unknown.
    if (record.state != WarmState::lent) recorded.insert(record.address);
    judge.look_at(record);
  }
  if (look.cloud) {
    for (const Given& given : *look.cloud) {
      if (recorded.contains(given.address) || look.apart.contains(given.address)) continue;
      if (intents.empty() || is_used_by_pod(look, given.address)) judge.look_at_unknown(given);
    }
  }
  return std::move(judge).done(held);
}

Step<bool> plan_act(const Snapshot& snapshot, const Finding& finding, std::chrono::seconds cooldown,
                    const Instant& now) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<bool>> {
    const auto key = warm_address_key(finding.address);
    const WarmAddress* known = reader.get(key);
    TRY_VOID(reader.ready());
    const bool is_as_judged = finding.record ? known != nullptr && *known == *finding.record
                                             : known == nullptr || known->state == WarmState::lent;
    if (!finding.is_due || !is_as_judged) return Plan<bool>{false, {}};
    const auto put = [&](WarmAddress after) { return Plan<bool>{true, {to_put(key, std::move(after))}}; };
    const auto taken_in = [&](WarmState state) {
      const Given& given = *finding.given;
      WarmAddress after;
      after.address = given.address;
      after.prefix_length = given.prefix_length;
      after.gateway = given.gateway;
      after.mac = given.mac;
      after.vpc = given.vpc;
      after.subnet = given.subnet;
      after.object = given.object;
      after.created = now.wall;
      return entered(std::move(after), state, now);
    };
    switch (finding.odd) {
      case Odd::pod_gone:
        return put(let_go(*known, cooldown, now));
      case Odd::not_in_cloud:
        return Plan<bool>{true, {to_delete(key)}};
      case Odd::held_not_in_cloud:
        return Plan<bool>{false, {}};
      case Odd::unknown: {
        WarmAddress after = taken_in(WarmState::quarantined);
        after.why = finding.detail;
        return put(std::move(after));
      }
      case Odd::pod_unrecorded: {
        WarmAddress after = taken_in(WarmState::held);
        after.verified = now.wall;
        after.pod = *finding.pod;
        return put(std::move(after));
      }
    }
    return Plan<bool>{false, {}};
  });
}

std::vector<Given> brought_by(const WarmIntent& intent, const std::vector<WarmAddress>& records, const Look& look) {
  std::vector<Given> brought;
  if (!look.cloud || !look.host) return brought;
  for (const Given& given : *look.cloud) {
    const auto record = std::ranges::find(records, given.address, &WarmAddress::address);
    const bool is_recorded = record != records.end() && record->state != WarmState::lent;
    if (is_recorded || brought.size() == intent.count) continue;
    if (intent.address && *intent.address != given.address) continue;
    if (look.host->contains(given.address) || is_used_by_pod(look, given.address)) continue;
    if (look.apart.contains(given.address)) continue;
    brought.push_back(given);
  }
  return brought;
}

}  // namespace croft::core::warm
