#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/net/test_scenario.h"
#include "vpc/decide/assign.h"
#include "vpc/decide/reconcile.h"
#include "vpc/decide/supply.h"
#include "vpc/decide/test_stock.h"

// A stock's life told as text: vpc/decide/scenarios/*.txt. A file is a test; `begin` begins with nothing. With
// CROFT_REWRITE_SCENARIOS set, each file is written anew with what its commands print, to be read as a diff.

namespace croft::core::warm {
namespace {

/// A stock, its planner, and a cloud that does what it is told. A round is what an agent does: it looks, and asks or
/// gives back.
class World {
 public:
  std::string run(const std::string& line) {
    out_.clear();
    Command command(line);
    static const std::map<std::string, void (World::*)(Command&)> kCommands = {
        {"marks", &World::marks},
        {"cloud", &World::cloud},
        {"rounds", &World::rounds},
        {"restart", &World::restart},
        {"reboot", &World::reboot},
        {"set-clock", &World::set_clock},
        {"wait", &World::wait},
        {"add", &World::add},
        {"del", &World::del},
        {"show", &World::show},
        {"waiting", &World::waiting},
        {"release", &World::release},
        {"stock", &World::stock},
        {"pods", &World::pods},
        {"host", &World::host},
        {"said", &World::said},
        {"denied", &World::denied},
        {"apart", &World::apart},
        {"asked", &World::asked},
        {"pass", &World::pass},
        {"records", &World::records},
        {"other-card", &World::other_card},
        {"aside", &World::enter<StockAddressState::quarantined>},
        {"releasing", &World::enter<StockAddressState::releasing>},
        {"lent", &World::enter<StockAddressState::lent>},
    };
    const auto found = kCommands.find(command.word("the command"));
    if (found == kCommands.end()) throw Malformed("unknown command");
    (this->*found->second)(command);
    command.done();
    return out_;
  }

 private:
  template <class... Args>
  void say(fmt::format_string<Args...> format, Args&&... args) {
    out_ += fmt::format(format, std::forward<Args>(args)...) + "\n";
  }
  [[nodiscard]] Instant now() const { return stock_.clock.now(); }

  void marks(Command& c) {
    marks_ = {};
    marks_.low = c.number("low", marks_.low);
    marks_.high = c.number("high", marks_.high);
    marks_.node_max = c.number("max", marks_.node_max);
    marks_.batch_max = c.number("batch", marks_.batch_max);
    if (c.has("cooldown")) cooldown_ = Command::parse_span(c.option("cooldown"));
    if (const auto checked = check_marks(marks_); !checked) say("{}", checked.error().message);
  }
  /// What it answers from now on; `left`: how many addresses its subnet has still; `used`: of so many of the next ones
  /// the wire says that somebody has them.
  /// `has`: its whole list for a pass, and `silent`: none.
  void cloud(Command& c) {
    if (c.flag("silent")) return look_.cloud.reset();
    if (c.flag("has")) {
      look_.cloud.emplace();
      for (const net::Address& one : set_of(c)) look_.cloud->push_back(given(one.to_string()));
      return;
    }
    static const std::map<std::string, Outcome> kAnswers = {
        {"gives", Outcome::done}, {"is-away", Outcome::away}, {"refuses", Outcome::refused}};
    const auto found = kAnswers.find(c.word("what the cloud does"));
    if (found == kAnswers.end()) throw Malformed("the cloud gives, is-away or refuses");
    answer_ = found->second;
    left_ = c.number("left", left_);
    used_ = c.number("used", used_);
  }
  /// So many ADDs wait from now on.
  void waiting(Command& c) { waiting_ = Command::number_of(c.word("how many")); }
  void restart(Command&) { memory_ = {}; }
  /// The agent begins anew too.
  void reboot(Command& c) {
    stock_.clock.reboot(Command::parse_span(c.word("how long it is down")));
    memory_ = {};
    next_ = {};
    if (!stock_.decide(plan_mark_clocks)) throw Malformed("reboot");
  }
  void set_clock(Command& c) {
    const bool back = c.flag("back");
    const auto span = Command::parse_span(c.word("by how much"));
    stock_.clock.jump_wall(back ? -span : span);
  }
  void wait(Command& c) { stock_.clock.advance(Command::parse_span(c.word("how long"))); }

