#include "sim/run/script.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/clock.h"
#include "base/texts.h"

namespace croft::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kLoad = 2;  ///< of the verbs
constexpr std::chrono::hours kLongest{24 * 30};

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

/// 1500ms or 30s; of a month at most.
std::optional<Span> parse_span(std::string_view text) {
  const bool is_ms = text.ends_with("ms");
  if (!is_ms && !text.ends_with("s")) return {};
  const auto number = number_of(text.substr(0, text.size() - (is_ms ? 2 : 1)));
  constexpr std::chrono::milliseconds kMost = kLongest;
  if (!number || std::abs(*number) > kMost.count() / (is_ms ? 1 : 1000)) return {};
  return is_ms ? Span(std::chrono::milliseconds(*number)) : Span(std::chrono::seconds(*number));
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    if (end > 0) words.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

/// The value of a word NAME=VALUE, or of NAME alone, which is empty. False: it may not.
using Take = std::function<bool(std::string_view value)>;

Take flag(bool& to) {
  return [&to](std::string_view value) { return to = value.empty(); };
}

template <class T>
Take number(T& to, std::int64_t least, std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
  return [&to, least, most](std::string_view value) {
    const auto given = number_of(value);
    if (!given || *given < least || *given > most) return false;
    to = static_cast<T>(*given);
    return true;
  };
}

template <class T>
Take time(T& to, Span least = Span{0}) {
  return [&to, least](std::string_view value) {
    const auto given = parse_span(value);
    if (!given || *given < least) return false;
    to = std::chrono::duration_cast<T>(*given);
    return true;
  };
}

using Words = std::span<const std::string_view>;

[[nodiscard]] bool take_each(Words words, const std::map<std::string_view, Take>& takes) {
  return std::ranges::all_of(words, [&](std::string_view word) {
    const std::size_t end = std::min(word.find('='), word.size());
    const auto found = takes.find(word.substr(0, end));
    return found != takes.end() && found->second(word.substr(std::min(end + 1, word.size())));
  });
}

[[nodiscard]] Result<void> take_store(Words words, Setup& setup) {
  if (words.size() < 2 || !manners_of(words[1])) {
    return fail(ErrorCode::invalid_argument, "`store` needs one of {}", fmt::join(kStores, ", "));
  }
  setup.store = words[1];
  setup.agents = false;
  const bool taken = take_each(words.subspan(2), {{"agents", flag(setup.agents)},
                                                  {"dual-stack", flag(setup.dual_stack)},
                                                  {"strict", flag(setup.strict)},
                                                  {"seed", number(setup.seed, 0)},
                                                  {"nodes", number(setup.nodes, 1, 1000)},
                                                  {"collect", time(setup.collect_every, 1s)},
                                                  {"grace", time(setup.grace)}});
  if (taken) return {};
  return fail(invalid_argument("`store` takes agents, dual-stack, strict, seed=, nodes=1…1000, collect= and grace="));
}

[[nodiscard]] Result<void> take_pool(Words words, Setup& setup) {
  const auto cidr = net::Prefix::parse(words.size() < 3 ? std::string_view() : words[2]);
  if (!cidr) return fail(invalid_argument("`pool` needs a name and a CIDR"));
  Setup::Pool pool{std::string(words[1]), *cidr, 28, 0s};
  bool is_later = false;
  const bool taken = take_each(
      words.subspan(3),
      {{"later", flag(is_later)}, {"block", number(pool.block_length, 0, 128)}, {"cooldown", time(pool.cooldown)}});
  if (!taken) return fail(invalid_argument("`pool` takes block=, cooldown= and later"));
  TRY_VOID(core::make_pool(spec_of(pool)));
  auto& pools = is_later ? setup.later : setup.pools;
  for (const Setup::Pool& other : pools) {
    if (other.name == pool.name) return fail(invalid_argument("a second pool " + pool.name));
    if (is_later || !other.cidr.overlaps(pool.cidr)) continue;
    return fail(ErrorCode::invalid_argument, "pool {} overlaps pool {}", pool.name, other.name);
  }
  pools.push_back(std::move(pool));
  return {};
}

[[nodiscard]] Result<Step> step_of(Words words) {
  const auto wrong = [](std::string what) { return fail(invalid_argument(std::move(what))); };
  const auto at = parse_span(words.front());
  if (!at || *at < Span{0}) return wrong("no step: TIME VERB [NAME] [NODE] [for=TIME], with a TIME as 30s or 1500ms");
  const Cluster::Verb* verb = words.size() > 1 ? Cluster::verb_of(words[1]) : nullptr;
  if (verb == nullptr) return wrong("no such verb");
  Step step{*at, std::string(verb->name), {}, 0, {}};
  words = words.subspan(2);
  if (words.size() != std::size_t{verb->takes_name} + std::size_t{verb->takes_node} + std::size_t{verb->takes_span}) {
    return wrong(fmt::format("{} takes{}{}{}{}", verb->name, verb->takes_name ? " NAME" : "",
                             verb->takes_node ? " NODE" : "", verb->takes_span ? " for=TIME" : "",
                             verb->takes_name || verb->takes_node || verb->takes_span ? "" : " nothing more"));
  }
  if (verb->takes_name) {
    step.name = words.front();
    words = words.subspan(1);
  }
  if (verb->takes_node) {
    const std::string_view node = words.front();
    const auto number = node.starts_with("n") ? number_of(node.substr(1)) : std::nullopt;
    if (!number || *number < 1) return wrong("nodes are n1, n2, …");
    step.node = static_cast<std::size_t>(*number - 1);
    words = words.subspan(1);
  }
  // Only a clock is set back.
  const Span least = verb->least < Span{0} ? -Span{kLongest} : Span{0};
  if (!take_each(words, {{"for", time(step.span, least)}})) return wrong("the last word is for=TIME, as for=30s");
  return step;
}

std::int64_t milliseconds(Span span) { return std::chrono::duration_cast<std::chrono::milliseconds>(span).count(); }

std::string text_of(const Setup::Pool& pool, std::string_view more) {
  return fmt::format("pool {} {} block={} cooldown={}s{}\n", pool.name, pool.cidr.to_string(), pool.block_length,
                     pool.cooldown.count(), more);
}

}  // namespace

