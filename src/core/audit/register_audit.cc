#include "core/audit/register_audit.h"

#include <algorithm>
#include <compare>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "base/quoted.h"
#include "base/time_text.h"
#include "core/block/config_changes.h"
#include "core/block/draft.h"
#include "core/block/pool_choice.h"

namespace croft::core::audit {
namespace {

using FindingKind = Finding::Kind;
using Netns = CachedAttachment::Netns;

constexpr Kind kKindsRead[] = {Kind::pool,   Kind::reservation, Kind::block,           Kind::affinity,
                               Kind::handle, Kind::vacancy,     Kind::high_water_mark, Kind::node};
/// How far clocks of nodes may differ before a release counts as one in the future.
constexpr std::chrono::seconds kClockTolerance{60};

std::string_view text_of(AffinityState state) { return state == AffinityState::pending ? "pending" : "to be deleted"; }

class Audit {
 public:
  Audit(const Snapshot& snapshot, const std::vector<Unreadable>& unreadable, const Runtime& runtime, const Instant& now)
      : unreadable_(unreadable),
        reader_(snapshot),
        pools_(reader_),
        live_(runtime.live),
        grace_(runtime.grace),
        live_node_(runtime.node),
        now_(now) {
    if (!live_) return;
    for (const CachedAttachment& entry : live_->entries) by_handle_.emplace(handle_of(entry.owner), &entry);
  }

  Report run() {
    report_unreadable();
    report_.nodes_recorded = reader_.list({Kind::node, ""}).size();
    if (const auto valid = check_config(pools_.config()); !valid) {
      add(FindingKind::config_contradicts, "configuration", valid.error().message, "`croft config set`");
    }
    check_pools();
    for (const auto& [key, value] : reader_.list({Kind::block, ""})) check_one_block(key, std::get<Block>(value));
    check_overlaps();
    check_affinities();
    check_pods();
    check_handles();
    finish_counts();
    return std::move(report_);
  }

 private:
  void report_unreadable() {
    std::set<Key> told;
    for (const auto& [read_as, error, beside] : unreadable_) {
      const auto cidr = read_as.kind == Kind::block ? block_cidr_of(read_as) : std::nullopt;
      if (cidr) unreadable_blocks_.insert(cidr->to_string());
      if (read_as.name.empty()) unlistable_.insert(read_as.kind);
      if (read_as.kind == Kind::pool) all_pools_known_ = false;
      // What is damaged beside a block is a record by itself, and was read as one too.
      const Key key = beside && cidr ? block_beside_key(*cidr) : read_as;
      if (!told.insert(key).second) continue;
      const std::string subject = std::string(name_of(key.kind)) + " " + (key.name.empty() ? "(all)" : key.name);
      if (error.code == ErrorCode::newer_version) {
        add(FindingKind::record_newer, subject, error.message, "upgrade Croft here");
      } else if (key.kind == Kind::block && !key.name.empty() && !cidr) {
        add_no_block(key, error.message);
      } else if (key.kind == Kind::block && !key.name.empty()) {
        add(FindingKind::block_corrupt, cidr ? "block " + cidr->to_string() : subject, error.message,
            "restore the store from a backup; its addresses stay taken. One that no backup has, and whose pods are "
            "gone: "
            "`croft record remove block " +
                in_shell_quotes_if_needed(key.name) + " --force`");
      } else if (beside && key.kind == Kind::pool) {
        add(FindingKind::record_unreadable, subject, error.message,
            fmt::format("restore it from a backup or write it anew (docs/runbooks/damaged-records.md); else `croft "
                        "record remove pool {}` takes away that alone: the pool stays, its gateway and cooldown are "
                        "to be set again",
                        in_shell_quotes_if_needed(key.name)));
      } else if (key.kind == Kind::block_beside && !key.name.empty()) {
        add(FindingKind::record_unreadable, subject, error.message,
            fmt::format("restore the store from a backup; one that no backup has: `croft record remove {} {} --force`; "
                        "what rests there may then be given out at once",
                        name_of(key.kind), in_shell_quotes_if_needed(key.name)));
      } else {
        add(FindingKind::record_unreadable, subject, error.message,
            fmt::format("restore the store from a backup; one that no backup has: `croft record remove {} {}{}`",
                        name_of(key.kind), key.name.empty() ? "NAME" : in_shell_quotes_if_needed(key.name),
                        loss_without(key.kind).empty() || key.kind == Kind::node ? "" : " --force"));
      }
    }
  }