  /// All rounds that are due in that time; what they do, with the second at which they do it.
  void rounds(Command& c) {
    const auto span = Command::parse_span(c.word("for how long"));
    const auto begin = now().since_boot, end = begin + span;
    next_ = begin;  // somebody rings: a round is due at once
    while (next_ <= end) {
      stock_.clock.advance(next_ - now().since_boot);
      round((now().since_boot - begin).count());
    }
    stock_.clock.advance(end - now().since_boot);
  }
  void round(std::int64_t since_ns) {
    const double at = static_cast<double>(since_ns) / 1e9;
    const Wish wish = plan_stock(stock_.counts(), marks_, waiting_, memory_, now());
    next_ = wish.look_again;
    if (wish.grow > 0) {
      const std::uint32_t given = answer_ == Outcome::done ? std::min(wish.grow, left_) : 0;
      const bool is_exhausted = answer_ == Outcome::done && given == 0;
      const std::uint32_t good = take_in(given);
      const Outcome outcome = is_exhausted ? Outcome::exhausted : given > 0 ? judge_fill(given, good) : answer_;
      memory_ = after_growing(memory_, outcome, 0, now());
      next_ = std::max(now().since_boot, waiting_ > 0 ? memory_.one_not_before : memory_.grow_not_before);
      say("{:g}s asked for {}, got {}{} ({})", at, wish.grow, given,
          good < given ? fmt::format(", {} of them somebody's", given - good) : "", wish.why);
    } else if (wish.shrink > 0) {
      const std::size_t gone = give_back({.count = wish.shrink});
      memory_ = after_shrinking(memory_, Outcome::done, 0, now());
      next_ = memory_.shrink_not_before;
      say("{:g}s gave {} back ({})", at, gone, wish.why);
    } else if (wish.why != std::exchange(told_, wish.why)) {
      say("{:g}s {}", at, wish.why);
    }
  }
  /// How many of them are nobody else's.
  std::uint32_t take_in(std::uint32_t count) {
    std::vector<Given> into;
    std::vector<Probed> probed;
    for (std::uint32_t i = 0; i < count; ++i, ++last_) {
      const bool is_used = used_ > 0;
      used_ -= is_used ? 1U : 0U;
      into.push_back(given(fmt::format("10.9.{}.{}", last_ / 250, 2 + last_ % 250)));
      probed.push_back({into.back().address, is_used ? std::optional(kOtherMac) : std::nullopt});
    }
    left_ -= count;
    if (into.empty()) return 0;
    stock_.take(into);
    const auto moved = stock_.decide(plan_probed, probed);
    return static_cast<std::uint32_t>(std::ranges::count(moved.value(), StockAddressState::free, &StockAddress::state));
  }
  std::size_t give_back(const ReturnToCloud& what) {
    std::vector<net::Address> gone;
    const Changed going = stock_.decide(plan_return_to_cloud, what).value();
    for (const StockAddress& one : going) gone.push_back(one.address);
    if (!stock_.decide(plan_returned, gone)) throw Malformed("what is given back");
    left_ += static_cast<std::uint32_t>(gone.size());
    return gone.size();
  }
  /// An operator gives the quarantined ones back.
  void release(Command&) {
    std::vector<net::Address> aside;
    for (const StockAddress& one : stock_.all()) {
      if (one.state == StockAddressState::quarantined) aside.push_back(one.address);
    }
    say("released {}", give_back({.addresses = aside, .unused = true}));
    memory_ = without_shortage(memory_);
  }

