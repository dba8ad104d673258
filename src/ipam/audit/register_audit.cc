#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/texts.h"
#include "base/time_text.h"
#include "ipam/audit/findings.h"
#include "ipam/audit/runtime_comparison.h"
#include "ipam/decide/draft.h"
#include "ipam/decide/pool_changes.h"
#include "ipam/decide/pool_choice.h"

namespace croft::core::audit {
namespace {

constexpr Kind kKindsRead[] = {Kind::pool,   Kind::reservation, Kind::block,           Kind::affinity,
                               Kind::handle, Kind::vacancy,     Kind::high_water_mark, Kind::node};
/// How far clocks of nodes may differ before a release counts as one in the future.
constexpr std::chrono::seconds kClockTolerance{60};

std::string_view text_of(AffinityState state) { return state == AffinityState::pending ? "pending" : "to be deleted"; }

const std::map<std::string, std::uint32_t> kNothingHeld;

/// Blocks that a handle counts wrong. A text with them for people: the first ones, and how many more.
class Miscounts {
 public:
  void add(const std::string& block, std::uint32_t counted, std::uint32_t held) {
    if (++count_ > kNamedMax) return;
    text_ += fmt::format("{}block {}: counts {}, holds {}", text_.empty() ? "" : "; ", block, counted, held);
  }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] std::string text() const {
    return count_ <= kNamedMax ? text_ : fmt::format("{}; and {}", text_, counted(count_ - kNamedMax, "more block"));
  }

 private:
  static constexpr std::size_t kNamedMax = 10;
  std::string text_;
  std::size_t count_ = 0;
};

/// Compares what handles count with what the blocks hold.
class HandleAudit {
 public:
  /// An address that is held.
  void add_held(const std::string& handle_id, const net::Prefix& block) { ++counts_[handle_id][block.to_string()]; }
  /// Once all have been added: adds to `report` what is wrong with a handle; each one counts once. Nothing of it is
  /// kept but its name.
  void check(const Key& key, const Handle& handle, const Unseen& unseen, Report& report) {
    if (!seen_.insert(handle.id).second) return;
    ++report.handles;
    if (handle.deleted) return;
    Miscounts more, fewer;
    const auto counts = counts_.find(handle.id);
    const auto& held = counts == counts_.end() ? kNothingHeld : counts->second;
    bool is_unknown_somewhere = false;
    for (const auto& [block, counted] : handle.blocks) {
      const auto there = held.find(block);
      const std::uint32_t count = there == held.end() ? 0 : there->second;
      if (unseen.may_have_block(block)) {
        is_unknown_somewhere = true;
      } else if (counted != count) {
        (counted > count ? more : fewer).add(block, counted, count);
      }
    }
    for (const auto& [block, count] : held) {
      if (!handle.blocks.contains(block)) fewer.add(block, 0, count);
    }
    if (held.empty() && !is_unknown_somewhere) {
      report.empty_handles.push_back({key, handle.id});
      report.findings.push_back(found("handle_empty", handle.id, more.empty() ? "it names no block" : more.text()));
    } else if (!more.empty()) {
      report.findings.push_back(found("handle_miscount", handle.id, more.text()));
    }
    if (!fewer.empty()) report.findings.push_back(found("handle_undercount", handle.id, fewer.text()));
  }
  /// One that is there and can't be read.
  void add_unread(const std::string& handle_id) { seen_.insert(handle_id); }
  /// Behind the last one: adds those that have no record.
  void finish(const Unseen& unseen, Report& report) const {
    if (unseen.lacks_all(Kind::handle)) return;
    std::set<std::string> told;
    for (const Allocation& one : report.allocations) {
      const std::string& id = one.handle_id;
      if (one.cooling || !counts_.contains(id) || seen_.contains(id) || unseen.has(handle_key(id)) ||
          !told.insert(id).second)
        continue;
      report.findings.push_back(found("handle_missing", id, holder_text(id, one.attributes), one.block));
    }
  }

 private:
  std::set<std::string> seen_;
  std::map<std::string, std::map<std::string, std::uint32_t>> counts_;  ///< handle -> block -> addresses held
};

}  // namespace

class RegisterAudit::Impl {
 public:
  Impl(const Snapshot& snapshot, const std::vector<Unreadable>& unreadable, const Runtime& runtime, const Instant& now)
      : unseen_(unreadable),
        reader_(snapshot),
        pools_(reader_),
        runtime_(runtime, now.wall),
        living_(runtime),
        pod_ranges_(runtime.pod_ranges),
        now_(now) {}

