#include "vpc/decide/reconcile.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "vpc/decide/promised.h"

namespace croft::core::warm {
namespace {

/// Findings of one pass: more are not looked at before these are settled.
constexpr std::size_t kFindingsMax = 1000;
constexpr const char* kNotInCloud = "the cloud does not have it on this node's interface";
constexpr const char* kOfOtherCard =
    "it is recorded of another interface, and the cloud has not said that this node's has it";
constexpr const char* kUsedByHost = "the host uses it, and nobody is known to have it";

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

/// Records of an address that no pod has and that may come to one.
bool is_nobodys(WarmState state) {
  return state == WarmState::free || state == WarmState::cooling || state == WarmState::probing;
}

/// Whether it is the pod that let go of it last: its status is late, and no witness against the record.
bool has_let_go(const WarmAddress& record, const LivePod& pod) {
  if (!record.cooling) return false;
  const auto& before = record.cooling->previous_secondary;
  const auto is = [&](const char* key, const std::string& value) {
    const auto found = before.find(key);
    return found != before.end() && found->second == value;
  };
  return is(kNamespaceKey, pod.pod.namespace_name) && is(kPodKey, pod.pod.name);
}

/// Nothing is known of a holder without a pod: it may be any.
bool is_same_pod(const PodIdentity& holder, const PodIdentity& pod) {
  return holder.name.empty() || (holder.name == pod.name && holder.namespace_name == pod.namespace_name);
}

std::string text_of(const LivePod& pod) { return fmt::format("{}/{}", pod.pod.namespace_name, pod.pod.name); }

/// What speaks against an address whose record may have changed since it was judged.
std::vector<WarmDoubt> doubts_after(const WarmAddress& known, const DoubtChange& change) {
  if (known == change.record) return change.doubts;
  const bool is_held = known.state == WarmState::held;
  const bool came_anew = known.created != change.record.created;
  if (came_anew || (!is_held && !is_nobodys(known.state))) return known.doubts;
  std::set<WarmDoubt> doubts(known.doubts.begin(), known.doubts.end());
  // Who uses what was nobody's may be the pod that has got it meanwhile.
  const bool may_be_its_holder = is_held && change.record.state != WarmState::held;
  for (const WarmDoubt doubt : change.doubts) {
    if (!may_be_its_holder || doubt == WarmDoubt::not_in_cloud) doubts.insert(doubt);
  }
  return {doubts.begin(), doubts.end()};
}

class Judge {
 public:
  Judge(const Look& look, const Standing& standing, const Seen& before, const ReconcilePolicy& policy,
        const Instant& now)
      : look_(look), standing_(standing), before_(before), policy_(policy), now_(now) {}

  void look_at(const WarmAddress& record) {
    // What came after the look began is not what it speaks of.
    if (!standing_.stood_at(record, look_.begun)) return;
    look_at_doubts(record);
    const bool is_missing = look_.cloud && is_in_the_cloud(record.state) && !given(record.address);
    in_cloud_ += is_in_the_cloud(record.state) ? 1U : 0U;
    if (is_missing) missing_.push_back(record.address);
    if (standing_.age(record, look_.begun) < policy_.young) return;
    if (record.state == WarmState::held) look_at_holder(record);
    if (look_at_user(record) || !is_missing) return;
    const bool is_held = record.state == WarmState::held;
    Finding finding{record.address, is_held ? Odd::held_not_in_cloud : Odd::not_in_cloud, kNotInCloud};
    finding.record = record;
    add(std::move(finding), !is_held && look_.denied.contains(record.address));
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
    add(std::move(finding), true);
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
    // Of a node whose runtime's state is gone no DEL comes: what both sources say for so long is so.
    std::size_t kept = 0;
    for (Finding& finding : judgement_.findings) {
      if (!is_too_much || !is_gone(finding)) continue;
      finding.is_due =
          now_.since_boot - judgement_.seen.since_boot.at({finding.address, finding.odd}) >= policy_.gone_grace;
      kept += finding.is_due ? 0U : 1U;
    }
    if (kept > 0) {
      judgement_.brake = fmt::format(
          "the pods of {} of {} held addresses seem to be gone at once: what is so in each look for {} s is let go",
          gone, held, policy_.gone_grace.count());
    }
    brake_for_the_cloud();
    return std::move(judgement_);
  }