  /// A record in the place of blocks under a name that no block can have.
  void add_no_block(const Key& key, const std::string& what) {
    add(FindingKind::block_corrupt, "block " + key.name,
        "no block can have this name, and nobody an address by it: " + what,
        fmt::format("`croft record remove block {} --force`", key.name));
  }

  /// Whether a block may be there although it was not read.
  [[nodiscard]] bool is_unknown(const std::string& block) const {
    return unlistable_.contains(Kind::block) || unreadable_blocks_.contains(block);
  }

  void check_selectors(const Pool& pool) {
    for (const auto& selected : {selects_node(pool, {}), selects_namespace(pool, {})}) {
      if (selected) continue;
      add(FindingKind::selector_invalid, "pool " + pool.name, selected.error().message,
          "correct the selector; until then the pool serves only requests that name it");
    }
  }

  void add(FindingKind kind, std::string subject, std::string what, std::string remedy) {
    report_.findings.push_back({kind, std::move(subject), std::move(what), std::move(remedy)});
  }

  /// What records say is reserved, apart from what pools keep by themselves.
  [[nodiscard]] net::Intervals recorded_reservations() {
    std::vector<net::Prefix> cidrs;
    for (const auto& [key, value] : reader_.sound({Kind::reservation, ""})) {
      const auto& reservation = std::get<Reservation>(value);
      cidrs.insert(cidrs.end(), reservation.cidrs.begin(), reservation.cidrs.end());
    }
    return net::Intervals(std::move(cidrs));
  }

  void check_pools() {
    report_.pools = pools_.pools().size();
    const net::Intervals recorded = recorded_reservations();
    for (const Pool* pool : pools_.pools()) {
      check_selectors(*pool);
      for (const Pool* other : pools_.pools()) {
        if (pool->name < other->name && pool->cidr.overlaps(other->cidr)) {
          add(FindingKind::pool_overlap, "pool " + pool->name,
              fmt::format("{} overlaps pool {} ({})", pool->cidr.to_string(), other->name, other->cidr.to_string()),
              "disable one of them with `croft pool disable`, empty it, then delete it");
        }
      }
      // A pool that Calico made has no gateway, and hands out its first and last address too.
      if ((reader_.foreign_writers() && !pool->gateway) || unlistable_.contains(Kind::reservation)) continue;
      for (const net::Prefix& reserved : reservation_for(*pool).cidrs) {
        if (!recorded.contains(reserved.first())) {
          add(FindingKind::reservation_missing, "pool " + pool->name,
              fmt::format("no reservation keeps {} out of use", reserved.first().to_string()),
              fmt::format("`croft pool create {} --cidr {}` makes the reservation again", pool->name,
                          pool->cidr.to_string()));
        }
      }
    }
  }