Result<Script> parse_script(std::string_view text) {
  Script script;
  bool has_store = false;
  const auto take = [&](Words words) -> Result<void> {
    const bool is_store = words.front() == "store";
    if (is_store == std::exchange(has_store, true)) {
      return fail(invalid_argument(is_store ? "a second store" : "a script begins with `store etcd`, or another"));
    }
    if (is_store) return take_store(words, script.setup);
    if (words.front() == "pool") return take_pool(words, script.setup);
    TRY(Step step, step_of(words));
    script.steps.push_back(std::move(step));
    return {};
  };
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto words = words_of(line.substr(0, line.find('#')));
    if (words.empty()) continue;
    if (const auto taken = take(words); !taken) return fail(taken.error().in(fmt::format("line {}", number)));
  }
  if (!has_store) return fail(invalid_argument("there is nothing in it"));
  return script;
}

std::string to_text(const Script& script) {
  const Setup& setup = script.setup;
  std::string text =
      fmt::format("store {} seed={} nodes={}{}{}{} collect={}s grace={}s\n", setup.store, setup.seed, setup.nodes,
                  setup.agents ? " agents" : "", setup.dual_stack ? " dual-stack" : "", setup.strict ? " strict" : "",
                  milliseconds(setup.collect_every) / 1000, milliseconds(setup.grace) / 1000);
  for (const Setup::Pool& pool : setup.pools) text += text_of(pool, "");
  for (const Setup::Pool& pool : setup.later) text += text_of(pool, " later");
  for (const Step& step : script.steps) text += to_text(step) + "\n";
  return text;
}

// ---------------------------------------------------------------- chance