  void look_at_all_but_handles() {
    add(unseen_.findings(reader_.foreign_writers()));
    report_.nodes_recorded = reader_.list({Kind::node, ""}).size();
    if (const auto valid = check_config(pools_.config()); !valid) add("config_contradicts", valid.error().message);
    check_pools();
    check_left_reservations();
    for (const auto& [key, value] : reader_.list({Kind::block, ""})) check_one_block(std::get<Block>(value));
    check_overlaps();
    check_affinities();
    add(runtime_.findings_together());
    add(living_.findings(
        [this](const net::Address& address, const std::string& node) { return giver_of(address, node); }));
  }

  bool add_handle(const Key& key, const Handle& handle) {
    const std::size_t empty = report_.empty_handles.size();
    handles_.check(key, handle, unseen_, report_);
    return report_.empty_handles.size() > empty;
  }

  void add_unreadable(const Unreadable& handle) {
    const std::vector<Unreadable> one{handle};
    add(Unseen(one).findings(reader_.foreign_writers()));
    handles_.add_unread(handle.key.name);
    lacks_handles_ |= handle.key.name.empty();
  }

  Report finish() {
    if (!lacks_handles_) handles_.finish(unseen_, report_);
    finish_counts();
    return std::move(report_);
  }

 private:
  void check_selectors(const Pool& pool) {
    for (const auto& selected : {selects_node(pool, {}), selects_namespace(pool, {})}) {
      if (!selected) add("selector_invalid", pool.name, selected.error().message);
    }
  }

  void check_left_reservations() {
    if (unseen_.lacks_all(Kind::pool)) return;
    std::set<std::string> kept;
    for (const std::string& name : unseen_.names_of(Kind::pool)) kept.insert(reservation_name_of(name));
    for (const Pool* pool : pools_.pools()) kept.insert(reservation_name_of(pool->name));
    for (const auto& [key, value] : reader_.sound({Kind::reservation, ""})) {
      const auto& reservation = std::get<Reservation>(value);
      const auto pool = pool_of_reservation(reservation);
      if (!pool || kept.contains(reservation.name)) continue;
      add("reservation_left", reservation.name, *pool);
    }
  }

  void add(std::vector<Finding> findings) { std::ranges::move(findings, std::back_inserter(report_.findings)); }
  template <class... Arguments>
  void add(FindingName name, const Arguments&... arguments) {
    report_.findings.push_back(found(name, arguments...));
  }

  void check_pools() {
    report_.pools = pools_.pools().size();
    const net::Intervals recorded(reserved_by(reader_, {}));
    for (const auto& [inner, outer] : overlaps_among(pools_.pools())) {
      add("pool_overlap", inner->name, inner->cidr, outer->name, outer->cidr);
    }
    for (const Pool* pool : pools_.pools()) {
      check_selectors(*pool);
      if (pool->being_deleted) {
        add("pool_half_deleted", pool->name);
      } else if (pool->being_made) {
        add("pool_half_made", pool->name);
      }
      if (!pool->unallocatable.empty() && !pool->disabled) {
        add("pool_not_allocatable", pool->name, pool->unallocatable, pool->cidr.length());
      }
      if (pool->rest && !pool->rest->cidr_as_found().empty()) {
        report_.notes.push_back(fmt::format("the CIDR of pool {} is written as {} and read as {}, as Calico reads it",
                                            pool->name, pool->rest->cidr_as_found(), pool->cidr.to_string()));
      }
      // A pool that Calico made has no gateway, and hands out its first and last address too.
      if ((reader_.foreign_writers() && !pool->gateway) || unseen_.lacks_all(Kind::reservation)) continue;
      for (const net::Prefix& reserved : reservation_for(*pool).cidrs) {
        if (!recorded.contains(reserved.first())) {
          add("reservation_missing", pool->name, reserved.first(), pool->cidr);
        }
      }
    }
  }