  void check_one_block(const Key& key, const Block& block) {
    const auto valid = check_block(block);
    if (valid && block.deleted) return;
    const auto place = block_cidr_of(key);
    if (!place) {
      add_no_block(key, valid ? "it holds block " + block.cidr.to_string() : valid.error().message);
      return;
    }
    ++report_.blocks;
    const std::string subject = "block " + block.cidr.to_string();
    if (!valid) {
      unreadable_blocks_.insert(block.cidr.to_string());
      unreadable_blocks_.insert(place->to_string());
      add(FindingKind::block_corrupt, subject, valid.error().message,
          "restore the store from a backup; its addresses stay taken");
      return;
    }
    if (key != block_key(block.cidr)) {
      add(FindingKind::block_corrupt, subject, "it is stored under the name " + key.name,
          "restore the store from a backup");
      return;
    }
    blocks_[block.cidr] = &block;
    const Pool* pool = pools_.containing(block.cidr.first());
    // Of a pool that can't be read nobody knows which blocks lie in it.
    if (pool == nullptr ? all_pools_known_ : pool->block_length != block.cidr.length()) {
      add(FindingKind::block_without_pool, subject,
          pool == nullptr ? "it lies in no pool"
                          : fmt::format("pool {} has blocks of /{}", pool->name, pool->block_length),
          "release its addresses with `croft ip release`");
    }
    if (block.affinity && !unlistable_.contains(Kind::affinity) && !has_row(*block.affinity, block.cidr)) {
      add(FindingKind::affinity_missing, subject,
          "it belongs to " + to_string(*block.affinity) + ", which has no claim on it",
          "the next assignment from it is unaffected; delete and re-create the pool when it is empty");
    }
    check_sequence(block, subject);
    check_room(block, subject);
    check_addresses(block);
  }

  /// A row that can't be read is one.
  [[nodiscard]] bool has_row(const AffinityOwner& owner, const net::Prefix& cidr) {
    const auto key = affinity_key(owner, cidr);
    const bool unreadable =
        std::any_of(unreadable_.begin(), unreadable_.end(), [&](const Unreadable& u) { return u.key == key; });
    const auto* row = reader_.get(key);
    return unreadable || (row != nullptr && !row->deleted);
  }

  void check_sequence(const Block& block, const std::string& subject) {
    const auto* mark = reader_.get(high_water_mark_key(block.cidr));
    if (mark != nullptr && block.sequence_number <= mark->sequence_number) {
      add(FindingKind::sequence_behind, subject,
          fmt::format("its sequence number {} is not above the recorded {}", block.sequence_number.value,
                      mark->sequence_number.value),
          "restore the store from a backup; a late release could free a successor");
    }
  }

  void check_room(const Block& block, const std::string& subject) {
    const auto expected = vacancy_of(block, pools_, now_);
    // Beside foreign writers vacancies are hints, and their absence is no fault.
    if (!expected || reader_.foreign_writers()) return;
    if (reader_.get(vacancy_key(block.affinity, block.cidr)) == nullptr) {
      add(FindingKind::vacancy_missing, subject, "it has room, but nobody will look there",
          "release any address of it: that writes the hint again");
    }
  }

  void check_addresses(const Block& block) {
    if (block.affinity && block.affinity->type == AffinityOwner::Type::host) ++nodes_[block.affinity->name].blocks;
    const Block current = with_cooled_freed(block, pools_.cooldowns_of(block.cidr), now_);
    for (std::uint32_t i = 0; i < current.allocations.size(); ++i) {
      const net::Ordinal ordinal(i);
      const Attribute* attribute = attribute_of(current, ordinal);
      if (attribute == nullptr) continue;
      Allocation allocation{net::address_at(block.cidr, ordinal),
                            block.cidr,
                            block.affinity,
                            attribute->handle_id.value_or(""),
                            sequence_of(current, ordinal),
                            attribute->secondary,
                            attribute->alternate_owner};
      const std::size_t findings = report_.findings.size();
      if (attribute->cooling) {
        check_cooling(*attribute->cooling, allocation);
      } else {
        check_held(*attribute, allocation);
      }
      allocation.problem = report_.findings.size() > findings;
      report_.allocations.push_back(std::move(allocation));
    }
  }

