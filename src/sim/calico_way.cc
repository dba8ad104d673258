#include "sim/calico_way.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "register/block.h"
#include "register/handle_blocks.h"

namespace croft::sim {
namespace {

using store::Condition;
using store::Record;
using store::Revision;

constexpr std::chrono::seconds kTime{90};
constexpr int kTries = 100;

/// One call of the library.
class Library {
 public:
  Library(const engine::Context& context, bool by_objects)
      : context_(context), by_objects_(by_objects), until_(Deadline::after(context.clock.now(), kTime)) {}

  [[nodiscard]] Result<std::optional<Record>> get(const core::Key& key) { return context_.store.get(key, until_); }
  [[nodiscard]] Result<std::vector<Record>> list(core::Kind kind, const std::string& prefix) {
    TRY(store::Page page, context_.store.list({kind, prefix, {}, store::kListLimitMax}, until_));
    return std::move(page.records);
  }
  [[nodiscard]] Result<Revision> put(core::Key key, std::optional<core::Value> value, Condition condition) {
    const store::Write write{std::move(key), std::move(value), condition};
    return context_.store.commit({&write, 1}, {}, until_);
  }

  /// Takes an address of a block for the handle, if it has one. Error: conflict, with the handle as it was before.
  [[nodiscard]] Result<std::optional<core::AssignedAddress>> take_from(const Record& record, const core::Pool& pool,
                                                                       const core::AssignRequest& request) {
    const auto& block = std::get<core::Block>(*record.value);
    const core::Cooldowns cooldowns(pool.cooldown);
    core::Attribute attribute;
    const std::string handle = core::handle_of(request.owner);
    attribute.handle_id = handle;
    attribute.secondary = std::map<std::string, std::string>{{core::kNodeKey, request.node.name},
                                                             {core::kPodKey, request.pod.name},
                                                             {core::kNamespaceKey, request.pod.namespace_name}};
    auto taken = core::take_next(core::with_cooled_freed(block, cooldowns, context_.clock.now()), attribute,
                                 [](const net::Address&) { return false; });
    if (!taken) return std::optional<core::AssignedAddress>();
    const core::Key key = core::handle_key(handle);
    TRY(const auto before, get(key));
    TRY_VOID(put(key, core::Handle{handle, {{block.cidr.to_string(), 1}}}, Condition::always()));
    const auto done = put(record.key, core::stamped(std::move(taken->block)), Condition::if_revision(record.revision));
    if (!done) {
      TRY_VOID(lower(key));
      return fail(done.error());
    }
    core::AssignedAddress assigned;
    assigned.address = taken->address;
    assigned.block = block.cidr;
    assigned.borrowed = block.affinity != request.node;
    return std::optional(std::move(assigned));
  }

  /// Deletes a handle: by an object of a Kubernetes API that is marked first.
  [[nodiscard]] Result<void> lower(const core::Key& key) {
    TRY(const auto there, get(key));
    if (!there) return {};
    if (by_objects_) {
      TRY_VOID(put(key, *there->value, Condition::always()));
      TRY_VOID(get(key));
    }
    TRY_VOID(put(key, std::nullopt, Condition::always()));
    return {};
  }

 private:
  const engine::Context& context_;
  const bool by_objects_;
  const Deadline until_;
};

/// The blocks of a pool in the order in which a node looks at them.
class Rotation {
 public:
  Rotation(const core::Pool& pool, const core::AffinityOwner& node)
      : pool_(pool),
        last_((std::uint64_t{1} << pool.cidr.subprefix_count_log2(pool.block_length)) - 1),
        start_(core::rotation_start(node)) {}
  [[nodiscard]] std::uint64_t count() const { return last_ + 1; }
  [[nodiscard]] net::Prefix at(std::uint64_t i) const {
    return pool_.cidr.subprefix(net::U128((start_ + i) & last_), pool_.block_length);
  }

