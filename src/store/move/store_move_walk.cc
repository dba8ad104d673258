#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/net/echo.h"
#include "store/move/store_move_parts.h"

namespace croft::engine {
namespace {

using core::Kind;
using core::Value;
using store::Record;

/// A page begins small and grows as long as its records are: a handle of tens of thousands of blocks, or a block with
/// as many attributes as somebody wrote by hand, is megabytes.
constexpr std::size_t kFirstPageRecords = 4;
/// Parts of a page's records, by which what they take in memory is measured: some 100 to 300 bytes each.
constexpr std::size_t kPageParts = 20'000;

[[nodiscard]] std::size_t parts_of(const Record& record) {
  if (const auto* handle = std::get_if<core::Handle>(&record.value)) return handle->blocks.size();
  if (const auto* block = std::get_if<core::Block>(&record.value)) return block->attributes.size();
  return 1;
}

/// Whether they are two handles that say the same, told without a copy of either: one may have megabytes.
[[nodiscard]] bool are_same_handles(const Record* here, const Record* there) {
  if (here == nullptr || there == nullptr) return false;
  const auto* mine = std::get_if<core::Handle>(&here->value);
  const auto* present = std::get_if<core::Handle>(&there->value);
  return mine != nullptr && present != nullptr && mine->id == present->id && mine->deleted == present->deleted &&
         mine->blocks == present->blocks;
}

}  // namespace

std::string name_of_record(Kind kind, const std::string& name) {
  return fmt::format("{} {}", core::name_of(kind), net::echo(name));
}

StoreWalk::StoreWalk(store::Store& store, Kind kind, const MoveContext& context) : store_(store), context_(context) {
  request_.kind = kind;
  request_.limit = kFirstPageRecords;
}

Result<Record*> StoreWalk::current() {
  while (at_ == page_.records.size()) {
    if (!page_.more) return nullptr;
    auto page = store_.list(request_, soon(context_));
    if (!page && page.error().code == ErrorCode::invalid_argument) {
      page_ = {};
      at_ = 0;
      return nullptr;
    }
    if (!page) return fail(page.error());
    page_ = *std::move(page);
    at_ = 0;
    if (page_.records.empty()) page_.more = false;
    choose_next_limit();
    if (!page_.records.empty()) request_.after = page_.records.back().key.name;
  }
  return &page_.records[at_];
}

void StoreWalk::choose_next_limit() {
  std::size_t parts = 0;
  for (const Record& record : page_.records) parts += parts_of(record);
  if (parts > kPageParts) {
    request_.limit = std::max<std::size_t>(1, request_.limit * kPageParts / parts);
  } else if (parts <= kPageParts / 4) {
    request_.limit = std::min(kMovePageRecords, request_.limit * 2);
  }
}

bool target_takes(const MoveContext& context, Kind kind) {
  return core::audit::takes(kind, context.to.store.capabilities().lacks);
}

Due due_of(Kind kind, const Record* here, const Record* there) {
  if (are_same_handles(here, there)) return {};
  const auto value_of = [](const Record* record) {
    return record != nullptr ? std::optional(core::audit::portable(record->value)) : std::nullopt;
  };
  const std::optional<Value> mine = value_of(here);
  const std::optional<Value> present = value_of(there);
  std::optional<Value> wanted = core::audit::due(kind, mine, present);
  if (wanted == present) return {};
  if (!wanted) return {Due::What::remove, std::nullopt};
  return {Due::What::write, std::move(wanted)};
}

std::string Names::text() const {
  std::string text = fmt::format("{}", fmt::join(named_, ", "));
  if (count_ > named_.size()) text += fmt::format(" and {} more", count_ - named_.size());
  return text;
}

}  // namespace croft::engine