  void check_one_block(const Block& block) {
    if (block.deleted) return;
    ++report_.blocks;
    blocks_[block.cidr] = &block;
    if (is_of_node(block)) report_.blocks_of_nodes.push_back({block.cidr, block.affinity->name});
    const Pool* pool = pools_.containing(block.cidr.first());
    // A pool that cannot be read may have any block in it.
    if (pool == nullptr ? unseen_.names_of(Kind::pool).empty() : pool->block_length != block.cidr.length()) {
      add("block_without_pool", block.cidr,
          pool == nullptr ? "it lies in no pool"
                          : fmt::format("pool {} has blocks of /{}", pool->name, pool->block_length),
          holders_text(block), until_empty(block));
    }
    if (block.affinity && !unseen_.lacks_all(Kind::affinity) && !has_row(*block.affinity, block.cidr)) {
      add("affinity_missing", block.cidr, to_string(*block.affinity), until_empty(block));
    }
    const auto* mark = reader_.get(high_water_mark_key(block.cidr));
    if (mark != nullptr && block.sequence_number <= mark->sequence_number) {
      add("sequence_behind", block.cidr, block.sequence_number.value, mark->sequence_number.value);
    }
    check_room(block);
    check_addresses(block);
  }

  [[nodiscard]] static bool is_of_node(const Block& block) {
    return block.affinity && block.affinity->type == AffinityOwner::Type::host;
  }

  /// The first few holders of its addresses: "; pod shop/web-0 (handle net.0f3c) on node n1 has 10.5.0.0".
  [[nodiscard]] std::string holders_text(const Block& block) const {
    constexpr std::size_t kNamedMax = 3;
    std::string text;
    std::size_t held = 0;
    for_each_held(block, [&](net::Ordinal ordinal, const Attribute& holder) {
      if (++held > kNamedMax) return;
      text += fmt::format("{} {} has {}", held == 1 ? ";" : ",",
                          holder_text(holder.handle_id.value_or("none"), holder.secondary),
                          net::address_at(block.cidr, ordinal).to_string());
    });
    return held > kNamedMax ? fmt::format("{}, and {} more are held", text, held - kNamedMax) : text;
  }

  /// The fate of a block that should not be there: its holders keep what they have.
  [[nodiscard]] static std::string until_empty(const Block& block) {
    const std::string end = "its holders keep their addresses until they end; ";
    if (!is_of_node(block)) return end + "then it is deleted";
    return end + fmt::format("when it is empty, `croft affinity release --node {} --cidr {}` takes it away",
                             in_shell_quotes_if_needed(block.affinity->name), block.cidr.to_string());
  }

  /// A row that can't be read is one.
  [[nodiscard]] bool has_row(const AffinityOwner& owner, const net::Prefix& cidr) {
    const auto key = affinity_key(owner, cidr);
    const auto* row = reader_.get(key);
    return unseen_.has(key) || (row != nullptr && !row->deleted);
  }

  void check_room(const Block& block) {
    // Beside foreign writers vacancies are hints, and their absence is no fault.
    if (reader_.foreign_writers() || !vacancy_of(block, pools_, now_)) return;
    if (reader_.get(vacancy_key(block.affinity, block.cidr)) != nullptr) return;
    if (is_of_node(block)) {
      add("vacancy_missing", block.cidr, in_shell_quotes_if_needed(block.affinity->name));
    } else {
      add("vacancy_missing.unclaimed", block.cidr);
    }
  }

  void check_addresses(const Block& block) {
    if (is_of_node(block)) ++nodes_[block.affinity->name].blocks;
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
      living_.see(allocation.address, *attribute);
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
    add("release_in_future", allocation.address, rfc3339_rounded_up(cooling.released_at.wall));
  }

  void check_held(const Attribute& attribute, Allocation& allocation) {
    ++report_.held;
    const std::string node = allocation.node();
    ++(node.empty() ? report_.without_node : nodes_[node].held);
    report_.borrowed += allocation.borrowed() ? 1 : 0;
    if (pools_.is_reserved(allocation.address)) {
      add("reserved_held", allocation.address, attribute.handle_id.value_or("nobody"));
    }
    if (!attribute.handle_id) return;
    handles_.add_held(*attribute.handle_id, allocation.block);
    if (auto finding = runtime_.check(allocation.address, node, attribute, allocation.sequence_number)) {
      allocation.unattached = true;
      report_.findings.push_back(*std::move(finding));
    }
  }