 private:
  const core::Pool& pool_;
  const std::uint64_t last_, start_;
};

/// A block that nobody has: claimed for the node. Nothing: there is none, or somebody else was quicker (`again`).
[[nodiscard]] Result<std::optional<Record>> claim(const engine::Context& context, Server& server, Library& library,
                                                  const core::Pool& pool, const core::AffinityOwner& node,
                                                  bool& again) {
  again = false;
  core::Missing all;
  all.keys.insert({core::Kind::block, core::block_names_of(pool.cidr.family())});
  TRY(const store::ReadAnswer listed, context.store.read(all, Deadline::after(context.clock.now(), kTime)));
  const std::vector<core::Key>& keys = *listed.keys.front();
  server.serve(server.manners().work.a_block * static_cast<std::int64_t>(keys.size()));
  const Rotation rotation(pool, node);
  for (std::uint64_t i = 0; i < rotation.count(); ++i) {
    const net::Prefix cidr = rotation.at(i);
    if (std::ranges::binary_search(keys, static_cast<const core::Key&>(core::block_key(cidr)))) continue;
    const core::Key row = core::affinity_key(node, cidr);
    core::Affinity affinity{node, cidr, core::AffinityState::pending};
    TRY_VOID(library.put(row, affinity, Condition::if_absent()));
    TRY_VOID(library.get(core::block_key(cidr)));
    TRY_VOID(library.put(row, affinity, Condition::always()));
    TRY_VOID(library.get(core::ipam_config_key()));
    core::Block block = core::new_block(cidr, node, context.clock.now(), std::nullopt);
    const auto made = library.put(core::block_key(cidr), block, Condition::if_absent());
    if (!made && made.error().code == ErrorCode::conflict) {
      again = true;
      TRY_VOID(library.get(core::block_key(cidr)));
      TRY_VOID(library.put(row, std::nullopt, Condition::always()));
      return std::optional<Record>();
    }
    if (!made) return fail(made.error());
    affinity.state = core::AffinityState::confirmed;
    TRY_VOID(library.put(row, affinity, Condition::always()));
    return std::optional(Record{core::block_key(cidr), std::move(block), *made, {}});
  }
  return std::optional<Record>();
}

}  // namespace

Result<core::AssignAnswer> calico_add(const engine::Context& context, Server& server,
                                      const std::vector<core::Pool>& pools, bool strict, std::size_t claims,
                                      const core::AssignRequest& request) {
  Library library(context, !server.manners().can.atomic_commit);
  TRY_VOID(library.get(core::ipam_config_key()));
  TRY_VOID(library.get(core::node_key(request.node.name)));
  TRY_VOID(library.list(core::Kind::reservation, ""));
  TRY_VOID(library.list(core::Kind::pool, ""));
  TRY(const auto own, library.list(core::Kind::affinity, core::owned_names_of(request.node)));
  if (!server.manners().can.atomic_commit) {
    server.serve(server.manners().work.an_item * static_cast<std::int64_t>(claims));
  }
  const core::Pool& pool = pools.front();
  core::Assigned answer;
  /// Whether an address of the block was taken; after a conflict it is read again.
  const auto take = [&](std::optional<Record> record) -> Result<bool> {
    for (int tries = 0; tries < kTries && record; ++tries) {
      auto taken = library.take_from(*record, pool, request);
      if (taken && *taken) answer.addresses.push_back(**std::move(taken));
      if (taken) return !answer.addresses.empty();
      if (taken.error().code != ErrorCode::conflict) return fail(taken.error());
      TRY(record, library.get(record->key));
    }
    return false;
  };
  for (const Record& row : own) {
    TRY_VOID(library.get(row.key));
    TRY(auto block, library.get(core::block_key(std::get<core::Affinity>(*row.value).cidr)));
    TRY(const bool is_taken, take(std::move(block)));
    if (is_taken) return core::AssignAnswer(std::move(answer));
  }
  bool again = true;
  for (int tries = 0; tries < kTries && again; ++tries) {
    TRY(auto block, claim(context, server, library, pool, request.node, again));
    if (!block) continue;
    TRY(const bool is_taken, take(std::move(block)));
    if (is_taken) return core::AssignAnswer(std::move(answer));
  }
  const Rotation rotation(pool, request.node);
  for (std::uint64_t i = 0; i < rotation.count() && !strict; ++i) {
    TRY(auto block, library.get(core::block_key(rotation.at(i))));
    TRY(const bool is_taken, take(std::move(block)));
    if (is_taken) return core::AssignAnswer(std::move(answer));
  }
  return core::AssignAnswer(core::Refusal{});
}

void calico_del(const engine::Context& context, const std::string& handle_id) {
  Library library(context, !context.store.capabilities().atomic_commit);
  const core::Key key = core::handle_key(handle_id);
  const auto work = [&]() -> Result<void> {
    for (int tries = 0; tries < kTries; ++tries) {
      TRY(const auto record, library.get(key));
      if (!record) return {};
      const auto held = core::blocks_of(std::get<core::Handle>(*record->value));
      if (held.empty()) return {};
      const core::Key block_key = core::block_key(held.front().cidr);
      TRY(const auto block, library.get(block_key));
      if (!block) return {};
      const auto& before = std::get<core::Block>(*block->value);
      const auto ordinals = core::held_by_handle(before, handle_id);
      const auto done = library.put(block_key, core::stamped(core::release(before, ordinals, {}, context.clock.now())),
                                    Condition::if_revision(block->revision));
      if (!done && done.error().code == ErrorCode::conflict) continue;
      if (!done) return fail(done.error());
      TRY_VOID(library.lower(key));
      TRY_VOID(library.list(core::Kind::pool, ""));
      TRY_VOID(library.get(core::node_key("any")));
      return {};
    }
    return {};
  };
  (void)work();
}

}  // namespace croft::sim