 private:
  void look_at_doubts(const WarmAddress& record) {
    const bool is_free_for_others = is_nobodys(record.state);
    if (!is_free_for_others && record.state != WarmState::held) return;
    DoubtChange change{record, {}, {}};
    // A source that does not speak leaves what it has said.
    const auto weigh = [&](WarmDoubt doubt, bool is_heard, bool speaks_against, std::string detail) {
      const bool was_there = std::ranges::find(record.doubts, doubt) != record.doubts.end();
      if (is_heard ? !speaks_against : !was_there) return;
      change.doubts.push_back(doubt);
      change.detail += (change.detail.empty() ? "" : "; ") + std::move(detail);
    };
    if (look_.cloud) {
      weigh(WarmDoubt::not_in_cloud, true, given(record.address) == nullptr, kNotInCloud);
    } else {
      // The interface of now is known, and what it has is not: what was another's may be another node's.
      const bool is_of_other_card = look_.card && record.mac != *look_.card;
      weigh(WarmDoubt::not_in_cloud, is_of_other_card, true, kOfOtherCard);
    }
    const bool host_uses = is_used_by_host(look_, record.address);
    if (is_free_for_others) weigh(WarmDoubt::used_by_host, look_.host.has_value(), host_uses, kUsedByHost);
    const LivePod* user = user_of(look_.pods, record.address);
    const bool is_known = user != nullptr && (is_free_for_others ? has_let_go(record, *user) && look_.host && !host_uses
                                                                 : is_same_pod(record.pod, user->pod));
    weigh(WarmDoubt::used_by_pod, look_.pods.has_value(), user != nullptr && !is_known,
          fmt::format("pod {} says that it has it", user != nullptr ? text_of(*user) : ""));
    if (change.doubts != record.doubts) judgement_.doubts.push_back(std::move(change));
  }

  /// Of what is nobody's in the stock; true: somebody lives by it.
  bool look_at_user(const WarmAddress& record) {
    // What somebody else answers for on the wire is no pod's, whatever it says.
    const bool is_set_aside = record.state == WarmState::releasing || record.state == WarmState::lending ||
                              (record.state == WarmState::quarantined && !record.other_mac);
    if ((!is_nobodys(record.state) && !is_set_aside) || !is_used_by_host(look_, record.address)) return false;
    const LivePod* user = user_of(look_.pods, record.address);
    // A pod's own word keeps it from others as long as it lasts; for good it is put aside by what the host shows.
    if (user == nullptr && (is_set_aside || look_.said_by_pods.contains(record.address))) return true;
    Finding finding{record.address, user != nullptr ? Odd::used_by_pod : Odd::used_by_host,
                    user != nullptr ? fmt::format("pod {} and the host use it, and the record says that nobody does",
                                                  text_of(*user))
                                    : std::string(kUsedByHost)};
    finding.record = record;
    if (user != nullptr) finding.pod = user->pod;
    add(std::move(finding), look_.pods.has_value());
    return true;
  }

  /// One list that is empty or cut would empty the stock, and what is asked for in their place does not make it better.
  void brake_for_the_cloud() {
    const bool is_too_much = static_cast<double>(missing_.size()) > policy_.share_max * static_cast<double>(in_cloud_);
    std::set<net::Address>& too_many = judgement_.seen.too_many_missing;
    for (const net::Address& address : missing_) {
      if (is_too_much || before_.too_many_missing.contains(address)) too_many.insert(address);
    }
    if (!look_.cloud) too_many = before_.too_many_missing;
    std::size_t kept = 0;
    for (Finding& finding : judgement_.findings) {
      if (finding.odd != Odd::not_in_cloud || !finding.is_due || !too_many.contains(finding.address)) continue;
      const auto since = judgement_.seen.since_boot.at({finding.address, finding.odd});
      finding.is_due = now_.since_boot - since >= policy_.missing_grace;
      kept += finding.is_due ? 0U : 1U;
    }
    if (kept == 0) return;
    judgement_.cloud_brake = fmt::format(
        "the cloud does not show {} of {} addresses of the stock: none of them is given to a pod, and the records "
        "of what was missing in such numbers stay for {} s",
        missing_.size(), in_cloud_, policy_.missing_grace.count());
  }

  void look_at_holder(const WarmAddress& record) {
    // Without pods, or with none at all, nothing is known; without the host one source alone would speak.
    if (!look_.pods || look_.pods->empty() || !look_.host || record.pod.name.empty()) return;
    const LivePod* pod = pod_of(*look_.pods, record.pod);
    const bool is_there = pod != nullptr && !pod->ended;
    // Of an address whose container is not known the pod's status is all that is known.
    const bool has_another =
        is_there && record.owner.container_id.empty() &&
        std::ranges::any_of(pod->addresses, [&](const auto& one) { return one.family() == record.address.family(); });
    if ((is_there && !has_another) || look_.host->contains(record.address)) return;
    if (user_of(look_.pods, record.address) != nullptr) return;
    const char* what = !is_there ? (pod == nullptr ? "is not there" : "has ended") : "has another address";
    Finding finding{record.address, Odd::pod_gone,
                    fmt::format("pod {}/{} {}, and the host does not use the address", record.pod.namespace_name,
                                record.pod.name, what)};
    finding.record = record;
    add(std::move(finding), true);
  }

  void add(Finding finding, bool may_be_due) {
    if (judgement_.findings.size() == kFindingsMax) return;
    const std::pair key(finding.address, finding.odd);
    const auto known = before_.since_boot.find(key);
    const auto since = known != before_.since_boot.end() ? known->second : now_.since_boot;
    judgement_.seen.since_boot.emplace(key, since);
    finding.is_due = may_be_due && known != before_.since_boot.end() && now_.since_boot - since >= policy_.grace;
    judgement_.findings.push_back(std::move(finding));
  }

