
#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/net/prefix.h"
#include "base/printable.h"
#include "base/texts.h"
#include "cli/croft/command_line.h"
#include "cli/croft/json_output.h"
#include "cli/croft/table.h"
#include "register/pool.h"
#include "sim/plan.h"
#include "sim/server.h"
#include "store/store_url.h"

namespace croft::app {
namespace {

using sim::Measured;
using sim::Plan;
using sim::to_text;
using Json = nlohmann::ordered_json;

constexpr std::size_t kWidth = 78;

// ---------------------------------------------------------------- settings

[[nodiscard]] Result<double> number_in(std::string_view text, double least, double most) {
  double number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || end != text.data() + text.size() || !(number >= least && number <= most)) {
    return fail(ErrorCode::invalid_argument, "{} is not a number from {} to {}. Give one.", echo(text), to_text(least),
                to_text(most));
  }
  return number;
}

/// A setting of a plan: a flag, and a name in --against and --vary.
struct Setting {
  const char* name;
  const char* value;  ///< in help
  const char* help;
  std::function<Result<void>(Plan& plan, const std::string& text)> set;
  bool is_of_register = false;  ///< with --from the register's is taken
};

template <class Number, class Member>
auto number(Member Plan::*member, double least, double most) {
  return [=](Plan& plan, const std::string& text) -> Result<void> {
    TRY(const double read, number_in(text, least, most));
    if (!std::is_same_v<Number, double> && read != std::floor(read)) {
      return fail(ErrorCode::invalid_argument, "{} is not a whole number. Give one.", echo(text));
    }
    plan.*member = Number(static_cast<std::conditional_t<std::is_same_v<Number, double>, double, std::int64_t>>(read));
    return {};
  };
}

[[nodiscard]] Result<void> set_way(Plan& plan, const std::string& text) {
  if (text == "agents") return plan.way = Plan::Way::agents, Result<void>();
  if (text == "alone") return plan.way = Plan::Way::alone, Result<void>();
  return fail(ErrorCode::invalid_argument, "{} is not a way. Say agents or alone.", echo(text));
}

const std::vector<Setting>& settings() {
  static const std::vector<Setting> kAll{
      {"nodes", "NUMBER", "Number of nodes (default 100)", number<std::uint32_t>(&Plan::nodes, 1, 60000)},
      {"pods", "NUMBER", "Pods of a node (default 30)", number<std::uint32_t>(&Plan::pods, 1, 1000)},
      {"churn", "NUMBER", "Pods of a node that are replaced in an hour (default 2)",
       number<double>(&Plan::churn, 0, 3600)},
      {"failures", "NUMBER", "Nodes lost in a day; above 0 the run loses at least one (default 1)",
       number<double>(&Plan::failures, 0, 10000)},
      {"growth", "NUMBER",
       "Pods that the cluster gains in a day, net; gives the time until the pool is full (default 0)",
       number<double>(&Plan::growth, 0, 1e7)},
      {"pool", "CIDR", "Pool of addresses (default: the smallest that leaves room)",
       [](Plan& plan, const std::string& text) -> Result<void> {
         TRY(plan.pool, prefix_argument("pool", text));
         return {};
       },
       true},
      {"block-size", "NUMBER", "Prefix length of the blocks (default 26, in an IPv6 pool 122)",
       number<int>(&Plan::block_length, 20, 128), true},
      {"cooldown-seconds", "NUMBER", "Rest of an address after its release (default 30)",
       number<std::chrono::seconds>(&Plan::cooldown, 0, static_cast<double>(core::kCooldownMax.count())), true},
      {"strict-affinity", "BOOL", "Let nodes use their own blocks alone: true or false (default false)",
       [](Plan& plan, const std::string& text) -> Result<void> {
         if (text != "true" && text != "false") {
           return fail(ErrorCode::invalid_argument, "{} is neither true nor false. Say one of them.", echo(text));
         }
         plan.strict = text == "true";
         return {};
       }},
      {"datastore", "NAME", "Store of the register: kubernetes, etcd or sqlite (default kubernetes)",
       [](Plan& plan, const std::string& text) -> Result<void> {
         if (!sim::manners_of(text)) {
           return fail(ErrorCode::invalid_argument, "{} is not a datastore. Say kubernetes, etcd or sqlite.",
                       echo(text));
         }
         plan.datastore = text;
         return {};
       }},
      {"way", "WAY", "Way of a pod's ADD: agents (one on each node) or alone (plugins without agents) (default agents)",
       set_way},
      {"cores", "NUMBER", "Cores of the machine that runs the datastore (default 16)",
       number<double>(&Plan::cores, 0.5, 1024)},
      {"at-once", "NUMBER", "Pods that a node starts at once (default 8)",
       number<std::uint32_t>(&Plan::at_once, 1, 1000)},
      {"in-flight", "NUMBER", "Pods that the cluster starts at once (default 500)",
       number<std::uint32_t>(&Plan::in_flight, 1, 1e6)},
      {"hours", "NUMBER", "Hours in which pods come and go (default 1)",
       [](Plan& plan, const std::string& text) -> Result<void> {
         TRY(const double hours, number_in(text, 0.01, 240));
         plan.life = sim::Span(static_cast<std::int64_t>(hours * 3600e9));
         return {};
       }},
      {"seed", "NUMBER", "Seed of chance; the same seed gives the same output (default 1)",
       number<std::uint64_t>(&Plan::seed, 0, 1e15)},
  };
  return kAll;
}

[[nodiscard]] Result<void> set(Plan& plan, const std::string& name, const std::string& text) {
  for (const Setting& setting : settings()) {
    if (name != setting.name) continue;
    if (plan.today && setting.is_of_register) {
      return fail(ErrorCode::invalid_argument, "--{} comes from the register of --from. Leave it out.", name);
    }
    const auto done = setting.set(plan, text);
    if (!done) return fail(done.error().in("--" + name));
    return {};
  }
  return fail(ErrorCode::invalid_argument,
              "{} is not a setting of a plan. Use the name of a flag: nodes, "
              "pods, block-size, …",
              echo(name));
}

/// "nodes=200,block-size=27"
[[nodiscard]] Result<Plan> changed(Plan plan, const std::string& words, const std::string& varied = {}) {
  for (const std::string_view word : split(words, ',')) {
    const std::size_t at = word.find('=');
    if (at != word.npos && word.substr(0, at) == varied) {
      return fail(ErrorCode::invalid_argument, "--vary and --against both set {}. Leave one out.", varied);
    }
    if (at == word.npos) {
      return fail(ErrorCode::invalid_argument, "{} in --against has no value. Write NAME=VALUE,NAME=VALUE.",
                  echo(word));
    }
    TRY_VOID(set(plan, std::string(word.substr(0, at)), std::string(word.substr(at + 1))));
  }
  return plan;
}

// ---------------------------------------------------------------- what is shown

/// A figure of a run, as a row of the table, a member of the JSON, and a chart of --vary.
struct Figure {
  const char* name;  ///< of the member, and after --chart
  const char* what;
  const char* unit;
  std::function<std::optional<double>(const Measured&)> of;
  bool is_count = false;
};

const std::vector<Figure>& figures() {
  const auto space = [](auto sim::Space::*member) {
    return [member](const Measured& run) { return std::optional(static_cast<double>(run.space.*member)); };
  };
  const auto some = [](auto Measured::*member) {
    return [member](const Measured& run) -> std::optional<double> { return run.*member; };
  };
  // Without churn there are none.
  const auto later = [](double sim::Latency::*member) {
    return
        [member](const Measured& run) { return run.steady.p99 > 0 ? std::optional(run.steady.*member) : std::nullopt; };
  };
  static const std::vector<Figure> kAll{
      {"nodes", "nodes", "", some(&Measured::nodes), true},
      {"pods", "pods with an address", "", some(&Measured::pods), true},
      {"withoutAddress", "pods without an address", "", some(&Measured::without), true},
      {"poolSize", "addresses of the pool", "", space(&sim::Space::size)},
      {"held", "held", "", space(&sim::Space::held), true},
      {"cooling", "cooling", "", space(&sim::Space::cooling), true},
      {"stranded", "stranded: free, in blocks of nodes", "", space(&sim::Space::spare), true},
      {"used", "used of what blocks take", "%",
       [](const Measured& run) -> std::optional<double> {
         const double all = static_cast<double>(run.space.held + run.space.cooling + run.space.spare);
         return all > 0 ? static_cast<double>(run.space.held) / all * 100 : 0;
       }},
      {"borrowed", "borrowed, of those held", "%",
       [](const Measured& run) -> std::optional<double> {
         return run.space.held > 0
                    ? 100.0 * static_cast<double>(run.space.borrowed) / static_cast<double>(run.space.held)
                    : 0;
       }},
      {"blocksPerNode", "blocks of a node", "", some(&Measured::blocks_a_node)},
      {"requestsPerAdd", "requests of an ADD, all pods start", "", some(&Measured::requests_an_add)},
      {"conflictsPerAdd", "conflicts of an ADD, all pods start", "", some(&Measured::conflicts_an_add)},
      {"requestsPerPod", "requests of a pod's ADD and DEL", "",
       [](const Measured& run) { return run.requests_a_pod > 0 ? std::optional(run.requests_a_pod) : std::nullopt; }},
      {"addsPerSecond", "ADDs a second, all pods start", "/s", some(&Measured::adds_a_second)},
      {"startSeconds", "until 99 % of the pods have started", "s", some(&Measured::start_seconds)},
      {"startP50", "ADD, all pods start: p50", "ms", [](const Measured& run) { return std::optional(run.start.p50); }},
      {"startP90", "p90", "ms", [](const Measured& run) { return std::optional(run.start.p90); }},
      {"startP99", "p99", "ms", [](const Measured& run) { return std::optional(run.start.p99); }},
      {"p50", "ADD, later: p50", "ms", later(&sim::Latency::p50)},
      {"p90", "p90", "ms", later(&sim::Latency::p90)},
      {"p99", "p99", "ms", later(&sim::Latency::p99)},
      {"refused", "tries refused for want of addresses", "", some(&Measured::refused), true},
      {"failed", "tries that failed", "", some(&Measured::failed), true},
      {"recoveredMinutes", "a lost node's addresses are free after", "min", some(&Measured::recovered_minutes)},
      {"fullShare", "held when the first ADD is refused", "%",
       [](const Measured& run) { return run.full_share ? std::optional(*run.full_share * 100) : std::nullopt; }},
      {"daysToFull", "time until then", "days", some(&Measured::days_to_full)},
  };
  return kAll;
}

std::string cell(const Figure& figure, const Measured& run) {
  const auto value = figure.of(run);
  if (!value) return "";
  return to_text(*value) + (*figure.unit == 0 || *figure.unit == '/' ? "" : " ") + figure.unit;
}

Json run_json(const Measured& run) {
  Json json{{"pool", run.pool.to_string()}, {"blockSize", run.block_length}};
  for (const Figure& figure : figures()) {
    const auto value = figure.of(run);
    json[figure.name] = !value ? Json() : figure.is_count ? Json(static_cast<std::uint64_t>(*value)) : Json(*value);
  }
  return json;
}

/// A run and what it is called.
struct Shown {
  std::string name;
  Measured run;
};

std::string table_of(const std::vector<Shown>& all) {
  std::vector<std::string> heads{"FIGURE"};
  for (const Shown& shown : all) heads.push_back(shown.name);
  Table table(heads);
  std::vector<std::string> pools{"pool"};
  for (const Shown& shown : all)
    pools.push_back(fmt::format("{} in /{}", shown.run.pool.to_string(), shown.run.block_length));
  table.add(pools);
  for (const Figure& figure : figures()) {
    std::vector<std::string> row{figure.what};
    bool is_known = false;
    for (const Shown& shown : all) {
      row.push_back(cell(figure, shown.run));
      is_known = is_known || !row.back().empty();
    }
    if (is_known) table.add(std::move(row));
  }
  return table.to_string();
}

std::string bar_of(const Shown& shown) {
  const sim::Space& space = shown.run.space;
  return sim::to_bar({{"held", static_cast<double>(space.held), "█"},
                      {"cooling", static_cast<double>(space.cooling), "▓"},
                      {"stranded", static_cast<double>(space.spare), "▒"},
                      {"in no block", space.free(), "░"}},
                     kWidth);
}

// ---------------------------------------------------------------- the command

struct PlanOptions {
  std::vector<std::string> given = std::vector<std::string>(settings().size());
  std::string from, against, vary, chart;
  bool no_advice = false;
};

[[nodiscard]] Result<Plan> plan_of(CommandLine& line, const PlanOptions& options) {
  Plan plan;
  if (!options.from.empty()) {
    line.store_url = options.from;
    TRY(const engine::Context context, line.open_to_look());
    TRY_VOID(sim::start_from_register(plan, context.store, context.clock));
    const auto scheme = store::scheme_of(options.from);
    plan.datastore = scheme == store::Scheme::etcd ? "etcd" : scheme == store::Scheme::sqlite ? "sqlite" : "kubernetes";
  }
  for (std::size_t i = 0; i < settings().size(); ++i) {
    if (!options.given[i].empty()) TRY_VOID(set(plan, settings()[i].name, options.given[i]));
  }
  return plan;
}

[[nodiscard]] Result<int> vary(CommandLine& line, const PlanOptions& options, const Plan& plan) {
  const std::size_t at = options.vary.find('=');
  if (at == options.vary.npos) {
    return fail(ErrorCode::invalid_argument, "{} in --vary has no values. Write NAME=VALUE,VALUE.", echo(options.vary));
  }
  const std::string name = options.vary.substr(0, at);
  const std::string chosen = options.chart.empty() ? "addsPerSecond" : options.chart;
  const auto figure = std::ranges::find(figures(), chosen, &Figure::name);
  if (figure == figures().end()) {
    return fail(ErrorCode::invalid_argument, "{} is not a figure. Take one that -o json names.", echo(chosen));
  }
  struct Line {
    std::string title;
    std::vector<std::pair<std::string, Plan>> plans;  ///< by the value of the setting
  };
  std::vector<Line> lines{{options.against.empty() ? "plan" : "without " + options.against, {}}};
  if (!options.against.empty()) lines.push_back({options.against, {}});
  for (Line& one : lines) {
    for (const std::string_view value : split(std::string_view(options.vary).substr(at + 1), ',')) {
      Plan varied = plan;
      TRY_VOID(set(varied, name, std::string(value)));
      if (!number_in(value, -1e12, 1e12)) {
        return fail(ErrorCode::invalid_argument,
                    "--vary takes settings that are numbers, and {} is none. Compare with --against.", echo(value));
      }
      if (&one != &lines.front()) {
        TRY(varied, changed(varied, options.against, name));
      }
      one.plans.emplace_back(value, std::move(varied));
    }
  }
  sim::Chart chart{
      fmt::format("{}{}", figure->what, *figure->unit == 0 ? "" : fmt::format(", {}", figure->unit)), name, {}};
  Json json = Json::array();
  std::string text;
  for (const auto& [title, varied] : lines) {
    sim::Chart::Series series{title, {}};
    std::vector<Shown> all;
    for (const auto& [value, one] : varied) {
      TRY(Measured run, sim::run(one));
      TRY(const double x, number_in(value, -1e12, 1e12));
      if (const auto y = figure->of(run)) series.points.emplace_back(x, *y);
      Json row = run_json(run);
      row["plan"] = &title == &lines.front().title ? "plan" : title;
      row["varied"] = {{"name", name}, {"value", x == std::floor(x) ? Json(static_cast<std::int64_t>(x)) : Json(x)}};
      json.push_back(std::move(row));
      all.push_back({fmt::format("{}={}", name, value), std::move(run)});
    }
    chart.series.push_back(std::move(series));
    text += (lines.size() > 1 ? title + "\n" : "") + table_of(all) + "\n";
  }
  const bool is_measured =
      std::ranges::any_of(chart.series, [](const sim::Chart::Series& series) { return !series.points.empty(); });
  if (line.wants_data()) {
    print(line.data_text(Data(std::move(json))), Printed::json);
  } else {
    print(text + (is_measured ? sim::to_terminal(chart, kWidth) : ""));
  }
  if (!is_measured) {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("{} was not measured in these plans, so there is no chart. Choose another with --chart.", chosen));
  }
  return 0;
}