  void check_cooling(const Cooling& cooling, Allocation& allocation) {
    ++report_.cooling;
    allocation.cooling = true;
    allocation.handle_id = cooling.previous_handle;
    allocation.attributes = cooling.previous_secondary;
    // Within one boot only the clock that cannot be set counts.
    const bool same_boot = cooling.released_at.boot != BootId{} && cooling.released_at.boot == now_.boot;
    if (same_boot || cooling.released_at.wall <= now_.wall + kClockTolerance) return;
    add(FindingKind::release_in_future, allocation.address.to_string(),
        "it cools since " + rfc3339_rounded_up(cooling.released_at.wall) + ", which is yet to come",
        "set the clocks of the nodes right; it rests until then and its cooldown");
  }

  void check_held(const Attribute& attribute, Allocation& allocation) {
    ++report_.held;
    const std::string node = allocation.node();
    ++(node.empty() ? report_.without_node : nodes_[node].held);
    report_.borrowed += allocation.borrowed() ? 1 : 0;
    if (pools_.is_reserved(allocation.address)) {
      add(FindingKind::reserved_held, allocation.address.to_string(),
          "it is reserved, and held by " + attribute.handle_id.value_or("nobody"),
          "delete the container that holds it; once released it stays out of use");
    }
    if (!attribute.handle_id) return;
    ++counts_[*attribute.handle_id][allocation.block.to_string()];
    if (!live_ || (!live_node_.empty() && node != live_node_)) return;
    const std::size_t findings = report_.findings.size();
    if (live_->entries.empty()) {
      ++not_compared_;
      return;
    }
    check_attached(allocation.address, attribute, allocation.sequence_number);
    allocation.unattached = report_.findings.size() > findings;
  }

  /// What the cache says about the holder of an allocation, whose handle may be read in several ways.
  struct Known {
    bool may_live = false;
    const CachedAttachment* entry = nullptr;
  };
  [[nodiscard]] Known known(const std::string& handle_id, const std::string& interface_name) const {
    Known result;
    for (auto it = by_handle_.lower_bound(handle_id); it != by_handle_.end() && it->first == handle_id; ++it) {
      const CachedAttachment& entry = *it->second;
      if (!interface_name.empty() && entry.owner.interface_name != interface_name) continue;
      if (result.entry == nullptr || entry.netns == Netns::present) result.entry = &entry;
      result.may_live |= entry.netns != Netns::gone;
    }
    if (result.entry != nullptr) return result;
    result.may_live =
        std::any_of(live_->unreadable.begin(), live_->unreadable.end(),
                    [&](const UnreadableEntry& entry) { return may_be_about(entry.name, handle_id, interface_name); });
    return result;
  }

  /// Whether a file named `<network>-<container>-<interface>` may be of `<network>.<container>`.
  static bool may_be_about(const std::string& name, const std::string& handle_id, const std::string& interface_name) {
    if (name.size() <= handle_id.size() || name[handle_id.size()] != '-') return false;
    if (!interface_name.empty() && name.substr(handle_id.size() + 1) != interface_name) return false;
    for (std::size_t dot = handle_id.find('.'); dot != handle_id.npos; dot = handle_id.find('.', dot + 1)) {
      std::string dashed = handle_id;
      dashed[dot] = '-';
      if (name.starts_with(dashed)) return true;
    }
    return false;
  }

  static PodIdentity pod_of(const Attribute& attribute) {
    const auto text = [&](const char* key) {
      const auto it = attribute.secondary.find(key);
      return it == attribute.secondary.end() ? std::string() : it->second;
    };
    return {text(kPodKey), text(kNamespaceKey), text(kPodUidKey)};
  }
  static std::string words_of(const PodIdentity& pod) {
    if (pod.name.empty()) return {};
    return fmt::format(" for pod {}/{}{}", pod.namespace_name, pod.name,
                       pod.uid.empty() ? "" : " (UID " + pod.uid + ")");
  }

