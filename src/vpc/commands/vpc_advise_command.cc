// `croft vpc advise`: which water marks a node's stock wants, from what its agent has written down.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/croft/command_line.h"
#include "cli/croft/data.h"
#include "os/files.h"
#include "vpc/decide/advice.h"
#include "vpc/format/demand.h"

namespace croft::app {
namespace {

struct AdviseOptions {
  std::string file = wire::kDefaultDemandFile;
  std::uint32_t pods_max = 110;
  std::uint32_t cooldown_s = 30;
};

[[nodiscard]] Result<int> advise(const CommandLine& line, const AdviseOptions& options) {
  const auto bytes = os::read_file(options.file, wire::kDemandBytesMax);
  if (!bytes && bytes.error().code == ErrorCode::not_found) {
    return fail(ErrorCode::not_found,
                fmt::format("{} is not there: croftd vpc-agent writes it a minute after its start, beside its store; "
                            "give another one with --demand",
                            options.file));
  }
  if (!bytes) return fail(bytes.error());
  const auto samples = wire::decode_demand(*bytes);
  if (!samples) return fail(samples.error().in(options.file));
  core::warm::AdviceLimits limits;
  limits.pods_max = options.pods_max;
  limits.cooldown = std::chrono::seconds{options.cooldown_s};
  const auto advice = core::warm::advise(*samples, limits);
  if (!advice) return fail(advice.error().in(options.file));
  if (line.json()) {
    const Data data(nlohmann::ordered_json{
        {"lowWaterMark", advice->low}, {"highWaterMark", advice->high}, {"reasons", advice->reasons}});
    print(line.data(data), Printed::json);
    return 0;
  }
  std::string text = fmt::format("--low-water-mark {} --high-water-mark {}\n", advice->low, advice->high);
  for (const std::string& reason : advice->reasons) text += fmt::format("- {}\n", reason);
  print(text);
  return 0;
}

}  // namespace

void add_vpc_advise_command(CLI::App& app, CommandLine& line) {
  CLI::App* vpc = app.get_subcommand("vpc");
  auto options = std::make_shared<AdviseOptions>();
  CLI::App* command =
      vpc->add_subcommand("advise", "Say which water marks this node wants, from what was asked for in the last day");
  command->add_option("--demand", options->file, "What the agent wrote down")->type_name("FILE")->capture_default_str();
  command->add_option("--max-pods", options->pods_max, "As many pods the node takes: no mark is above")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  command->add_option("--cooldown-seconds", options->cooldown_s, "How long a released address rests")
      ->check(CLI::Range(0, 1200))
      ->capture_default_str();
  command->footer("It asks nobody and changes nothing: the marks are flags of croftd vpc-agent.");
  command->callback([options, &line] { line.run = [options](CommandLine& all) { return advise(all, *options); }; });
}

}  // namespace croft::app