[[nodiscard]] Result<int> plan_capacity(CommandLine& line, const PlanOptions& options) {
  TRY(const Plan plan, plan_of(line, options));
  if (!options.vary.empty()) return vary(line, options, plan);
  if (!options.chart.empty()) {
    return fail(ErrorCode::invalid_argument, "--chart is for --vary. Give both, or neither.");
  }
  Plan other = plan;
  if (!options.against.empty()) {
    TRY(other, changed(plan, options.against));
  }
  TRY(Measured run, sim::run(plan));
  std::vector<Shown> all{{"PLAN", std::move(run)}};
  if (!options.against.empty()) {
    TRY(Measured against, sim::run(other));
    all.push_back({options.against, std::move(against)});
  }
  std::optional<sim::Advice> advice;
  if (!options.no_advice) {
    TRY(advice, sim::advise(plan, all.front().run));
  }
  if (line.wants_data()) {
    Json json = Json::array();
    for (const Shown& shown : all) {
      Json one = run_json(shown.run);
      one["plan"] = shown.name == "PLAN" ? "plan" : shown.name;
      json.push_back(std::move(one));
    }
    if (advice) {
      json.front()["advice"] = {
          {"pool", advice->pool.to_string()}, {"blockSize", advice->block_length}, {"reasons", advice->reasons}};
    }
    print(line.data_text(Data(std::move(json))), Printed::json);
    return 0;
  }
  std::string text = table_of(all) + "\n";
  for (const Shown& shown : all) text += (all.size() > 1 ? shown.name + "\n" : "") + bar_of(shown);
  if (advice) {
    text += fmt::format("\nAdvice: a pool /{} with blocks of /{}.\n", advice->pool.length(), advice->block_length);
    for (const std::string& reason : advice->reasons) text += "- " + reason + "\n";
  }
  print(text);
  return 0;
}

}  // namespace

