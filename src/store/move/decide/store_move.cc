#include "store/move/decide/store_move.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/net/echo.h"

namespace croft::core::audit {
namespace {

using End = Seal::End;
using Phase = Seal::Phase;

[[nodiscard]] std::string told(const Seal& seal) {
  return fmt::format("{} of the move {}, {}, other store {}", name_of(seal.end), net::echo(seal.move),
                     name_of(seal.phase), net::echo(seal.other));
}

[[nodiscard]] Error refusal(std::string_view which, const Seal& seal, std::string_view remedy) {
  return {ErrorCode::refused_for_safety, fmt::format("--{} is closed as {}: {}", which, told(seal), remedy), {}};
}

constexpr std::string_view kOthers = "finish or give up that move first (`croft migrate status`)";

template <class T>
[[nodiscard]] const T* as(const std::optional<Value>& value) {
  return value ? std::get_if<T>(&*value) : nullptr;
}

/// The attributes in the order of the addresses, each once.
void order_attributes(Block& block) {
  std::vector<Attribute> ordered;
  std::vector<std::optional<std::uint32_t>> place(block.attributes.size());
  std::multimap<std::string, std::uint32_t> by_handle;
  for (auto& index : block.allocations) {
    if (!index || *index >= place.size()) continue;
    std::optional<std::uint32_t>& to = place[*index];
    if (!to) {
      const Attribute& attribute = block.attributes[*index];
      const std::string handle =
          attribute.cooling ? attribute.cooling->previous_handle : attribute.handle_id.value_or("");
      const auto [from, until] = by_handle.equal_range(handle);
      const auto same = std::find_if(from, until, [&](const auto& one) { return ordered[one.second] == attribute; });
      if (same != until) {
        to = same->second;
      } else {
        to = static_cast<std::uint32_t>(ordered.size());
        ordered.push_back(attribute);
        by_handle.emplace(handle, *to);
      }
    }
    index = to;
  }
  block.attributes = std::move(ordered);
}

/// Whether the target has the source's block but for when it was claimed, which older definitions of Calico's kinds do
/// not keep. Without it another node may take an empty block sooner; nothing else is decided by it.
[[nodiscard]] bool lacks_only_claim_time(const std::optional<Value>& in_source, const std::optional<Value>& in_target) {
  const auto* here = as<Block>(in_source);
  const auto* there = as<Block>(in_target);
  if (here == nullptr || there == nullptr || !here->affinity_claim_time || there->affinity_claim_time) return false;
  Block without = *here;
  without.affinity_claim_time.reset();
  return without == *there;
}

/// Who holds an ordinal; null where nobody does.
[[nodiscard]] const Attribute* holder_at(const Block& block, std::uint32_t ordinal) {
  if (ordinal >= block.allocations.size() || !block.allocations[ordinal]) return nullptr;
  const std::uint32_t index = *block.allocations[ordinal];
  if (index >= block.attributes.size() || block.attributes[index].cooling) return nullptr;
  return &block.attributes[index];
}

[[nodiscard]] std::string told(const Attribute& attribute) {
  std::string text = attribute.handle_id ? "handle " + net::echo(*attribute.handle_id) : "no handle";
  const auto value_of = [&](const char* key) {
    const auto found = attribute.secondary.find(key);
    return found != attribute.secondary.end() ? found->second : std::string();
  };
  const std::string pod = value_of(kPodKey);
  const std::string node = value_of(kNodeKey);
  if (!pod.empty()) text += ", pod " + net::echo(value_of(kNamespaceKey) + "/" + pod);
  if (!node.empty()) text += ", node " + net::echo(node);
  return text;
}

/// Whether the target's seal lets a source that is open move into it.
[[nodiscard]] Result<MoveStep> step_to_open_source(const Seals& seals) {
  if (!seals.target) return MoveStep::begin;
  const Seal& target = *seals.target;
  if (!seals.target_names_source) return fail(refusal("to", target, kOthers));
  if (target.end == End::source) {
    if (target.phase == Phase::moved) return MoveStep::take_over;
    return fail(refusal("to", target, "it is being moved the other way; finish or give up that move first"));
  }
  switch (target.phase) {
    case Phase::preparing:
      return MoveStep::look;
    case Phase::copying:
      return MoveStep::copy;
    case Phase::given_up:
      return MoveStep::take_over;
    case Phase::moved:
      break;
  }
  return fail(refusal("to", target, "that is no state of a target; look at it by hand"));
}

}  // namespace

bool takes(Kind kind, Kinds lacks) {
  // A Kubernetes API has its nodes itself.
  return !lacks.contains(kind) && (kind != Kind::node || lacks.contains(Kind::name_space));
}

Value portable(Value value) {
  value = without_rest(std::move(value));
  if (auto* block = std::get_if<Block>(&value)) {
    // Calico's formats have whole seconds, and the order of attributes changes where cooling ones lie beside the block.
    if (block->affinity_claim_time) {
      block->affinity_claim_time = std::chrono::floor<std::chrono::seconds>(*block->affinity_claim_time);
    }
    order_attributes(*block);
  }
  return value;
}

std::optional<Value> due(Kind kind, const std::optional<Value>& in_source, const std::optional<Value>& in_target) {
  if (kind == Kind::high_water_mark) {
    const auto* here = as<HighWaterMark>(in_source);
    const auto* there = as<HighWaterMark>(in_target);
    if (here == nullptr) return in_target;
    if (there == nullptr || there->sequence_number < here->sequence_number) return in_source;
    return in_target;
  }
  if (kind == Kind::pool_set) {
    const auto* here = as<PoolSet>(in_source);
    const auto* there = as<PoolSet>(in_target);
    if (here == nullptr) return in_target;
    if (there == nullptr || there->generation < here->generation) return in_source;
    return in_target;
  }
  if (lacks_only_claim_time(in_source, in_target)) return in_target;
  return in_source;
}

bool may_be_there_before(Kind kind) { return kind == Kind::high_water_mark || kind == Kind::pool_set || is_hint(kind); }

bool is_guarded(Kind kind) { return !may_be_there_before(kind) && kind != Kind::node; }

std::vector<HeldOnlyThere> held_only_there(const std::optional<Value>& in_source, const Value& in_target) {
  std::vector<HeldOnlyThere> held;
  const auto* there = std::get_if<Block>(&in_target);
  if (there == nullptr) return held;
  const auto* here = as<Block>(in_source);
  for (std::uint32_t i = 0; i < there->allocations.size(); ++i) {
    const Attribute* attribute = holder_at(*there, i);
    if (attribute == nullptr) continue;
    const Attribute* known = here != nullptr ? holder_at(*here, i) : nullptr;
    if (known != nullptr && known->handle_id == attribute->handle_id) continue;
    held.push_back({net::address_at(there->cidr, net::Ordinal(i)), told(*attribute)});
  }
  return held;
}

bool is_no_copy(const Value& in_source, const Value& in_target) {
  const auto* here = std::get_if<Block>(&in_source);
  const auto* there = std::get_if<Block>(&in_target);
  if (here == nullptr || there == nullptr) return false;
  if (there->sequence_number != here->sequence_number) return there->sequence_number > here->sequence_number;
  return !held_only_there(in_source, in_target).empty();
}

Result<MoveStep> next_step(const Seals& seals) {
  if (!seals.source) return step_to_open_source(seals);
  const Seal& source = *seals.source;
  if (source.end == End::target) {
    return fail(
        refusal("from", source, "it is being filled itself and holds no whole register; " + std::string(kOthers)));
  }
  if (!seals.source_names_target) return fail(refusal("from", source, kOthers));
  const bool is_same = seals.target && seals.target->move == source.move && seals.target->end == End::target;
  if (source.phase == Phase::moved) {
    if (!seals.target) return MoveStep::done;
    if (is_same && seals.target->phase == Phase::copying) return MoveStep::open;
    return fail(refusal("to", *seals.target, kOthers));
  }
  if (source.phase != Phase::copying) {
    return fail(refusal("from", source, "that is no state of a source; look at it by hand"));
  }
  if (!seals.target) {
    return fail(refusal("from", source,
                        "somebody opened the other store before the copy was complete; see that nobody uses it, empty "
                        "it, and open this one with `croft migrate give-up`"));
  }
  if (!is_same) return fail(refusal("to", *seals.target, kOthers));
  if (seals.target->phase == Phase::copying) return MoveStep::finish;
  return fail(refusal("to", *seals.target, "giving up was begun: finish it with `croft migrate give-up`"));
}

Result<GiveUpStep> next_step_back(const Seals& seals) {
  const bool target_is_ours = seals.target && seals.target->end == End::target && seals.target_names_source;
  if (seals.source) {
    const Seal& source = *seals.source;
    if (source.end != End::source || !seals.source_names_target) return fail(refusal("from", source, kOthers));
    if (source.phase == Phase::moved) {
      return fail(refusal("from", source,
                          "the other store is complete and may have given addresses since; the way back is a move: "
                          "`croft migrate store` with --from and --to exchanged"));
    }
    if (!seals.target) return GiveUpStep::open_source;
    if (!target_is_ours || seals.target->move != source.move) return fail(refusal("to", *seals.target, kOthers));
    return seals.target->phase == Phase::given_up ? GiveUpStep::open_source : GiveUpStep::mark_target;
  }
  if (!seals.target) return GiveUpStep::done;
  if (!target_is_ours) return fail(refusal("to", *seals.target, kOthers));
  switch (seals.target->phase) {
    case Phase::preparing:
      return GiveUpStep::open_target;
    case Phase::copying:
      return GiveUpStep::mark_target;
    case Phase::given_up:
    case Phase::moved:
      break;
  }
  return GiveUpStep::done;
}

}  // namespace croft::core::audit