  void add(Command& c) {
    const std::string container = c.word("a container");
    const std::string pod = c.has("of") ? c.option("of") : std::string();  // whose sandbox it is, by name and UID
    Request request = pod.empty() ? request_of(container) : request_of(container, pod, "uid-of-" + pod);
    request.cooldown = cooldown_;
    const std::string got = stock_.address_for(request);
    say("{}", got.empty() ? "the stock is empty" : got);
  }
  void del(Command& c) {
    const std::string container = c.word("a container");
    const std::size_t let_go = stock_.release({{"net", container, "eth0"}, {}, {}, cooldown_});
    if (let_go == 0) say("nothing held");
  }
  void show(Command&) {
    const Counts counts = stock_.counts();
    say("{}: {} free, {} cooling, {} held of {} on the node; {} left in the subnet", status_of(counts, marks_),
        counts.free, counts.cooling, counts.held, counts.on_node(), left_);
  }

  // ---- what cloud, pods and host say of the records (reconcile.h)

  static std::string at(const std::string& byte) { return "10.9.0." + byte; }
  static std::set<net::Address> set_of(Command& c) {
    std::set<net::Address> all;
    while (c.more()) all.insert(address_of(at(c.word("an address"))));
    return all;
  }
  /// The agent has seen it before its first pass.
  void put(StockAddress record) {
    stock_.records.put(warm_address_key(record.address), std::move(record));
    passes_.note(stock_.all(), now());
  }
  /// `7`: a free one; `7=a`: pod a holds it.
  void stock(Command& c) {
    std::map<std::string, std::string> held = c.rest();
    for (const net::Address& one : set_of(c)) stock_.take({given(one.to_string(), true)});
    for (const auto& [byte, pod] : held) {
      stock_.take({given(at(byte), true)});
      const Request request = request_of(pod);
      StockAddress record = with_state(*stock_.find(at(byte)), StockAddressState::held, now());
      record.owner = request.owner;
      record.pod = request.pod;
      record.netns = request.netns;
      put(std::move(record));
    }
    passes_.note(stock_.all(), now());
  }
  [[nodiscard]] StockAddress known(Command& c) const {
    const StockAddress* found = stock_.find(at(c.word("an address")));
    if (found == nullptr) throw Malformed("the stock does not have it");
    return *found;
  }
  template <StockAddressState State>
  void enter(Command& c) {
    put(with_state(known(c), State, now()));
  }
  void other_card(Command& c) {
    StockAddress record = known(c);
    record.mac = kOtherMac;
    put(std::move(record));
  }
  /// Living ones, `a=7` with its address.
  void pods(Command& c) {
    if (c.flag("silent")) return look_.pods.reset();
    look_.pods.emplace();
    for (const auto& [pod, byte] : c.rest()) look_.pods->push_back({{pod, "shop", ""}, {address_of(at(byte))}, false});
    while (c.more()) look_.pods->push_back({{c.word("a pod"), "shop", ""}, {}, false});
  }
  /// What the host's own namespace uses.
  void host(Command& c) {
    if (c.flag("silent")) return look_.host.reset();
    look_.host = set_of(c);
  }
  /// What a pod's namespace says beside that.
  void said(Command& c) {
    look_.said_by_pods = set_of(c);
    look_.host->insert(look_.said_by_pods.begin(), look_.said_by_pods.end());
  }
  /// The cloud was asked by name, and does not have them.
  void denied(Command& c) { look_.denied = set_of(c); }
  /// A claim names them.
  void apart(Command& c) { look_.apart = set_of(c); }
  /// An intent is open.
  void asked(Command&) {
    StockIntent intent;
    intent.id = std::string(32, '0');
    stock_.records.put(warm_intent_key(intent.id), intent);
  }
  /// Time goes by, and a pass is made.
  void pass(Command& c) {
    stock_.clock.advance(Command::parse_span(c.word("how long")));
    look_.begun = now();
    std::vector<StockIntent> intents;
    for (const auto& [key, value] : stock_.records.records()) {
      if (const auto* intent = std::get_if<StockIntent>(&value)) intents.push_back(*intent);
    }
    passes_.note(stock_.all(), look_.begun);
    Findings found = reconcile(look_, stock_.all(), intents, passes_, {}, now());
    passes_ = std::move(found.memory);
    const auto done = stock_.decide(plan_corrections, found.corrections);
    EXPECT_EQ(done.value().size(), found.corrections.size());
  }
  void records(Command&) {
    static const std::map<StockAddressState, std::string> kStates{
        {StockAddressState::probing, "probing"},     {StockAddressState::free, "free"},
        {StockAddressState::held, "held"},           {StockAddressState::cooling, "cooling"},
        {StockAddressState::releasing, "releasing"}, {StockAddressState::lending, "lending"},
        {StockAddressState::lent, "lent"},           {StockAddressState::quarantined, "aside"}};
    static const std::map<StockDoubt, std::string> kDoubts{
        {StockDoubt::not_in_cloud, "cloud"}, {StockDoubt::used_by_host, "host"}, {StockDoubt::used_by_pod, "pod"}};
    std::map<net::Address, std::string> all;
    for (const StockAddress& one : stock_.all()) {
      const std::string text = one.address.to_string();
      std::string& out = all[one.address];
      out = fmt::format("{} {}", text.substr(text.rfind('.') + 1), kStates.at(one.state));
      if (one.state == StockAddressState::held) out += " " + one.pod.name;
      for (const StockDoubt doubt : one.doubts) out += " ?" + kDoubts.at(doubt);
    }
    std::string text;
    for (const auto& [address, one] : all) text += (text.empty() ? "" : ", ") + one;
    const bool is_open = stock_.records.get(warm_intent_key(std::string(32, '0'))) != nullptr;
    say("{}{}", text.empty() ? "nothing" : text, is_open ? ", asked" : "");
  }