  void check_attached(const net::Address& address, const Attribute& attribute, SequenceNumber sequence) {
    const auto owner = owner_of(*attribute.handle_id, attribute.secondary);
    if (!owner) return;
    const Known runtime = known(*attribute.handle_id, owner->interface_name);
    const PodIdentity pod = pod_of(attribute);
    if (runtime.may_live) {
      if (runtime.entry == nullptr || pod.name.empty()) return;
      claims_[{owner->network, pod.namespace_name, pod.name, pod.uid, owner->interface_name, address.family()}].emplace(
          owner->container_id, Holding{address, runtime.entry->netns == Netns::present});
      return;
    }
    const auto timestamp = attribute.secondary.find(kTimestampKey);
    const auto since = timestamp == attribute.secondary.end() ? Result<WallTime>(fail(ErrorCode::not_found, ""))
                                                              : parse_go_utc_text(timestamp->second);
    if (since && *since <= now_.wall && now_.wall - *since < grace_) return;
    const std::string why = runtime.entry == nullptr
                                ? "which the runtime does not know"
                                : fmt::format("whose network namespace {} is gone", runtime.entry->netns_path);
    add(FindingKind::not_attached, address.to_string(),
        fmt::format("held since {} by container {} interface {} in network {}{}, {}",
                    since ? rfc3339_rounded_up(*since) : "an unknown time", owner->container_id,
                    owner->interface_name.empty() ? "?" : owner->interface_name, owner->network, words_of(pod), why),
        fmt::format("croft ip release {} --handle {} --sequence {}", address.to_string(), *attribute.handle_id,
                    sequence.value));
    report_.findings.back().pod = pod;
  }

  /// A pod has one sandbox at a time, but for the moment in which one takes the other's place.
  void check_pods() {
    for (const auto& [claim, holders] : claims_) {
      if (holders.size() < 2) continue;
      std::string text;
      bool all_there = true;
      for (const auto& [container, holding] : holders) {
        text +=
            fmt::format("{}container {} holds {}", text.empty() ? "" : ", ", container, holding.address.to_string());
        all_there = all_there && holding.is_there;
      }
      add(FindingKind::pod_twice, fmt::format("pod {}/{}", claim.namespace_name, claim.pod),
          fmt::format("in network {} {}, and {}", claim.network, text,
                      all_there ? "the network namespaces of all are there"
                                : "the network namespaces of some can't be told to be there or gone"),
          all_there
              ? "look which of them the runtime runs (`crictl pods`) and stop the other; its DEL releases the address"
              : "look which of them the runtime runs (`crictl pods`); `croft ip release ADDRESS` collects the other's");
      report_.findings.back().pod = {claim.pod, claim.namespace_name, claim.uid};
    }
    if (not_compared_ == 0) return;
    add(FindingKind::cache_empty, "the runtime's cache",
        fmt::format("it has no entry that can be read, and {} addresses are held: that proves nothing about them",
                    not_compared_),
        "name the directory that has the runtime's `results`; where really nothing runs, `croft ip release`");
  }

  void check_overlaps() {
    const Block* before = nullptr;
    for (const auto& [cidr, block] : blocks_) {
      if (before != nullptr && before->cidr.overlaps(cidr)) {
        add(FindingKind::block_overlap, "block " + cidr.to_string(), "it overlaps block " + before->cidr.to_string(),
            "release the addresses of one of them");
      }
      if (before == nullptr || !before->cidr.contains(cidr)) before = block;
    }
  }

