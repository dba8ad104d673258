#include <memory>

#include <fmt/format.h>

#include "cli/croft/command_line.h"
#include "cli/croft/json_output.h"
#include "ipam/use/pools.h"

namespace croft::app {
namespace {

struct SplitOptions {
  std::uint64_t parts = 0;
  std::string cidr, name, gateways;
  bool dry_run = false;
};

[[nodiscard]] Result<int> split_pool(CommandLine& line, const SplitOptions& options) {
  core::PoolSplit wanted{options.name, options.parts, core::SplitGateways::refuse};
  if (options.name.empty()) {
    TRY(const net::Prefix cidr, prefix_argument("--cidr", options.cidr));
    wanted.pool = cidr.to_string();
  }
  if (options.gateways == "none") wanted.gateways = core::SplitGateways::none;
  if (options.gateways == "first") wanted.gateways = core::SplitGateways::first_address;
  TRY(const engine::Context context, line.open());
  TRY(const core::PoolsSplit done, engine::split_pool(context, wanted, !options.dry_run));
  if (line.json()) {
    print(line.data(json_of(done)));
    return 0;
  }
  for (const core::Pool& part : done.parts) {
    print(fmt::format("pool/{} {} ({})\n", part.name, options.dry_run ? "would be created" : "created",
                      part.cidr.to_string()));
  }
  for (const net::Address& address : done.held_reserved) {
    print(fmt::format("{} is kept out of use from now on; its holder keeps it until it is released\n",
                      address.to_string()));
  }
  print(fmt::format("pool/{} {}\n", done.before, options.dry_run ? "would go" : "replaced"));
  return 0;
}

}  // namespace

void add_pool_split_command(CLI::App& pool, CommandLine& line) {
  const auto options = std::make_shared<SplitOptions>();
  CLI::App* command = pool.add_subcommand("split", "Replace a pool by parts of equal size");
  command->add_option("N", options->parts, fmt::format("Number of parts: 2, 4, 8 … {}", core::kSplitPartsMax))
      ->required();
  CLI::Option* cidr = command->add_option("--cidr", options->cidr, "The pool, by its CIDR");
  CLI::Option* name = command->add_option("--name", options->name, "The pool, by its name");
  cidr->excludes(name);
  command
      ->add_option("--gateways", options->gateways,
                   "For a pool with a gateway: \"first\" uses the first address of each part; \"none\" gives pods /32 "
                   "or /128 without a gateway")
      ->check(CLI::IsMember({"first", "none"}));
  command->add_flag("--dry-run", options->dry_run, "Show what would happen and change nothing");
  command->footer(
      "The parts are named split-NAME-0, split-NAME-1 … and inherit the settings of the pool. Nothing needs to be "
      "locked or emptied. One commit replaces the pool by its parts. Blocks keep their size, so each block lies in one "
      "part, with its owner and its addresses. An assignment that is about to claim a block of the old pool fails at "
      "its commit and starts again on the parts.");
  command->callback([&line, options] {
    line.run = [options](CommandLine& l) -> Result<int> {
      if (options->cidr.empty() == options->name.empty()) {
        return fail(ErrorCode::invalid_argument, "say which pool: --name NAME or --cidr CIDR");
      }
      return split_pool(l, *options);
    };
  });
}

}  // namespace croft::app