  /// Known is what is in a pool, and in a block of which it is known what it holds: one that was read, or none.
  /// While nodes move from host-local (docs/runbooks/migrate.md), no node gets an address of another's block. The range
  /// of a node that has not moved is whole, and its pods' addresses are nobody's here.
  [[nodiscard]] LivingComparison::Giver giver_of(const net::Address& address, const std::string& node) {
    using Giver = LivingComparison::Giver;
    const Pool* pool = pools_.containing(address);
    if (pool == nullptr) return Giver::unknown;
    const auto place = net::Prefix::containing(address, pool->block_length);
    const auto found = blocks_.find(place);
    if (found == blocks_.end() && unseen_.may_have_block(place.to_string())) return Giver::unknown;
    if (!pools_.config().strict_affinity) return Giver::here;
    const bool is_in_own_range = std::ranges::any_of(
        pod_ranges_, [&](const NodeRange& range) { return range.node == node && range.cidr.contains(address); });
    if (found == blocks_.end()) return is_in_own_range ? Giver::unclaimed : Giver::here;
    // A block that the node took by itself says nothing of host-local.
    if (!is_in_own_range && pools_.config().auto_allocate_blocks) return Giver::here;
    const Block& block = *found->second;
    const bool is_own = is_of_node(block) && (node.empty() || block.affinity->name == node);
    const bool never_gave = block.unallocated == space::OrderedFreeList::all_free(block_size(block.cidr));
    return is_own && never_gave ? Giver::not_yet : Giver::here;
  }

  void check_overlaps() {
    const Block* before = nullptr;
    for (const auto& [cidr, block] : blocks_) {
      if (before != nullptr && before->cidr.overlaps(cidr)) {
        add("block_overlap", cidr, before->cidr, holders_text(*block), until_empty(*block));
      }
      if (before == nullptr || !before->cidr.contains(cidr)) before = block;
    }
  }

  void check_affinities() {
    for (const auto& [key, value] : reader_.list({Kind::affinity, ""})) {
      const auto& row = std::get<Affinity>(value);
      if (row.deleted || unseen_.may_have_block(row.cidr.to_string())) continue;
      const auto block = blocks_.find(row.cidr);
      const bool is_owners = block != blocks_.end() && block->second->affinity == row.owner;
      if (is_owners && row.state == AffinityState::confirmed) continue;
      if (is_owners) {
        add("affinity_unconfirmed", key.name, text_of(row.state));
        continue;
      }
      std::string what = block == blocks_.end()    ? "there is no such block"
                         : block->second->affinity ? "the block belongs to " + to_string(*block->second->affinity)
                                                   : "the block belongs to nobody";
      if (row.state != AffinityState::confirmed) what += fmt::format("; the claim is {}", text_of(row.state));
      if (row.owner.type == AffinityOwner::Type::host) {
        add("affinity_stale", key.name, what, row.owner.name, row.cidr);
      } else {
        add("affinity_stale.no_node", key.name, what);
      }
    }
  }

  void finish_counts() {
    for (auto& [name, count] : nodes_) {
      count.node = name;
      report_.nodes.push_back(count);
    }
    std::ranges::stable_sort(report_.nodes, std::ranges::greater{}, &NodeCount::held);
    std::ranges::sort(report_.allocations, {}, &Allocation::address);
  }

  Unseen unseen_;
  Reader reader_;
  PoolTable pools_;
  RuntimeComparison runtime_;
  LivingComparison living_;
  const std::vector<NodeRange>& pod_ranges_;
  HandleAudit handles_;
  const Instant now_;
  std::map<net::Prefix, const Block*> blocks_;
  std::map<std::string, NodeCount> nodes_;
  Report report_;
  bool lacks_handles_ = false;
};

RegisterAudit::RegisterAudit(const Snapshot& snapshot, const std::vector<Unreadable>& unreadable,
                             const Runtime& runtime, const Instant& now)
    : impl_(std::make_unique<Impl>(snapshot, unreadable, runtime, now)) {
  impl_->look_at_all_but_handles();
}
RegisterAudit::~RegisterAudit() = default;
bool RegisterAudit::add_handle(const Key& key, const Handle& handle) { return impl_->add_handle(key, handle); }
void RegisterAudit::add_unreadable(const Unreadable& handle) { impl_->add_unreadable(handle); }
Report RegisterAudit::report() { return impl_->finish(); }

Missing wanted_by_audit(bool with_services) {
  Missing everything;
  for (const Kind kind : kKindsRead) everything.lists.insert({kind, ""});
  everything.records = {ipam_config_key(), pool_set_key(), node_range_set_key()};
  // Only asks whether these can be read: others decide over their content, and stop at a damaged one.
  everything.lists.insert({Kind::node_range, ""});
  everything.lists.insert({Kind::removed_node, ""});
  if (with_services) {
    everything.lists.insert({Kind::service, ""});
    for (const auto name : {kServiceIps, kSecondaryServiceIps, kServiceNodePorts}) {
      everything.records.insert(range_allocation_key(name));
    }
  }
  return everything;
}

}  // namespace croft::core::audit
