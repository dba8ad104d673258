#include "store/copy/decide/copied.h"

#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/net/echo.h"

namespace croft::core {
namespace {

using Phase = Pause::Phase;

[[nodiscard]] Error refusal(std::string_view which, const Pause& pause, std::string_view remedy) {
  return {
      ErrorCode::refused_for_safety,
      fmt::format("{} is paused ({}, other store {}): {}", which, name_of(pause.phase), net::echo(pause.other), remedy),
      {}};
}

/// What never goes back; absent for other records.
[[nodiscard]] std::optional<std::uint64_t> growing(const Value& value) {
  if (const auto* mark = std::get_if<HighWaterMark>(&value)) return mark->sequence_number.value;
  if (const auto* set = std::get_if<PoolSet>(&value)) return set->generation;
  return std::nullopt;
}

[[nodiscard]] const Attribute* attribute_at(const Block& block, std::size_t ordinal) {
  const auto& index = block.allocations[ordinal];
  return index && *index < block.attributes.size() ? &block.attributes[*index] : nullptr;
}

[[nodiscard]] bool say_the_same(const Block& a, const Block& b) {
  if (a.allocations.size() != b.allocations.size()) return false;
  for (std::size_t i = 0; i < a.allocations.size(); ++i) {
    const Attribute* one = attribute_at(a, i);
    const Attribute* other = attribute_at(b, i);
    const bool is_same = one == nullptr || other == nullptr ? one == other : *one == *other;
    if (!is_same) return false;
  }
  return a.cidr == b.cidr && a.affinity == b.affinity && a.unallocated == b.unallocated &&
         a.sequence_number == b.sequence_number &&
         a.sequence_number_for_allocation == b.sequence_number_for_allocation && a.deleted == b.deleted;
}

[[nodiscard]] bool say_the_same(const Value& a, const Value& b) {
  const auto* one = std::get_if<Block>(&a);
  const auto* other = std::get_if<Block>(&b);
  return one != nullptr && other != nullptr ? say_the_same(*one, *other) : without_rest(a) == without_rest(b);
}

/// A value of the source, with what the target's format holds besides.
[[nodiscard]] Value in_place_of(const Value& value, const Value* there) {
  Value placed = without_rest(value);
  std::visit(
      [there](auto& record) {
        using T = std::decay_t<decltype(record)>;
        if constexpr (requires { record.rest; }) {
          if (const auto* old = there != nullptr ? std::get_if<T>(there) : nullptr) record.rest = old->rest;
        }
      },
      placed);
  return placed;
}

}  // namespace

bool takes(Kind kind, Kinds lacks) {
  // A Kubernetes API has its nodes itself.
  return !lacks.contains(kind) && (kind != Kind::node || lacks.contains(Kind::name_space));
}

bool is_harmless(Kind kind) { return kind == Kind::high_water_mark || kind == Kind::pool_set || is_hint(kind); }

Result<Due> due(Kind kind, const Value* in_source, const Value* in_target) {
  if (in_source == nullptr) {
    const bool stays = in_target == nullptr || (is_harmless(kind) && !is_hint(kind));
    return Due{stays ? Due::What::nothing : Due::What::remove, std::nullopt};
  }
  if (in_target != nullptr) {
    const auto grown = growing(*in_source);
    if (grown && growing(*in_target) >= grown) return Due{};
    const auto* here = std::get_if<Block>(in_source);
    const auto* there = std::get_if<Block>(in_target);
    if (here != nullptr && there != nullptr && there->sequence_number > here->sequence_number) {
      return fail(ErrorCode::refused_for_safety,
                  fmt::format("another program wrote block {} of the target, which is being filled: stop it, end the "
                              "pods that have addresses there, and delete that block",
                              there->cidr.to_string()));
    }
    if (say_the_same(*in_source, *in_target)) return Due{};
  }
  return Due{Due::What::write, in_place_of(*in_source, in_target)};
}

Result<CopyStep> next_copy_step(const Pauses& pauses) {
  constexpr std::string_view kOther = "finish that copy first, or give it up with `croft store resume`";
  const auto& [source, target, source_names_target, target_names_source] = pauses;
  if (source && source->phase == Phase::filling) return fail(refusal("FROM", *source, "it holds no whole register"));
  if (source && !source_names_target) return fail(refusal("FROM", *source, kOther));
  if (target && !target_names_source) return fail(refusal("TO", *target, kOther));
  if (target && target->phase == Phase::copying) {
    return fail(refusal("TO", *target, "it is being copied the other way; finish that, or give it up"));
  }
  if (!source) return target ? CopyStep::copy : CopyStep::begin;
  if (source->phase == Phase::moved) {
    if (!target) return CopyStep::done;
    return target->phase == Phase::filling ? Result<CopyStep>(CopyStep::open)
                                           : fail(refusal("TO", *target, "both stores name the other as theirs"));
  }
  if (target && target->phase == Phase::filling) return CopyStep::copy;
  return fail(refusal("FROM", *source, "TO is not paused, so somebody else opened it: `croft store resume`"));
}

}  // namespace croft::core