  const Look& look_;
  const Standing& standing_;
  const Seen& before_;
  const ReconcilePolicy& policy_;
  const Instant& now_;
  std::size_t in_cloud_ = 0;           ///< records that say so
  std::vector<net::Address> missing_;  ///< of these, those that the cloud does not show
  Judgement judgement_;
};

}  // namespace

std::string_view name_of(Odd odd) {
  switch (odd) {
    case Odd::pod_gone:
      return "pod_gone";
    case Odd::used_by_pod:
      return "used_by_pod";
    case Odd::used_by_host:
      return "used_by_host";
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

void take_host(Look& look, std::set<net::Address> own, const std::vector<std::vector<net::Address>>& namespaces,
               const std::optional<net::Prefix>& range) {
  look.host.emplace(std::move(own));
  look.said_by_pods.clear();
  look.namespaces_unheard = 0;
  for (const std::vector<net::Address>& one : namespaces) {
    std::set<net::Address> said;
    for (const net::Address& address : one) {
      Given said_one;
      said_one.address = address;
      const bool counts = range ? range->contains(address) : !why_unfit(said_one, {});
      if (counts) said.insert(address);
    }
    if (said.size() > kSaidByOnePodMax) {
      ++look.namespaces_unheard;
      continue;
    }
    for (const net::Address& address : said) {
      if (!look.host->contains(address)) look.said_by_pods.insert(address);
    }
  }
  look.host->insert(look.said_by_pods.begin(), look.said_by_pods.end());
}

bool is_used_by_pod(const Look& look, const net::Address& address) { return user_of(look.pods, address) != nullptr; }

Judgement judge(const std::vector<WarmAddress>& records, const std::vector<WarmIntent>& intents, const Look& look,
                const Standing& standing, const Seen& before, const ReconcilePolicy& policy, const Instant& now) {
  Judge judge(look, standing, before, policy, now);
  std::size_t held = 0, set_aside = 0, outside = 0, too_many = 0;
  std::set<net::Address> recorded;
  for (const WarmAddress& record : records) {
    held += record.state == WarmState::held ? 1U : 0U;
    set_aside += record.state == WarmState::quarantined ? 1U : 0U;
    // One that went to another node, and came back without our knowing, is unknown.
    if (record.state != WarmState::lent) recorded.insert(record.address);
    judge.look_at(record);
  }
  if (look.cloud) {
    for (const Given& given : *look.cloud) {
      if (recorded.contains(given.address) || look.apart.contains(given.address)) continue;
      const bool is_used = is_used_by_pod(look, given.address);
      if (!is_used && look.range && !look.range->contains(given.address)) {
        ++outside;
      } else if (!is_used && set_aside >= kStraysMax) {
        ++too_many;
      } else if (intents.empty() || is_used) {
        set_aside += is_used ? 0U : 1U;
        judge.look_at_unknown(given);
      }
    }
  }
  Judgement judgement = std::move(judge).done(held);
  if (outside + too_many > 0) {
    judgement.left_out = fmt::format(
        "the cloud lists on this node's interface {} addresses that are not of its subnet and {} more than {} that "
        "nobody here knows: they are not recorded",
        outside, too_many, kStraysMax);
  }
  return judgement;
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
      case Odd::used_by_pod: {
        WarmAddress after = entered(*known, WarmState::held, now);
        after.pod = *finding.pod;
        std::erase_if(after.doubts, [](WarmDoubt doubt) { return doubt != WarmDoubt::not_in_cloud; });
        return put(std::move(after));
      }
      case Odd::used_by_host: {
        WarmAddress after = entered(*known, WarmState::quarantined, now);
        after.why = finding.detail;
        return put(std::move(after));
      }
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

Step<Moved> plan_doubts(const Snapshot& snapshot, const std::vector<DoubtChange>& changes) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<Moved>> {
    for (const DoubtChange& change : changes) reader.ask(warm_address_key(change.record.address));
    TRY_VOID(reader.ready());
    Plan<Moved> plan;
    for (const DoubtChange& change : changes) {
      const WarmAddress* known = reader.sound(warm_address_key(change.record.address));
      if (known == nullptr || plan.writes.size() == kMovesMax) continue;
      WarmAddress after = *known;
      after.doubts = doubts_after(*known, change);
      if (after.doubts == known->doubts) continue;
      plan.answer.addresses.push_back(after);
      plan.writes.push_back(put_of(std::move(after)));
    }
    return plan;
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
    // What it was asked for by name is set apart for the very pod that it is for.
    const bool is_promised = intent.address.has_value() && !promise_of(intent).empty();
    if (look.apart.contains(given.address) && !is_promised) continue;
    brought.push_back(given);
  }
  return brought;
}

}  // namespace croft::core::warm
