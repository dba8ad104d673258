#include "ipam/commands/pool_usage.h"

#include <fmt/format.h>

#include "cli/croft/table.h"

namespace croft::app {
namespace {

void add_row(Table& table, const char* grouping, const std::string& name, const net::Prefix& cidr,
             const std::string& owner, const engine::Usage& usage) {
  table.add({grouping, name, cidr.to_string(), owner, usage.size.to_string(), percent_of(usage.held, usage.size),
             percent_of(usage.cooling, usage.size), percent_of(usage.reserved, usage.size),
             percent_of(usage.free(), usage.size)});
}

void add_block(Table& table, const engine::BlockView& view) {
  const core::Block& block = view.block;
  add_row(table, "block", view.pool, block.cidr, block.affinity ? to_string(*block.affinity) : "", view.usage);
}

}  // namespace

std::string percent_of(const net::Count& part, const net::Count& whole) {
  const double share = whole.is_zero() ? 0.0 : 100.0 * part.as_double() / whole.as_double();
  return fmt::format("{} ({:.3g}%)", part.to_string(), share);
}

std::string usage_table(const engine::Overview& overview, bool with_blocks) {
  Table table({"GROUPING", "POOL", "CIDR", "OWNER", "TOTAL", "IN USE", "COOLING", "RESERVED", "FREE"});
  for (const engine::PoolView& view : overview.pools) {
    add_row(table, "pool", view.pool.name, view.pool.cidr, "", view.usage);
    if (!with_blocks) continue;
    for (const engine::BlockView& block : view.blocks) add_block(table, block);
  }
  if (with_blocks) {
    for (const engine::BlockView& block : overview.stray_blocks) add_block(table, block);
  }
  return table.to_string();
}

}  // namespace croft::app
