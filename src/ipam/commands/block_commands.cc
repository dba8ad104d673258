#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/texts.h"
#include "base/time_text.h"
#include "cli/croft/command_line.h"
#include "cli/croft/json_output.h"
#include "cli/croft/listing.h"
#include "cli/croft/table.h"
#include "ipam/use/inspect.h"

namespace croft::app {
namespace {

struct BlockFilter {
  std::string pool, node;
};

[[nodiscard]] Result<std::vector<engine::BlockView>> wanted_blocks(const engine::Context& context,
                                                                   const BlockFilter& filter) {
  TRY(engine::Overview overview, engine::read_overview(context));
  std::vector<engine::BlockView> blocks = std::move(overview.stray_blocks);
  for (engine::PoolView& pool : overview.pools) {
    std::move(pool.blocks.begin(), pool.blocks.end(), std::back_inserter(blocks));
  }
  std::erase_if(blocks, [&](const engine::BlockView& block) {
    return (!filter.pool.empty() && block.pool != filter.pool) ||
           (!filter.node.empty() && (!block.block.affinity || block.block.affinity->name != filter.node));
  });
  if (blocks.empty()) TRY_VOID(check_known(context, filter.node, filter.pool));
  return blocks;
}

Table block_table(const std::vector<engine::BlockView>& blocks, bool wide) {
  Table table({"CIDR", "POOL", "AFFINITY", "HELD", "COOLING", "RESERVED", "FREE", "CLAIMED"}, {"SIZE", "SEQUENCE"},
              wide);
  for (const engine::BlockView& view : blocks) {
    const core::Block& block = view.block;
    table.add({block.cidr.to_string(), view.pool, block.affinity ? to_string(*block.affinity) : "",
               std::to_string(view.usage.held), std::to_string(view.usage.cooling), view.usage.reserved.to_string(),
               view.usage.free().to_string(),
               block.affinity_claim_time ? rfc3339_rounded_up(*block.affinity_claim_time) : "",
               view.usage.size.to_string(), std::to_string(block.sequence_number.value)});
  }
  return table;
}

[[nodiscard]] Result<int> list_blocks(CommandLine& line, const BlockFilter& filter) {
  return list(line, [&](const engine::Context& context) -> Result<Listing> {
    TRY(const std::vector<engine::BlockView> blocks, wanted_blocks(context, filter));
    return Listing{"No blocks.", block_table(blocks, line.wide()), line.wants_data() ? json_of(blocks) : Data(), ""};
  });
}

const char* claim_text(const core::Block& block, const std::optional<core::Affinity>& claim) {
  if (!block.affinity) return "none: nobody owns it";
  if (!claim || claim->deleted) return "missing (see `croft check`)";
  switch (claim->state) {
    case core::AffinityState::pending:
      return "pending";
    case core::AffinityState::confirmed:
      return "confirmed";
    case core::AffinityState::pending_deletion:
      return "to be deleted";
  }
  return "";
}

std::string block_details(const engine::BlockView& view, const std::optional<core::Affinity>& claim) {
  const core::Block& block = view.block;
  std::string text;
  const auto add = [&](const char* name, const std::string& value) {
    text += fmt::format("{:<11}{}\n", name, printable(value, Printed::line));
  };
  add("Block:", block.cidr.to_string());
  add("Pool:", view.pool.empty() ? "none" : view.pool);
  add("Owner:", block.affinity ? to_string(*block.affinity) : "nobody");
  add("Claim:", claim_text(block, claim));
  add("Claimed:", block.affinity_claim_time ? rfc3339_rounded_up(*block.affinity_claim_time) : "at an unknown time");
  add("Sequence:", std::to_string(block.sequence_number.value));
  add("Usage:", fmt::format("{} address{}: {} held, {} cooling, {} reserved, {} free", view.usage.size,
                            view.usage.size == net::Count(1) ? "" : "es", view.usage.held, view.usage.cooling,
                            view.usage.reserved, view.usage.free()));
  return text;
}

[[nodiscard]] Result<int> show_block(CommandLine& line, const std::string& text) {
  TRY(const net::Prefix cidr, prefix_argument("CIDR", text));
  TRY(const engine::Context context, line.open_to_look());
  TRY(const engine::BlockView view, engine::show_block(context, cidr));
  if (line.wants_data()) {
    print(line.data_text(json_of(std::vector{view})));
    return 0;
  }
  TRY(const auto claim, engine::read_owner_affinity(context, view.block));
  print(block_details(view, claim) + "\n");
  print(draw(view, line.in_colour()), Printed::coloured);
  return 0;
}

}  // namespace

void add_block_commands(CLI::App& app, CommandLine& line) {
  CLI::App* const block = add_noun(app, "block", "Blocks: slices of pools that nodes have claimed");
  const auto [command, filter] =
      add_command(*block, line, "list", "List all blocks with their owner and usage", list_blocks);
  command->add_option("--pool", filter->pool, "Only blocks of this pool");
  command->add_option("--node", filter->node, "Only blocks of this node");
  add_list_options(*command, line);

  const auto [showing, cidr] = add_command(
      *block, line, "show", "Show one block: owner, claim, usage, and a picture of its addresses", show_block);
  showing->add_option("CIDR", *cidr, "The block, e.g. 10.1.0.64/26")->required();
}

}  // namespace croft::app