  TestStock stock_;
  Look look_;
  Memory passes_;
  Marks marks_;
  std::chrono::seconds cooldown_{30};
  PlannerMemory memory_;
  Outcome answer_ = Outcome::done;
  std::uint32_t left_ = 10'000, used_ = 0, waiting_ = 0, last_ = 0;
  std::chrono::nanoseconds next_{};
  std::string told_, out_;
};

// ---------------------------------------------------------------- files

const std::filesystem::path kFolder = CROFT_STOCK_SCENARIOS;

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> files() {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".txt") found.push_back(entry.path().stem().string());
  }
  std::ranges::sort(found);
  return found;
}

class StockScenario : public testing::TestWithParam<std::string> {};

TEST_P(StockScenario, IsAsWritten) {
  const std::filesystem::path path = kFolder / (GetParam() + ".txt");
  const bool rewrite = std::getenv("CROFT_REWRITE_SCENARIOS") != nullptr;
  std::string anew;
  try {
    const std::vector<Group> groups = groups_of(content_of(path));
    ASSERT_FALSE(groups.empty()) << path;
    EXPECT_TRUE(groups.front().lines.front().second.starts_with("# ")) << path << ": begins without a comment";
    auto world = std::make_unique<World>();
    for (const Group& group : groups) {
      std::string output;
      anew += anew.empty() ? "" : "\n";
      for (const auto& [number, line] : group.lines) {
        anew += line + "\n";
        try {
          if (line == "begin") {
            world = std::make_unique<World>();
          } else if (!line.starts_with('#')) {
            output += world->run(line);
          }
        } catch (const Malformed& fault) {
          throw Malformed(fmt::format("{}: {}: {}", number, line, fault.what()));
        }
      }
      if (!output.empty()) anew += "----\n" + output;
      if (!rewrite) {
        EXPECT_EQ(output, group.expected) << path << ":" << group.line;
      }
    }
    if (rewrite) std::ofstream(path, std::ios::binary) << anew;
  } catch (const Malformed& fault) {
    FAIL() << path << ":" << fault.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Stock, StockScenario, testing::ValuesIn(files()),
                         [](const auto& tested) { return tested.param; });

TEST(StockScenarioFile, MistakesAreRefused) {
  for (const char* line : {"mark low=1", "marks low=x", "marks lo=1", "cloud rains", "add", "rounds", "wait 3",
                           "show all", "aside 9", "releasing 9", "lent 9", "other-card 9"}) {
    World world;
    EXPECT_THROW(world.run(line), Malformed) << line;
  }
}

}  // namespace
}  // namespace croft::core::warm
