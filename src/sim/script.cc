#include "sim/script.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/manual_clock.h"

namespace croft::sim {
namespace {

using namespace std::chrono_literals;

/// What a step may say, and what it does.
struct Verb {
  std::string_view name;
  bool takes_name, takes_node, takes_span;
  void (*act)(Cluster&, const Step&);
  int weight;  ///< how often it is chosen, beside the others that a run has
  Span least, most;
};

template <Mishap kMishap>
void meet(Cluster& cluster, const Step& step) {
  cluster.mishap(step.node, {kMishap, step.span});
}

const std::vector<Verb>& verbs() {
  using C = Cluster;
  using S = const Step&;
  static const std::vector<Verb> kVerbs{
      // The load comes first: script_of() knows these by their places.
      {"create", true, true, false, [](C& c, S s) { c.create_pod(s.name, s.node); }, 0, {}, {}},
      {"delete", true, false, false, [](C& c, S s) { c.delete_pod(s.name); }, 0, {}, {}},
      {"restart", true, false, false, [](C& c, S s) { c.restart_pod(s.name); }, 6, {}, {}},
      {"redo", true, false, true, [](C& c, S s) { c.redo_pod(s.name, s.span); }, 8, 50ms, 20s},
      {"redo-all", false, true, true, [](C& c, S s) { c.redo_all(s.node, s.span); }, 6, 50ms, 20s},
      {"force-delete", true, false, false, [](C& c, S s) { c.force_delete_pod(s.name); }, 3, {}, {}},
      {"add-again", true, false, false, [](C& c, S s) { c.add_again(s.name); }, 3, {}, {}},
      {"kill-agent", false, true, true, [](C& c, S s) { c.kill_agent(s.node, s.span); }, 6, 200ms, 8s},
      {"kill-plugins", false, true, false, [](C& c, S s) { c.kill_plugins(s.node); }, 6, {}, {}},
      {"freeze-agent", false, true, true, [](C& c, S s) { c.freeze_agent(s.node, s.span); }, 5, 500ms, 20s},
      {"lose-reply", false, true, false, meet<Mishap::lose_reply>, 8, {}, {}},
      {"lose-request", false, true, false, meet<Mishap::lose_request>, 6, {}, {}},
      {"late-request", false, true, true, meet<Mishap::late_request>, 6, 10ms, 20s},
      {"conflict", false, true, false, meet<Mishap::conflict>, 5, {}, {}},
      {"cut", false, true, true, [](C& c, S s) { c.cut(s.node, s.span); }, 4, 100ms, 20s},
      {"lag", false, true, true, [](C& c, S s) { c.lag(s.node, s.span); }, 4, 50ms, 3s},
      {"set-clock", false, true, true, [](C& c, S s) { c.set_clock(s.node, s.span); }, 4, -30min, 30min},
      {"reboot", false, true, true, [](C& c, S s) { c.reboot(s.node, s.span); }, 2, 1s, 30s},
      {"lose-node", false, true, false, [](C& c, S s) { c.lose_node(s.node); }, 1, {}, {}},
      {"store-down", false, false, true, [](C& c, S s) { c.store_down(s.span); }, 3, 100ms, 15s},
      {"power-cut", false, false, true, [](C& c, S s) { c.power_cut(s.span); }, 3, 100ms, 10s},
      {"slow-store", false, false, true, [](C& c, S s) { c.slow_store(s.span); }, 4, 1s, 60s},
      {"disk-full", false, false, true, [](C& c, S s) { c.disk_full(s.span); }, 2, 500ms, 15s},
      {"restart-controller", false, false, true, [](C& c, S s) { c.restart_controller(s.span); }, 2, 100ms, 10s},
      {"freeze-controller", false, false, true, [](C& c, S s) { c.freeze_controller(s.span); }, 2, 1s, 40s},
      {"stale-lists", false, false, true, [](C& c, S s) { c.stale_lists(s.span); }, 2, 20s, 200s},
      {"empty-api", false, false, true, [](C& c, S s) { c.empty_api(s.span); }, 1, 10s, 200s},
      {"mute", false, true, true, [](C& c, S s) { c.mute(s.node, s.span); }, 2, 10s, 200s},
      {"disable-pool", true, false, false, [](C& c, S s) { c.set_pool_disabled(s.name, true); }, 2, {}, {}},
      {"enable-pool", true, false, false, [](C& c, S s) { c.set_pool_disabled(s.name, false); }, 3, {}, {}},
      {"delete-pool", true, false, false, [](C& c, S s) { c.delete_pool(s.name); }, 1, {}, {}},
      {"create-pool", true, false, false, nullptr, 3, {}, {}},
      {"remove-node", false, true, false, [](C& c, S s) { c.remove_node(s.node); }, 1, {}, {}},
      {"take-copy", false, false, false, [](C& c, S) { c.take_copy(); }, 1, {}, {}},
      {"restore", false, false, false, [](C& c, S) { c.restore(); }, 1, {}, {}},
  };
  return kVerbs;
}
constexpr std::size_t kLoad = 2;  ///< of the verbs

const Verb* verb_of(std::string_view name) {
  const auto found = std::ranges::find(verbs(), name, &Verb::name);
  return found == verbs().end() ? nullptr : &*found;
}

Error malformed(std::size_t line, std::string_view what) {
  return {ErrorCode::invalid_argument, fmt::format("line {}: {}", line, what), {}};
}

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

/// 1500ms or 30s.
std::optional<Span> span_of(std::string_view text) {
  const bool is_ms = text.ends_with("ms");
  if (!is_ms && !text.ends_with("s")) return {};
  const auto number = number_of(text.substr(0, text.size() - (is_ms ? 2 : 1)));
  if (!number) return {};
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

/// The value of `name=`; null when another word is meant.
std::optional<std::string_view> value_of(std::string_view word, std::string_view name) {
  if (!word.starts_with(name) || word.size() <= name.size() || word[name.size()] != '=') return {};
  return word.substr(name.size() + 1);
}

[[nodiscard]] bool take_store(const std::vector<std::string_view>& words, Setup& setup) {
  if (words.size() < 2 || !manners_of(words[1])) return false;
  setup.store = words[1];
  setup.agents = false;
  for (const std::string_view word : std::vector(words.begin() + 2, words.end())) {
    if (word == "agents") {
      setup.agents = true;
    } else if (word == "dual-stack") {
      setup.dual_stack = true;
    } else if (word == "strict") {
      setup.strict = true;
    } else if (const auto seed = value_of(word, "seed"); seed && number_of(*seed)) {
      setup.seed = static_cast<std::uint64_t>(*number_of(*seed));
    } else if (const auto nodes = value_of(word, "nodes"); nodes && number_of(*nodes)) {
      setup.nodes = static_cast<int>(*number_of(*nodes));
    } else if (const auto every = value_of(word, "collect"); every && span_of(*every)) {
      setup.collect_every = *span_of(*every);
    } else if (const auto grace = value_of(word, "grace"); grace && span_of(*grace)) {
      setup.grace = *span_of(*grace);
    } else {
      return false;
    }
  }
  return setup.nodes >= 1 && setup.nodes <= 1000;
}

[[nodiscard]] bool take_pool(const std::vector<std::string_view>& words, Script& script) {
  if (words.size() < 3) return false;
  const auto cidr = net::Prefix::parse(words[2]);
  if (!cidr) return false;
  Setup::Pool pool{std::string(words[1]), *cidr, 28, 0s};
  bool is_later = false;
  for (const std::string_view word : std::vector(words.begin() + 3, words.end())) {
    if (word == "later") {
      is_later = true;
    } else if (const auto block = value_of(word, "block"); block && number_of(*block)) {
      pool.block_length = static_cast<int>(*number_of(*block));
    } else if (const auto rest = value_of(word, "cooldown"); rest && span_of(*rest)) {
      pool.cooldown = std::chrono::duration_cast<std::chrono::seconds>(*span_of(*rest));
    } else {
      return false;
    }
  }
  (is_later ? script.later : script.setup.pools).push_back(std::move(pool));
  return true;
}

[[nodiscard]] std::optional<Step> step_of(const std::vector<std::string_view>& words) {
  const auto at = span_of(words.front());
  const Verb* verb = words.size() > 1 ? verb_of(words[1]) : nullptr;
  if (!at || verb == nullptr) return {};
  Step step{*at, std::string(verb->name), {}, 0, {}};
  std::size_t next = 2;
  const auto word = [&]() -> std::string_view { return next < words.size() ? words[next++] : std::string_view(); };
  if (verb->takes_name) step.name = word();
  if (verb->takes_node) {
    const std::string_view node = word();
    const auto number = node.starts_with("n") ? number_of(node.substr(1)) : std::nullopt;
    if (!number || *number < 1) return {};
    step.node = static_cast<std::size_t>(*number - 1);
  }
  if (verb->takes_span) {
    const auto value = value_of(word(), "for");
    const auto span = value ? span_of(*value) : std::nullopt;
    if (!span) return {};
    step.span = *span;
  }
  const bool has_name = !verb->takes_name || !step.name.empty();
  return has_name && next == words.size() ? std::optional(step) : std::nullopt;
}

std::int64_t milliseconds(Span span) { return std::chrono::duration_cast<std::chrono::milliseconds>(span).count(); }

std::string text_of(const Setup::Pool& pool, std::string_view more) {
  return fmt::format("pool {} {} block={} cooldown={}s{}\n", pool.name, pool.cidr.to_string(), pool.block_length,
                     pool.cooldown.count(), more);
}

}  // namespace

Result<Script> parse_script(std::string_view text) {
  Script script;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto words = words_of(line.substr(0, line.find('#')));
    if (words.empty()) continue;
    if (words.front() == "store") {
      if (!take_store(words, script.setup)) return fail(malformed(number, "no store, or something it does not have"));
    } else if (words.front() == "pool") {
      if (!take_pool(words, script)) return fail(malformed(number, "no pool, or something it does not have"));
    } else {
      auto step = step_of(words);
      if (!step) return fail(malformed(number, "no step: TIME VERB [NAME] [NODE] [for=TIME]"));
      script.steps.push_back(*std::move(step));
    }
  }
  return script;
}

std::string to_text(const Script& script) {
  const Setup& setup = script.setup;
  std::string text =
      fmt::format("store {} seed={} nodes={}{}{}{} collect={}s grace={}s\n", setup.store, setup.seed, setup.nodes,
                  setup.agents ? " agents" : "", setup.dual_stack ? " dual-stack" : "", setup.strict ? " strict" : "",
                  milliseconds(setup.collect_every) / 1000, milliseconds(setup.grace) / 1000);
  for (const Setup::Pool& pool : setup.pools) text += text_of(pool, "");
  for (const Setup::Pool& pool : script.later) text += text_of(pool, " later");
  for (const Step& step : script.steps) {
    const Verb& verb = *verb_of(step.verb);
    text += fmt::format("{}ms {}", milliseconds(step.at), step.verb);
    if (verb.takes_name) text += " " + step.name;
    if (verb.takes_node) text += fmt::format(" n{}", step.node + 1);
    if (verb.takes_span) text += fmt::format(" for={}ms", milliseconds(step.span));
    text += "\n";
  }
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
  script.later.push_back({"b", net::Prefix::parse("10.1.0.0/27").value(), 28 + static_cast<int>(draw(3)),
                          kCooldowns[draw(kCooldowns.size())]});
  if (setup.dual_stack) {
    setup.pools.push_back({"six", net::Prefix::parse("fd00::/121").value(), 124, setup.pools.front().cooldown});
  }
  // Of the troubles each run has its own: where all come at once, each hides what another would show.
  std::vector<const Verb*> troubles;
  int weights = 0;
  for (std::size_t i = kLoad; i < verbs().size(); ++i) {
    const Verb& verb = verbs()[i];
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
    const Verb* verb = &verbs()[one_in(3) ? 1 : 0];
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

Outcome run(const Script& script, const std::function<void(const std::string&)>& tell) {
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
      schedule.at(step.at, [&cluster, &script, &step, &tell, &schedule] {
        if (tell)
          tell(fmt::format("{:9} ms  > {} {} n{}", milliseconds(schedule.now()), step.verb, step.name, step.node + 1));
        if (step.verb == "create-pool") {
          const auto pool = std::ranges::find(script.later, step.name, &Setup::Pool::name);
          if (pool != script.later.end()) cluster.create_pool(*pool);
          return;
        }
        verb_of(step.verb)->act(cluster, step);
      });
    }
    for (Span until = kLook; until < last + 2 * kLook && !is_over(); until += kLook) schedule.run_until(until);
    if (!is_over()) {
      const Span end = schedule.now() + kPatience;
      while (schedule.now() < end && !cluster.is_at_rest() && !is_over()) {
        cluster.end();
        schedule.run_until(schedule.now() + kLook);
      }
      if (!is_over()) cluster.checker().expect_clean();
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
  plainer.later.clear();
  if (still_breaks(plainer)) shortest = plainer;
  return shortest;
}

}  // namespace croft::sim
