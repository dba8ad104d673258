#include "engine/audit.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "base/time_text.h"
#include "core/block/draft.h"

namespace croft::engine {
namespace {

using core::Block;
using core::Key;
using core::Kind;
using core::Listing;
using FindingKind = Finding::Kind;

constexpr Kind kKindsRead[] = {Kind::pool,   Kind::reservation, Kind::block,          Kind::affinity,
                               Kind::handle, Kind::vacancy,     Kind::high_water_mark};

class Audit {
 public:
  Audit(const core::Snapshot& snapshot, const std::optional<LiveAttachments>& live, std::chrono::seconds grace,
        const Instant& now)
      : reader_(snapshot), pools_(reader_), live_(live), grace_(grace), now_(now) {}

  AuditReport run() {
    check_pools();
    for (const auto& [key, value] : reader_.list({Kind::block, ""})) check_one_block(key, std::get<Block>(value));
    check_overlaps();
    check_affinities();
    check_vacancies();
    check_handles();
    return std::move(report_);
  }

 private:
  void add(FindingKind kind, std::string subject, std::string what, std::string remedy) {
    report_.findings.push_back({kind, std::move(subject), std::move(what), std::move(remedy)});
  }

  void check_pools() {
    report_.pools = pools_.pools().size();
    for (const core::Pool* pool : pools_.pools()) {
      for (const core::Pool* other : pools_.pools()) {
        if (pool->name < other->name && pool->cidr.overlaps(other->cidr)) {
          add(FindingKind::pool_overlap, "pool " + pool->name,
              fmt::format("{} overlaps pool {} ({})", pool->cidr.to_string(), other->name, other->cidr.to_string()),
              "disable one of them with `croft pool disable`, empty it, then delete it");
        }
      }
      for (const net::Prefix& reserved : core::reservation_for(*pool).cidrs) {
        if (!pools_.is_reserved(reserved.first())) {
          add(FindingKind::reservation_missing, "pool " + pool->name,
              fmt::format("{} is not kept out of use", reserved.first().to_string()),
              "disable the pool, empty it, delete it and create it again");
        }
      }
    }
  }

  void check_one_block(const Key& key, const Block& block) {
    ++report_.blocks;
    const std::string subject = "block " + block.cidr.to_string();
    if (const auto valid = core::check_block(block); !valid) {
      add(FindingKind::block_corrupt, subject, valid.error().message,
          "restore the store from a backup; its addresses stay taken");
      return;
    }
    if (key != core::block_key(block.cidr)) {
      add(FindingKind::block_corrupt, subject, "it is stored under the name " + key.name,
          "restore the store from a backup");
      return;
    }
    blocks_[block.cidr] = &block;
    const core::Pool* pool = pools_.containing(block.cidr.first());
    if (pool == nullptr || pool->block_length != block.cidr.length()) {
      add(FindingKind::block_without_pool, subject,
          pool == nullptr ? "it lies in no pool"
                          : fmt::format("pool {} has blocks of /{}", pool->name, pool->block_length),
          "release its addresses with `croft ip release`");
    }
    if (block.affinity && reader_.get<core::Affinity>(core::affinity_key(*block.affinity, block.cidr)) == nullptr) {
      add(FindingKind::affinity_missing, subject,
          "it belongs to " + to_string(*block.affinity) + ", which has no claim on it",
          "the next assignment from it is unaffected; delete and re-create the pool when it is empty");
    }
    check_sequence(block, subject);
    check_room(block, subject);
    check_addresses(block);
  }

  void check_sequence(const Block& block, const std::string& subject) {
    const auto* mark = reader_.get<core::HighWaterMark>(core::high_water_mark_key(block.cidr));
    if (mark != nullptr && block.sequence_number <= mark->sequence_number) {
      add(FindingKind::sequence_behind, subject,
          fmt::format("its sequence number {} is not above the recorded {}", block.sequence_number.value,
                      mark->sequence_number.value),
          "restore the store from a backup; a late release could free a successor");
    }
  }

  void check_room(const Block& block, const std::string& subject) {
    const auto expected = core::vacancy_of(block, pools_, now_);
    // Beside foreign writers vacancies are hints, and their absence is no fault.
    if (!expected || reader_.foreign_writers()) return;
    if (reader_.get<core::Vacancy>(core::vacancy_key(block.affinity, block.cidr)) == nullptr) {
      add(FindingKind::vacancy_missing, subject, "it has room, but nobody will look there",
          "release any address of it: that writes the hint again");
    }
  }