  void check_affinities() {
    for (const auto& [key, value] : reader_.list({Kind::affinity, ""})) {
      const auto& row = std::get<Affinity>(value);
      if (row.deleted || is_unknown(row.cidr.to_string())) continue;
      const auto block = blocks_.find(row.cidr);
      const bool is_owners = block != blocks_.end() && block->second->affinity == row.owner;
      if (is_owners && row.state == AffinityState::confirmed) continue;
      const std::string subject = "affinity " + key.name;
      if (is_owners) {
        add(FindingKind::affinity_unconfirmed, subject,
            fmt::format("it is {}, though the block is its owner's", text_of(row.state)),
            "its owner's next assignment mends it; routes are not announced before");
        continue;
      }
      std::string what = block == blocks_.end()    ? "there is no such block"
                         : block->second->affinity ? "the block belongs to " + to_string(*block->second->affinity)
                                                   : "the block belongs to nobody";
      if (row.state != AffinityState::confirmed) what += fmt::format("; the claim is {}", text_of(row.state));
      add(FindingKind::affinity_stale, subject, std::move(what),
          row.owner.type == AffinityOwner::Type::host
              ? fmt::format("croft affinity release --node {} --cidr {}", row.owner.name, row.cidr.to_string())
              : "it holds no address");
    }
  }

  void check_handles() {
    std::set<std::string> seen;
    for (const auto& [key, value] : reader_.list({Kind::handle, ""})) {
      const auto& handle = std::get<Handle>(value);
      ++report_.handles;
      seen.insert(handle.id);
      if (!handle.deleted) check_handle(key, handle);
    }
    for (const auto& unreadable : unreadable_) {
      if (unreadable.key.kind == Kind::handle) seen.insert(unreadable.key.name);
    }
    if (unlistable_.contains(Kind::handle)) return;
    for (const auto& [id, blocks] : counts_) {
      if (seen.contains(id) || blocks.empty()) continue;
      add(FindingKind::handle_missing, "handle " + id,
          "addresses are held under it in block " + blocks.begin()->first + ", but it has no record",
          "release the addresses with `croft ip release`");
    }
  }

  void check_handle(const Key& key, const Handle& handle) {
    std::string more, fewer;
    const auto note = [](std::string& text, const std::string& block, std::uint32_t counted, std::uint32_t held) {
      text += fmt::format("{}block {}: counts {}, holds {}", text.empty() ? "" : "; ", block, counted, held);
    };
    const auto& held = counts_[handle.id];
    bool is_unknown_somewhere = false;
    for (const auto& [block, counted] : handle.blocks) {
      const auto found = held.find(block);
      const std::uint32_t count = found == held.end() ? 0 : found->second;
      if (is_unknown(block)) {
        is_unknown_somewhere = true;
      } else if (counted != count) {
        note(counted > count ? more : fewer, block, counted, count);
      }
    }
    for (const auto& [block, count] : held) {
      if (!handle.blocks.contains(block)) note(fewer, block, 0, count);
    }
    const std::string subject = "handle " + handle.id;
    if (held.empty() && !is_unknown_somewhere) {
      report_.empty_handles.push_back({key, handle.id});
      add(FindingKind::handle_empty, subject, more.empty() ? "it names no block" : more,
          "`croft check --report FILE`, then `croft ip release --from-report FILE`; an ADD under way looks the same");
    } else if (!more.empty()) {
      add(FindingKind::handle_miscount, subject, more, "delete its container again: a release counts anew");
    }
    if (!fewer.empty()) {
      add(FindingKind::handle_undercount, subject, fewer,
          "release the addresses with `croft ip release` once their container is gone: its DEL may leave them");
    }
  }

  void finish_counts() {
    for (auto& [name, count] : nodes_) {
      count.node = name;
      report_.nodes.push_back(count);
    }
    std::stable_sort(report_.nodes.begin(), report_.nodes.end(),
                     [](const NodeCount& a, const NodeCount& b) { return a.held > b.held; });
    std::sort(report_.allocations.begin(), report_.allocations.end(),
              [](const Allocation& a, const Allocation& b) { return a.address < b.address; });
  }

  /// Whose address of one family it is.
  struct Claim {
    std::string network, namespace_name, pod, uid, interface_name;
    net::Family family = net::Family::v4;
    friend auto operator<=>(const Claim&, const Claim&) = default;
  };

  struct Holding {
    net::Address address;
    bool is_there = false;  ///< its network namespace
  };

