#include <algorithm>
#include <memory>

#include "app/croft/command_line.h"
#include "app/croft/json_output.h"
#include "app/croft/table.h"
#include "base/time_text.h"
#include "engine/inspect.h"

namespace croft::app {
namespace {

struct Filter {
  std::string pool, node;
};

[[nodiscard]] Result<int> list(CommandLine& line, const Filter& filter) {
  TRY(const engine::Context context, line.open());
  TRY(engine::Overview overview, engine::look(context));
  std::vector<engine::BlockView> blocks = std::move(overview.stray_blocks);
  for (engine::PoolView& pool : overview.pools) {
    std::move(pool.blocks.begin(), pool.blocks.end(), std::back_inserter(blocks));
  }
  std::erase_if(blocks, [&](const engine::BlockView& block) {
    return (!filter.pool.empty() && block.pool != filter.pool) ||
           (!filter.node.empty() && (!block.block.affinity || block.block.affinity->name != filter.node));
  });
  if (line.json()) {
    print(line.data(json_of(blocks)));
    return 0;
  }
  Table table({"CIDR", "POOL", "AFFINITY", "HELD", "COOLING", "RESERVED", "FREE", "CLAIMED"});
  for (const engine::BlockView& view : blocks) {
    const core::Block& block = view.block;
    table.add({block.cidr.to_string(), view.pool, block.affinity ? to_string(*block.affinity) : "",
               std::to_string(view.usage.held), std::to_string(view.usage.cooling), std::to_string(view.usage.reserved),
               std::to_string(view.usage.free()),
               block.affinity_claim_time ? rfc3339_rounded_up(*block.affinity_claim_time) : ""});
  }
  print(table.to_string());
  return 0;
}

}  // namespace

void add_block_commands(CLI::App& app, CommandLine& line) {
  CLI::App* block = app.add_subcommand("block", "Blocks: slices of pools that nodes have claimed");
  block->require_subcommand(1);
  block->fallthrough();
  const auto filter = std::make_shared<Filter>();
  CLI::App* command = block->add_subcommand("list", "All blocks with their owner and use");
  command->add_option("--pool", filter->pool, "Only blocks of this pool");
  command->add_option("--node", filter->node, "Only blocks of this node");
  command->callback([&line, filter] { line.run = [filter](CommandLine& l) { return list(l, *filter); }; });
}

}  // namespace croft::app