  void check_addresses(const Block& block) {
    const Block current = core::with_cooled_freed(block, pools_.cooldowns_of(block.cidr), now_);
    for (std::uint32_t i = 0; i < current.allocations.size(); ++i) {
      const net::Ordinal ordinal(i);
      const core::Attribute* attribute = core::attribute_of(current, ordinal);
      if (attribute == nullptr) continue;
      if (attribute->cooling) {
        ++report_.cooling;
        continue;
      }
      ++report_.held;
      const net::Address address = net::address_at(block.cidr, ordinal);
      if (pools_.is_reserved(address)) {
        add(FindingKind::reserved_held, address.to_string(),
            "it is reserved, and held by " + attribute->handle_id.value_or("nobody"),
            "delete the container that holds it");
      }
      if (!attribute->handle_id) continue;
      ++counts_[*attribute->handle_id][block.cidr.to_string()];
      if (live_) check_attached(address, *attribute, core::sequence_of(current, ordinal));
    }
  }

  void check_attached(const net::Address& address, const core::Attribute& attribute, core::SequenceNumber sequence) {
    const auto owner = core::owner_of(*attribute.handle_id, attribute.secondary);
    if (!owner || live_->contains(*owner)) return;
    const auto timestamp = attribute.secondary.find(core::kTimestampKey);
    const auto since = timestamp == attribute.secondary.end() ? Result<WallTime>(fail(ErrorCode::not_found, ""))
                                                              : parse_go_utc_text(timestamp->second);
    if (since && *since <= now_.wall && now_.wall - *since < grace_) return;
    add(FindingKind::not_attached, address.to_string(),
        fmt::format("held since {} by container {} interface {} in network {}, which the runtime does not know",
                    since ? rfc3339_rounded_up(*since) : "an unknown time", owner->container_id,
                    owner->interface_name.empty() ? "?" : owner->interface_name, owner->network),
        fmt::format("croft ip release {} --handle {} --sequence {}", address.to_string(), *attribute.handle_id,
                    sequence.value));
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

  /// Whether the owner in a claim's or hint's name owns the block that the name ends in.
  [[nodiscard]] bool owner_agrees(const Key& key) const {
    const auto cidr = core::cidr_of(key);
    if (!cidr) return false;
    const auto block = blocks_.find(*cidr);
    return block != blocks_.end() && block->second->affinity &&
           core::affinity_key(*block->second->affinity, *cidr).name == key.name;
  }

  void check_affinities() {
    for (const auto& [key, value] : reader_.list({Kind::affinity, ""})) {
      if (owner_agrees(key)) continue;
      add(FindingKind::affinity_stale, "affinity " + key.name, "the block does not exist or belongs to another",
          "it holds no address; delete and re-create the pool when it is empty");
    }
  }

  void check_vacancies() {
    for (const auto& [key, value] : reader_.list({Kind::vacancy, ""})) {
      if (owner_agrees(key)) continue;
      add(FindingKind::vacancy_stale, "vacancy " + key.name, "the block does not exist or belongs to another",
          "nothing to do: assignments look at the block itself");
    }
  }

  void check_handles() {
    std::set<std::string> seen;
    for (const auto& [key, value] : reader_.list({Kind::handle, ""})) {
      const auto& handle = std::get<core::Handle>(value);
      ++report_.handles;
      seen.insert(handle.id);
      if (handle.blocks == counts_[handle.id]) continue;
      add(FindingKind::handle_miscount, "handle " + handle.id, "it counts other addresses than the blocks hold",
          "delete its container again: a release counts anew");
    }
    for (const auto& [id, blocks] : counts_) {
      if (seen.contains(id) || blocks.empty()) continue;
      add(FindingKind::handle_missing, "handle " + id,
          "addresses are held under it in block " + blocks.begin()->first + ", but it has no record",
          "release the addresses with `croft ip release`");
    }
  }

  core::Reader reader_;
  core::PoolTable pools_;
  const std::optional<LiveAttachments>& live_;
  const std::chrono::seconds grace_;
  const Instant now_;
  std::map<net::Prefix, const Block*> blocks_;
  std::map<std::string, std::map<std::string, std::uint32_t>> counts_;  // handle -> block -> addresses held
  AuditReport report_;
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
    case FindingKind::vacancy_stale:
      return "vacancy_stale";
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
  }
  return "unknown";
}

Result<AuditReport> audit(const Context& context, const std::optional<LiveAttachments>& live,
                          std::chrono::seconds grace) {
  Loader loader(context.store, Deadline::after(context.clock.now(), context.time_limit));
  core::Missing everything;
  for (const Kind kind : kKindsRead) everything.lists.insert({kind, ""});
  TRY_VOID(loader.load(everything));
  return Audit(loader.snapshot(), live, grace, context.clock.now()).run();
}

}  // namespace croft::engine
