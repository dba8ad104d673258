#include "vpc/decide/reconcile.h"

#include <algorithm>

#include <fmt/format.h>

#include "vpc/decide/assign.h"
#include "vpc/decide/stock.h"

namespace croft::core::warm {
namespace {

using std::chrono::nanoseconds;
using What = Correction::What;

constexpr std::chrono::hours kLentKept{1};
/// A node ends a few pods at a time (docs/promises.md#promise-4).
constexpr std::size_t kGoneAtOnceMax = 5;
constexpr std::chrono::hours kManyGoneGrace{1};
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

/// Records whose address lies on this node's interface, or is said to.
bool is_in_the_cloud(StockAddressState state) {
  return has_no_holder(state) || state == StockAddressState::held || state == StockAddressState::quarantined;
}

/// Whether it is the pod that let go of it last: its status is late, and no witness against the record.
bool has_let_go(const StockAddress& record, const LivePod& pod) {
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

/// For a record that has changed since it was judged: what was found against its address is added.
StockAddress with_doubts(const StockAddress& known, const Correction& one) {
  StockAddress after = known;
  const bool is_held = known.state == StockAddressState::held;
  if (known.created != one.before->created || (!is_held && !has_no_holder(known.state))) return after;
  std::set<StockDoubt> doubts(known.doubts.begin(), known.doubts.end());
  // A use of an address that was nobody's may be by the pod that has got it meanwhile.
  const bool may_be_its_holder = is_held && one.before->state != StockAddressState::held;
  for (const StockDoubt doubt : one.after->doubts) {
    if (!may_be_its_holder || doubt == StockDoubt::not_in_cloud) doubts.insert(doubt);
  }
  after.doubts = {doubts.begin(), doubts.end()};
  return after;
}

class Pass {
 public:
  Pass(const Look& look, const std::vector<StockAddress>& records, const std::vector<StockIntent>& intents,
       Memory memory, const ReconcilePolicy& policy, const Instant& now)
      : look_(look), records_(records), intents_(intents), policy_(policy), now_(now), before_(std::move(memory)) {
    found_.memory = before_;
    found_.memory.since = {};
    if (look.cloud) {
      for (const cloud::CloudAddress& given : *look.cloud) listed_.emplace(given.address, &given);
    }
  }

  [[nodiscard]] Findings done() && {
    for (const StockAddress& record : records_) look_at(record);
    brake();
    look_at_strays();
    return std::move(found_);
  }

 private:
  /// Whether it has been so in each pass for this long.
  bool is_due(const net::Address& address, What what, nanoseconds bound) {
    const Sighting& first = found_.memory.since.see(before_.since, {address, what}, Sighting::at(now_));
    return first.has_stood(bound, now_.since_boot);
  }
  bool is_due(const net::Address& address, What what) { return is_due(address, what, policy_.grace); }

  void correct(const StockAddress& record, What what, std::optional<StockAddress> after, std::string why) {
    found_.corrections.push_back({record.address, what, record, std::move(after), std::move(why)});
  }

  void look_at(const StockAddress& record) {
    // The look does not speak of records that came after it began.
    if (!before_.stood_at(record, look_.begun)) return;
    if (record.state == StockAddressState::lent) {
      if (before_.seen_for(record, look_.begun) >= kLentKept) correct(record, What::forgotten, std::nullopt, {});
      return;
    }
    StockAddress here = record;
    const auto listed = listed_.find(record.address);
    const bool is_elsewhere = listed != listed_.end() && lies_elsewhere(record, *listed->second);
    if (is_elsewhere) {
      here.mac = listed->second->mac;
      if (!listed->second->object.empty()) here.object = listed->second->object;
    }
    std::string why = doubt(here);
    const bool is_unsure = record.state != StockAddressState::held && !here.doubts.empty();
    found_.is_any_unsure = found_.is_any_unsure || is_unsure;
    if (before_.seen_for(record, look_.begun) >= policy_.young() && act(record, here)) return;
    if (here == record) return;
    const What what = here.doubts != record.doubts ? What::unsure : What::follows;
    correct(record, what, std::move(here), std::move(why));
  }

  /// Sets what speaks against it now, and says it for people. A source that does not speak leaves what it has said.
  std::string doubt(StockAddress& record) {
    const bool is_free_for_others = has_no_holder(record.state);
    if (!is_free_for_others && record.state != StockAddressState::held) return {};
    std::vector<StockDoubt> doubts;
    std::string why;
    const auto weigh = [&](StockDoubt doubt, bool is_heard, bool speaks_against, std::string detail) {
      const bool was_there = std::ranges::find(record.doubts, doubt) != record.doubts.end();
      if (is_heard ? !speaks_against : !was_there) return;
      doubts.push_back(doubt);
      why += (why.empty() ? "" : "; ") + std::move(detail);
    };
    if (look_.cloud) {
      // A list may be cut: what it leaves out stays as it was until the cloud denies it by name.
      const bool is_missing = this->is_missing(record.address);
      weigh(StockDoubt::not_in_cloud, is_missing || listed_.contains(record.address), is_missing, kNotInCloud);
    } else {
      // The interface of now is known, and what it has is not: what was another's may be another node's.
      const bool is_of_other_card = look_.card && record.mac != look_.card->mac;
      weigh(StockDoubt::not_in_cloud, is_of_other_card, true, kOfOtherCard);
    }
    const bool host_uses = is_used_by_host(look_, record.address);
    if (is_free_for_others) weigh(StockDoubt::used_by_host, look_.host.has_value(), host_uses, kUsedByHost);
    const LivePod* user = user_of(look_, record.address);
    const bool is_known = user != nullptr && (is_free_for_others ? has_let_go(record, *user) && look_.host && !host_uses
                                                                 : is_same_pod(record.pod, user->pod));
    weigh(StockDoubt::used_by_pod, look_.pods.has_value(), user != nullptr && !is_known,
          fmt::format("pod {} says that it has it", user != nullptr ? promised_pod_name(user->pod) : ""));
    record.doubts = std::move(doubts);
    return why;
  }

  [[nodiscard]] bool is_missing(const net::Address& address) const {
    return look_.cloud && !listed_.contains(address) && (look_.is_first || look_.denied.contains(address));
  }

  /// `here` is the record as the look has it. False: nothing is to be done but what speaks against it.
  bool act(const StockAddress& record, const StockAddress& here) {
    if (record.state == StockAddressState::held && act_on_holder(record, here)) return true;
    bool is_used = false;
    if (act_on_user(record, here, is_used)) return true;
    if (is_used) return false;
    if (!is_in_the_cloud(record.state) || record.state == StockAddressState::held || !is_missing(record.address) ||
        !is_due(record.address, What::gone) || !look_.denied.contains(record.address)) {
      return false;
    }
    correct(record, What::gone, std::nullopt, kNotInCloud);
    return true;
  }

  /// For an address that is nobody's in the stock: somebody may live by it.
  bool act_on_user(const StockAddress& record, const StockAddress& here, bool& is_used) {
    // An address that somebody else answers for on the wire is no pod's, whatever it says.
    const bool is_set_aside = record.state == StockAddressState::releasing ||
                              record.state == StockAddressState::lending ||
                              (record.state == StockAddressState::quarantined && !record.other_mac);
    if ((!has_no_holder(record.state) && !is_set_aside) || !is_used_by_host(look_, record.address)) return false;
    is_used = true;
    const LivePod* user = user_of(look_, record.address);
    // A pod's own word keeps it from others as long as it lasts; for good it is put aside by what the host shows.
    if (user == nullptr && (is_set_aside || look_.said_by_pods.contains(record.address))) return false;
    const What what = user != nullptr ? What::held : What::set_aside;
    if (!is_due(record.address, what) || !look_.pods) return false;
    StockAddress after =
        with_state(here, user != nullptr ? StockAddressState::held : StockAddressState::quarantined, now_);
    std::string why = kUsedByHost;
    if (user != nullptr) {
      after.pod = user->pod;
      std::erase_if(after.doubts, [](StockDoubt doubt) { return doubt != StockDoubt::not_in_cloud; });
      why =
          fmt::format("pod {} and the host use it, and the record says that nobody does", promised_pod_name(user->pod));
    } else {
      after.why = why;
    }
    correct(record, what, std::move(after), std::move(why));
    return true;
  }

  bool act_on_holder(const StockAddress& record, const StockAddress& here) {
    // Without pods, or with none at all, nothing is known; without the host one source alone would speak.
    if (!look_.pods || look_.pods->empty() || !look_.host || record.pod.name.empty()) return false;
    const LivePod* pod = pod_of(*look_.pods, record.pod);
    const bool is_there = pod != nullptr && !pod->ended;
    // The pod's status is all that is known of an address without a container; one that the cloud does not have either
    // is a record of before.
    const bool has_another =
        is_there && (record.owner.container_id.empty() || is_missing(record.address)) &&
        std::ranges::any_of(pod->addresses, [&](const auto& one) { return one.family() == record.address.family(); });
    if ((is_there && !has_another) || look_.host->contains(record.address)) return false;
    if (user_of(look_, record.address) != nullptr || !is_due(record.address, What::let_go)) return false;
    const char* what = !is_there ? (pod == nullptr ? "is not there" : "has ended") : "has another address";
    correct(record, What::let_go, let_go(here, policy_.cooldown, now_),
            fmt::format("pod {}/{} {}, and the host does not use the address", record.pod.namespace_name,
                        record.pod.name, what));
    return true;
  }

  /// A node whose runtime's state is gone sends no DEL: where many pods seem gone at once, what both sources say for
  /// long is so.
  void brake() {
    const auto held =
        static_cast<std::size_t>(std::ranges::count(records_, StockAddressState::held, &StockAddress::state));
    const auto is_gone = [](const Correction& one) { return one.what == What::let_go; };
    const auto gone = static_cast<std::size_t>(std::ranges::count_if(found_.corrections, is_gone));
    if (gone <= kGoneAtOnceMax || !is_shrunken(held, held - gone)) return;
    found_.kept_by_brake = std::erase_if(found_.corrections, [&](const Correction& one) {
      return is_gone(one) && !is_due(one.address, What::let_go, kManyGoneGrace);
    });
  }

  /// Addresses that the cloud has here without a record.
  void look_at_strays() {
    if (!look_.cloud) return;
    std::map<net::Address, const StockAddress*> recorded;
    for (const StockAddress& record : records_) {
      // One that went to another node, and came back without our knowing, is unknown.
      recorded.emplace(record.address, &record);
    }
    for (const cloud::CloudAddress& given : *look_.cloud) {
      const auto known = recorded.find(given.address);
      const StockAddress* lent = known != recorded.end() ? known->second : nullptr;
      if ((lent != nullptr && lent->state != StockAddressState::lent) || look_.apart.contains(given.address)) continue;
      const LivePod* user = user_of(look_, given.address);
      if (user != nullptr || intents_.empty()) stray(given, lent, user);
    }
  }

  void stray(const cloud::CloudAddress& given, const StockAddress* lent, const LivePod* user) {
    const What what = user != nullptr ? What::held : What::set_aside;
    // A pod that got its address while no agent was there is known from the first look on.
    const bool is_known_at_once = look_.is_first && user != nullptr && intents_.empty();
    if (!is_due(given.address, what) && !is_known_at_once) return;
    std::string why = user != nullptr
                          ? fmt::format("pod {} has it, and there is no record", promised_pod_name(user->pod))
                          : std::string("the cloud has it on this node's interface, and there is no record");
    if (user == nullptr && is_used_by_host(look_, given.address)) why += "; the host uses it";
    StockAddress after = record_of(given);
    after.created = now_.wall;
    after =
        with_state(std::move(after), user != nullptr ? StockAddressState::held : StockAddressState::quarantined, now_);
    if (user != nullptr) {
      after.verified = now_.wall;
      after.pod = user->pod;
    } else {
      after.why = why;
    }
    found_.corrections.push_back(
        {given.address, what, lent != nullptr ? std::optional(*lent) : std::nullopt, std::move(after), std::move(why)});
  }

  const Look& look_;
  const std::vector<StockAddress>& records_;
  const std::vector<StockIntent>& intents_;
  const ReconcilePolicy& policy_;
  const Instant& now_;
  const Memory before_;
  std::map<net::Address, const cloud::CloudAddress*> listed_;
  Findings found_;
};

}  // namespace

// ---------------------------------------------------------------- what passes have shown

void Memory::note(const std::vector<StockAddress>& records, const Instant& now) {
  const auto before = std::exchange(noted_, {});
  for (const StockAddress& record : records) {
    noted_.see(before, record.address, Sighting::at(now), {record.state, record.since});
  }
}

bool Memory::stood_at(const StockAddress& record, const Instant& then) const {
  const Sighting* noted = noted_.find(record.address, {record.state, record.since});
  return noted != nullptr && noted->since_boot <= then.since_boot;
}

nanoseconds Memory::seen_for(const StockAddress& record, const Instant& now) const {
  const Sighting* noted = noted_.find(record.address, {record.state, record.since});
  return noted == nullptr ? nanoseconds{0} : now.since_boot - noted->since_boot;
}

// ---------------------------------------------------------------- the look

void take_host(Look& look, std::set<net::Address> own, const std::vector<std::vector<net::Address>>& namespaces,
               const std::optional<net::Prefix>& range) {
  look.host.emplace(std::move(own));
  look.said_by_pods.clear();
  for (const std::vector<net::Address>& one : namespaces) {
    std::set<net::Address> said;
    for (const net::Address& address : one) {
      if (!range || range->contains(address)) said.insert(address);
    }
    if (said.size() > kSaidByOnePodMax) continue;
    for (const net::Address& address : said) {
      if (!look.host->contains(address)) look.said_by_pods.insert(address);
    }
  }
  look.host->insert(look.said_by_pods.begin(), look.said_by_pods.end());
}

const LivePod* user_of(const Look& look, const net::Address& address) {
  if (!look.pods) return nullptr;
  const auto found = std::ranges::find_if(*look.pods, [&](const LivePod& one) {
    return !one.ended && std::ranges::find(one.addresses, address) != one.addresses.end();
  });
  return found == look.pods->end() ? nullptr : &*found;
}

bool is_used_by_host(const Look& look, const net::Address& address) {
  return look.host && look.host->contains(address);
}

bool is_used(const Look& look, const net::Address& address) {
  return is_used_by_host(look, address) || user_of(look, address) != nullptr;
}

// ---------------------------------------------------------------- the corrections

Findings reconcile(const Look& look, const std::vector<StockAddress>& records, const std::vector<StockIntent>& intents,
                   Memory memory, const ReconcilePolicy& policy, const Instant& now) {
  return Pass(look, records, intents, std::move(memory), policy, now).done();
}

Step<std::vector<Correction>> plan_corrections(const Snapshot& snapshot, const std::vector<Correction>& corrections) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<std::vector<Correction>>> {
    for (const Correction& one : corrections) reader.ask(warm_address_key(one.address));
    TRY(const Stock stock, Stock::read(reader));
    Plan<std::vector<Correction>> plan;
    for (const Correction& one : corrections) {
      const auto key = warm_address_key(one.address);
      const StockAddress* known = stock.find(one.address);
      if (stock.is_damaged(one.address)) continue;
      Correction done = one;
      const bool is_as_judged = one.before ? known != nullptr && *known == *one.before : known == nullptr;
      if (!is_as_judged) {
        if (one.what != What::unsure || known == nullptr) continue;
        done.after = with_doubts(*known, one);
        if (done.after == *known) continue;
      }
      plan.writes.push_back(done.after ? put_of(*done.after) : to_delete(key));
      plan.answer.push_back(std::move(done));
    }
    return plan;
  });
}

std::vector<Given> brought_by(const StockIntent& intent, const std::vector<StockAddress>& records, const Look& look) {
  std::vector<Given> brought;
  if (!look.cloud || !look.host) return brought;
  for (const cloud::CloudAddress& given : *look.cloud) {
    const auto record = std::ranges::find(records, given.address, &StockAddress::address);
    const bool is_recorded = record != records.end() && record->state != StockAddressState::lent;
    if (is_recorded || brought.size() == intent.count) continue;
    if (intent.address && *intent.address != given.address) continue;
    if (is_used(look, given.address)) continue;
    // An address that was asked for by name is set apart for its very pod.
    const bool is_promised = intent.address.has_value() && !promised_pod_name(intent).empty();
    if (look.apart.contains(given.address) && !is_promised) continue;
    brought.push_back({given, "", false});
  }
  return brought;
}

}  // namespace croft::core::warm