  const std::vector<Unreadable>& unreadable_;
  Reader reader_;
  PoolTable pools_;
  const std::optional<LiveAttachments>& live_;
  const std::chrono::seconds grace_;
  const std::string& live_node_;
  const Instant now_;
  std::map<net::Prefix, const Block*> blocks_;
  std::multimap<std::string, const CachedAttachment*> by_handle_;  ///< of live_
  std::map<Claim, std::map<std::string, Holding>> claims_;         ///< of containers that may live, by container
  std::size_t not_compared_ = 0;                                   ///< addresses held, with an empty cache
  std::set<std::string> unreadable_blocks_;
  std::set<Kind> unlistable_;
  bool all_pools_known_ = true;
  std::map<std::string, NodeCount> nodes_;
  std::map<std::string, std::map<std::string, std::uint32_t>> counts_;  // handle -> block -> addresses held
  Report report_;
};

}  // namespace

std::string_view name_of(Finding::Kind kind) {
  switch (kind) {
    case FindingKind::block_corrupt:
      return "block_corrupt";
    case FindingKind::block_overlap:
      return "block_overlap";
    case FindingKind::block_without_pool:
      return "block_without_pool";
    case FindingKind::affinity_missing:
      return "affinity_missing";
    case FindingKind::affinity_stale:
      return "affinity_stale";
    case FindingKind::vacancy_missing:
      return "vacancy_missing";
    case FindingKind::pod_twice:
      return "pod_twice";
    case FindingKind::cache_empty:
      return "cache_empty";
    case FindingKind::handle_missing:
      return "handle_missing";
    case FindingKind::handle_miscount:
      return "handle_miscount";
    case FindingKind::pool_overlap:
      return "pool_overlap";
    case FindingKind::reservation_missing:
      return "reservation_missing";
    case FindingKind::reserved_held:
      return "reserved_held";
    case FindingKind::sequence_behind:
      return "sequence_behind";
    case FindingKind::not_attached:
      return "not_attached";
    case FindingKind::record_unreadable:
      return "record_unreadable";
    case FindingKind::record_newer:
      return "record_newer";
    case FindingKind::affinity_unconfirmed:
      return "affinity_unconfirmed";
    case FindingKind::selector_invalid:
      return "selector_invalid";
    case FindingKind::config_contradicts:
      return "config_contradicts";
    case FindingKind::handle_empty:
      return "handle_empty";
    case FindingKind::handle_undercount:
      return "handle_undercount";
    case FindingKind::release_in_future:
      return "release_in_future";
    case FindingKind::register_damaged:
      return "register_damaged";
  }
  return "unknown";
}

std::string Allocation::node() const {
  const auto it = attributes.find(kNodeKey);
  return it == attributes.end() ? "" : it->second;
}

bool Allocation::borrowed() const {
  const std::string name = node();
  return !cooling && !name.empty() && (!block_owner || block_owner->name != name);
}

Missing wanted_by_audit(bool foreign_writers, bool with_services) {
  Missing everything;
  for (const Kind kind : kKindsRead) everything.lists.insert({kind, ""});
  everything.records = {ipam_config_key(), pool_set_key(), node_range_set_key()};
  // Of these only whether they can be read: others decide over what they say, and stop at one that is damaged.
  everything.lists.insert({Kind::node_range, ""});
  everything.lists.insert({Kind::removed_node, ""});
  if (foreign_writers) everything.lists.insert({Kind::block_beside, ""});
  if (with_services) {
    everything.lists.insert({Kind::service, ""});
    for (const auto name : {kServiceIps, kSecondaryServiceIps, kServiceNodePorts}) {
      everything.records.insert(range_allocation_key(name));
    }
  }
  return everything;
}

Report audit_register(const Snapshot& snapshot, const std::vector<Unreadable>& unreadable, const Runtime& runtime,
                      const Instant& now) {
  return Audit(snapshot, unreadable, runtime, now).run();
}

}  // namespace croft::core::audit