void add_plan_command(CLI::App& app, CommandLine& line) {
  const auto [command, options] =
      add_command(app, line, "plan-capacity", "Simulate a cluster and advise on pool and block size", plan_capacity);
  for (std::size_t i = 0; i < settings().size(); ++i) {
    const Setting& setting = settings()[i];
    command->add_option(fmt::format("--{}", setting.name), options->given[i], setting.help)->type_name(setting.value);
  }
  command->add_option("--from", options->from, "Begin with the register of this store, as it is now")->type_name("URL");
  command
      ->add_option("--against", options->against,
                   "Compare with the plan that differs by these settings: nodes=200,block-size=27")
      ->type_name("SETTINGS");
  command->add_option("--vary", options->vary, "Run the plan for each value of a setting: nodes=10,100,1000")
      ->type_name("SETTING");
  command
      ->add_option("--chart", options->chart,
                   "Figure in the chart of --vary, by its name in -o json (default addsPerSecond)")
      ->type_name("FIGURE");
  command->add_flag("--no-advice", options->no_advice, "Give no advice, which is faster");
  command->footer(
      "The cluster runs in memory, with Croft's own decisions and commits; no store is changed. The datastore's times "
      "are those of the measured machines, which had two cores, scaled to --cores. The time of a plugin's process is "
      "not in them, and without agents neither is the wait for the node's lock file. --store is not read. Stranded "
      "addresses are free, in blocks that a node has. A setting of "
      "--against and --vary has the name of its flag.");
}

}  // namespace croft::app