Script script_of(std::uint64_t seed) {
  SeededRandom random(seed * 0x9e3779b97f4a7c15 + 1);
  const auto draw = [&](std::uint64_t below) { return random.next() % below; };
  const auto one_in = [&](std::uint64_t n) { return draw(n) == 0; };
  const auto between = [&](Span least, Span most) {
    const auto width = static_cast<std::uint64_t>(milliseconds(most - least)) + 1;
    return least + Span(std::chrono::milliseconds(draw(width)));
  };
  const std::vector<Cluster::Verb>& verbs = Cluster::verbs();
  Script script;
  Setup& setup = script.setup;
  setup.seed = seed;
  setup.store = kStores[draw(kStores.size())];
  setup.nodes = setup.store == "sqlite" ? 1 + static_cast<int>(draw(2)) : 1 + static_cast<int>(draw(5));
  setup.agents = !one_in(4);
  setup.dual_stack = one_in(5);
  setup.strict = one_in(4);
  constexpr std::array kCooldowns{0s, 5s, 30s};
  const int block = 28 + static_cast<int>(draw(3));
  setup.pools.push_back({"a", net::Prefix::parse("10.0.0.0/26").value(), block, kCooldowns[draw(kCooldowns.size())]});
  if (one_in(2)) {
    setup.pools.front().cidr = net::Prefix::parse("10.0.0.0/27").value();
  }
  setup.later.push_back({"b", net::Prefix::parse("10.1.0.0/27").value(), 28 + static_cast<int>(draw(3)),
                         kCooldowns[draw(kCooldowns.size())]});
  if (setup.dual_stack) {
    setup.pools.push_back({"six", net::Prefix::parse("fd00::/121").value(), 124, setup.pools.front().cooldown});
  }
  // Each run has troubles of its own: where all come at once, each hides what another would show.
  std::vector<const Cluster::Verb*> troubles;
  int weights = 0;
  for (std::size_t i = kLoad; i < verbs.size(); ++i) {
    const Cluster::Verb& verb = verbs[i];
    if (!one_in(2)) continue;
    troubles.push_back(&verb);
    weights += verb.weight;
  }
  const Span length = between(20s, 120s);
  const std::size_t steps = 20 + draw(100);
  const std::size_t names = 5 + draw(30);
  const std::uint64_t trouble_share = 5 + draw(40);
  for (std::size_t i = 0; i < steps; ++i) {
    Step step;
    step.at = between(0s, length);
    step.node = draw(static_cast<std::uint64_t>(setup.nodes));
    step.name = fmt::format("p{}", draw(names));
    const Cluster::Verb* verb = &verbs[one_in(3) ? 1 : 0];
    if (!troubles.empty() && draw(100) < trouble_share) {
      auto drawn = static_cast<int>(draw(static_cast<std::uint64_t>(weights)));
      auto chosen = troubles.begin();
      while (drawn >= (*chosen)->weight) drawn -= (*chosen++)->weight;
      verb = *chosen;
      if (verb->name.ends_with("-pool")) step.name = one_in(2) ? "a" : "b";
      if (verb->name == "create-pool") step.name = "b";
      if (verb->takes_span) step.span = between(verb->least, verb->most);
    }
    step.verb = verb->name;
    if (!verb->takes_node) step.node = 0;
    if (!verb->takes_name) step.name.clear();
    script.steps.push_back(std::move(step));
  }
  std::ranges::stable_sort(script.steps, {}, &Step::at);
  return script;
}

// ---------------------------------------------------------------- running

Outcome run(const Script& script, const std::function<void(const std::string&)>& tell,
            const std::function<void(Cluster&)>& look) {
  /// How long nothing may be left to do once every trouble is over.
  constexpr Span kLook = 10s, kPatience = 1200s;
  Schedule schedule;
  Outcome outcome;
  {
    Cluster cluster(schedule, script.setup);
    if (tell) {
      cluster.tell_to(
          [&](const std::string& what) { tell(fmt::format("{:9} ms  {}", milliseconds(schedule.now()), what)); });
    }
    const auto is_over = [&] { return !cluster.checker().violation().empty(); };
    Span last{0};
    for (const Step& step : script.steps) {
      last = std::max(last, step.at);
      schedule.at(step.at, [&cluster, &step] { cluster.act(step); });
    }
    for (Span until = kLook; until < last + 2 * kLook && !is_over(); until += kLook) {
      schedule.run_until(until);
      if (look) look(cluster);
    }
    if (!is_over()) {
      const Span end = schedule.now() + kPatience;
      while (schedule.now() < end && !cluster.is_at_rest() && !is_over()) {
        cluster.end();
        schedule.run_until(schedule.now() + kLook);
      }
      if (!is_over()) cluster.expect_rest();
    }
    outcome = {cluster.checker().violation(), cluster.checker().violated_at(), cluster.trace(), cluster.counts(),
               cluster.server().traffic(),    schedule.events_done()};
  }
  return outcome;
}

Script shrink(const Script& script, int runs_max) {
  const std::string kind = run(script).kind();
  Script shortest = script;
  if (kind.empty()) return shortest;
  int runs = 0;
  const auto still_breaks = [&](const Script& shorter) { return ++runs <= runs_max && run(shorter).kind() == kind; };
  for (std::size_t size = std::max<std::size_t>(shortest.steps.size() / 2, 1); runs <= runs_max;) {
    bool has_shrunk = false;
    for (std::size_t from = 0; from < shortest.steps.size() && runs <= runs_max;) {
      Script shorter = shortest;
      const auto first = shorter.steps.begin() + static_cast<std::ptrdiff_t>(from);
      shorter.steps.erase(first, first + static_cast<std::ptrdiff_t>(std::min(size, shorter.steps.size() - from)));
      if (still_breaks(shorter)) {
        shortest = std::move(shorter);
        has_shrunk = true;
      } else {
        from += size;
      }
    }
    if (size == 1 && !has_shrunk) break;
    size = std::max<std::size_t>(size / 2, 1);
  }
  Script plainer = shortest;
  plainer.setup.later.clear();
  if (still_breaks(plainer)) shortest = plainer;
  return shortest;
}

}  // namespace croft::sim
