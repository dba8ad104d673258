#include "agent/daemon/plugin_kubeconfig.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/text/base64.h"
#include "install/door/node_files.h"
#include "install/format/node_network.h"
#include "os/files.h"
#include "os/scratch_directory.h"

namespace croft::app {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

std::string base64url(std::string_view text) {
  std::string encoded = wire::encode_base64(text);
  std::ranges::replace(encoded, '+', '-');
  std::ranges::replace(encoded, '/', '_');
  encoded.erase(std::min(encoded.find('='), encoded.size()));
  return encoded;
}

std::string token_of(WallTime made, WallTime end) {
  const auto seconds = [](WallTime t) {
    return std::chrono::floor<std::chrono::seconds>(t).time_since_epoch().count();
  };
  return fmt::format("{}.{}.SECRET", base64url("{}"),
                     base64url(fmt::format(R"({{"iat":{},"exp":{}}})", seconds(made), seconds(end))));
}

/// What the API makes tokens of.
struct Tokens {
  std::string next;
  int made = 0;
  std::function<void()> meanwhile;  ///< while one is made
};
struct Server {  ///< an API as the plugin asks it
  int status = 200;
  int asked = 0;
};
class TestApi final : public store::kube::Api {
 public:
  using Call = std::function<store::kube::Answer(const std::string& path)>;
  explicit TestApi(Call call) : call_(std::move(call)) {}
  [[nodiscard]] store::kube::Answer call(const store::kube::Request& request, Deadline) override {
    return call_(request.path);
  }
  [[nodiscard]] store::kube::WatchAnswer watch(const std::string&, Deadline) override { return {}; }

 private:
  const Call call_;
};

class PluginKubeconfigTest : public testing::Test {
 protected:
  PluginKubeconfigTest() { install(); }
  /// As `croftd install` leaves it.
  void install() const {
    wire::InstallRecord record;
    record.kubeconfig = true;
    EXPECT_TRUE(os::replace_file_durably(record_path, encode(record)));
  }
  /// As `croftd install --uninstall` does.
  void take_back() const {
    remove();
    EXPECT_TRUE(os::remove_file_durably(record_path));
  }
  std::unique_ptr<PluginKubeconfig> kubeconfig(const std::string& server = "https://10.0.0.1:6443") {
    PluginKubeconfigOptions options;
    options.file = path;
    options.name_space = "croft-system";
    wire::kube::KubeAccess access;
    access.servers.push_back(wire::Url::parse(server).value());
    if (access.servers.front().secure) access.ca.data = "CA\n";
    return std::make_unique<PluginKubeconfig>(
        std::move(options), std::move(access),
        std::make_unique<TestApi>([this](const std::string& asked) { return make_token(asked); }), clock, random,
        [this](const std::string& file) -> Result<std::unique_ptr<store::kube::Api>> {
          EXPECT_EQ(file, path);
          return std::make_unique<TestApi>([this](const std::string& asked) { return ask_version(asked); });
        });
  }
  store::kube::Answer make_token(const std::string& asked) {
    EXPECT_EQ(asked, "/api/v1/namespaces/croft-system/serviceaccounts/croft-plugin/token");
    ++tokens.made;
    if (tokens.meanwhile) tokens.meanwhile();
    store::kube::Answer answer;
    answer.outcome = store::kube::Answer::Outcome::done;
    answer.http_status = 201;
    answer.body = fmt::format(R"({{"kind":"TokenRequest","status":{{"token":"{}"}}}})", tokens.next);
    return answer;
  }
  store::kube::Answer ask_version(const std::string& asked) {
    EXPECT_EQ(asked, "/version");
    ++plugins.asked;
    store::kube::Answer answer;
    answer.http_status = plugins.status;
    answer.outcome = plugins.status == 200 ? store::kube::Answer::Outcome::done : store::kube::Answer::Outcome::refused;
    return answer;
  }
  /// The next token is good for a day from now on.
  void renew() { tokens.next = token_of(clock.now().wall, clock.now().wall + 24h); }
  void remove() const { static_cast<void>(std::remove(path.c_str())); }
  [[nodiscard]] std::string content() const { return os::ScratchDirectory::content_of(path); }
  /// As an agent does, each second.
  std::string tended_for(PluginKubeconfig& one, std::chrono::seconds span) {
    std::string failures;
    for (auto t = 0s; t < span; t += 1s) {
      if (const auto tended = one.renew_if_due(); tended && tended->is_failure) failures += tended->line + "\n";
      clock.advance(1s);
    }
    return failures;
  }

  ManualClock clock;
  SeededRandom random{1};
  os::ScratchDirectory directory;
  const std::string path = directory.file("kubeconfig");
  const std::string record_path = directory.file(wire::kInstallRecordName);
  Tokens tokens;
  Server plugins;
};

TEST_F(PluginKubeconfigTest, IsRenewedInTheSecondQuarterOfItsTokensLife) {
  const auto one = kubeconfig();
  renew();
  EXPECT_EQ(tended_for(*one, 6h - 10s), "");
  EXPECT_EQ(tokens.made, 1);
  tokens.next = token_of(clock.now().wall + 3h, clock.now().wall + 27h);
  EXPECT_EQ(tended_for(*one, 6h + 20s), "");
  EXPECT_EQ(tokens.made, 2);
}

/// The agent asks by a name; `croftd install --api-server` gave the plugin a number.
TEST_F(PluginKubeconfigTest, ANumericServerIsNotReplacedByAName) {
  renew();
  static_cast<void>(kubeconfig("https://10.0.0.1:6443")->renew_if_due());
  const auto servers = [this] {
    const std::string text = os::read_file(path, 1U << 20U).value();
    return wire::kube::decode_kubeconfig(text, directory.path())->servers;
  };
  const auto numeric = servers();
  ASSERT_EQ(numeric.front().host, "10.0.0.1");
  const auto by_name = kubeconfig("https://api.example:6443");
  EXPECT_EQ(tended_for(*by_name, 60s), "");
  EXPECT_EQ(tokens.made, 1) << "nothing was to be written";
  clock.advance(12h);
  renew();
  EXPECT_EQ(tended_for(*by_name, 60s), "");
  EXPECT_EQ(tokens.made, 2) << "the token is renewed";
  EXPECT_EQ(servers(), numeric);
  // Nobody knows a number any more.
  remove();
  EXPECT_THAT(tended_for(*by_name, 60s), AllOf(HasSubstr("api.example"), HasSubstr("--api-server")));
  EXPECT_FALSE(os::file_status(path).value().has_value());
  EXPECT_EQ(tokens.made, 2) << "no token for nothing";
}

/// A clock ahead by half a token's life, one that has ended, one that says nothing: else a request each 5 s for ever.
TEST_F(PluginKubeconfigTest, ANewTokenOfNoUseIsToldAndNotAskedForWithoutPause) {
  const auto now = clock.now().wall;
  const std::string ahead = token_of(now - 12h, now + 12h), ended = token_of(now - 2h, now - 1h);
  for (const std::string& token : {ahead, ended, std::string("opaque"), std::string("a.b.c")}) {
    SCOPED_TRACE(token);
    remove();
    const auto one = kubeconfig();
    tokens = {token, 0, {}};
    const std::string told = tended_for(*one, 1h);
    // Every 5 minutes, or later by up to a half.
    EXPECT_GE(tokens.made, 8);
    EXPECT_LE(tokens.made, 12);
    EXPECT_EQ(std::ranges::count(told, '\n'), tokens.made) << told;
    const int before = tokens.made;
    const bool says_a_time = token == ahead || token == ended;
    EXPECT_THAT(told, HasSubstr(says_a_time ? "set the clock" : "does not say until when it is good"));
    EXPECT_THAT(told, Not(HasSubstr("SECRET")));
    EXPECT_THAT(content(), HasSubstr(token)) << "the server may take it all the same";
    // Whoever takes the file away has it back at once.
    remove();
    static_cast<void>(tended_for(*one, 10s));
    EXPECT_EQ(tokens.made, before + 1);
  }
}

/// Else a node that Croft has left would have a token of a day, which nothing takes back.
TEST_F(PluginKubeconfigTest, WhatWasTakenBackIsNotWrittenAgain) {
  const auto one = kubeconfig();
  renew();
  EXPECT_EQ(tended_for(*one, 10s), "");
  take_back();
  const std::string told = tended_for(*one, 24h);
  EXPECT_THAT(told, HasSubstr("Croft was taken back from this node; croftd install writes both"));
  EXPECT_EQ(tokens.made, 1) << "none is asked for in vain";
  EXPECT_THAT(os::list_directory(directory.file("."), 10).value(), testing::IsEmpty());
  install();
  renew();
  EXPECT_EQ(tended_for(*one, 40s), "");
  EXPECT_THAT(content(), HasSubstr(tokens.next));
}

TEST_F(PluginKubeconfigTest, NothingIsWrittenWhileSomebodyInstallsOrTakesBack) {
  const auto one = kubeconfig();
  renew();
  {
    edge::InstallTurn turn(directory.file("."));
    ASSERT_TRUE(turn.begin(clock, Deadline::after(clock.now(), 1s)));
    EXPECT_EQ(tended_for(*one, 20s), "");
    EXPECT_EQ(content(), "");
  }
  EXPECT_EQ(tended_for(*one, 10s), "");
  EXPECT_THAT(content(), HasSubstr(tokens.next));
  EXPECT_THAT(os::list_directory(directory.file("."), 10).value(),
              testing::UnorderedElementsAre("kubeconfig", wire::kInstallRecordName));
}

/// A record that nobody can read says neither; a kubeconfig that is there is renewed all the same.
TEST_F(PluginKubeconfigTest, ADamagedRecordIsToldOfAFileThatIsGone) {
  const auto one = kubeconfig();
  tokens.next = "opaque";
  static_cast<void>(tended_for(*one, 10s));
  EXPECT_TRUE(os::replace_file_durably(record_path, "{"));
  renew();
  EXPECT_EQ(tended_for(*one, 8min), "");
  EXPECT_EQ(tokens.made, 2);
  remove();
  EXPECT_THAT(tended_for(*one, 10s), HasSubstr(wire::kInstallRecordName));
  EXPECT_EQ(tokens.made, 2);
}

/// Its service account was made anew: by itself the token is good for a day.
TEST_F(PluginKubeconfigTest, ATokenThatTheServerRefusesIsReplaced) {
  const auto one = kubeconfig();
  renew();
  EXPECT_EQ(tended_for(*one, 1h), "");
  EXPECT_EQ(tokens.made, 1);
  EXPECT_GE(plugins.asked, 3600 / 25) << "by steps of 5 s";
  EXPECT_LE(plugins.asked, 3600 / 12 + 1);
  plugins.status = 401;
  const std::string other = token_of(clock.now().wall - 1s, clock.now().wall + 24h);
  tokens.next = other;
  tokens.meanwhile = [this] { plugins.status = 200; };
  EXPECT_EQ(tended_for(*one, 25s), "") << "an account that was made anew";
  EXPECT_EQ(tokens.made, 2);
  EXPECT_THAT(content(), HasSubstr(other));
  EXPECT_EQ(tended_for(*one, 1h), "");
  EXPECT_EQ(tokens.made, 2);
}

TEST_F(PluginKubeconfigTest, WhatSaysNothingOfTheTokenIsNoReason) {
  const auto one = kubeconfig();
  renew();
  for (const int status : {403, 404, 429, 500, 503, 0}) {
    plugins.status = status;
    EXPECT_EQ(tended_for(*one, 10min), "");
  }
  EXPECT_EQ(tokens.made, 1);
  EXPECT_GT(plugins.asked, 30);
}

/// As where one of several API servers has another key: else each node would make a token a minute.
TEST_F(PluginKubeconfigTest, NewTokensThatAreRefusedTooComeSeldom) {
  const auto one = kubeconfig();
  plugins.status = 401;
  tokens.meanwhile = [this] { tokens.next = token_of(clock.now().wall - 1s * tokens.made, clock.now().wall + 24h); };
  renew();
  tended_for(*one, 24h / 5);
  EXPECT_GE(tokens.made, 35);
  EXPECT_LE(tokens.made, 58);
  EXPECT_EQ(plugins.asked, tokens.made - 1) << "a refused one is not asked of again";
  const int before = tokens.made;
  plugins.status = 200;
  tended_for(*one, 25min);
  EXPECT_EQ(tokens.made, before);
}

/// The plugin reads no token that everybody on the way would read too.
TEST_F(PluginKubeconfigTest, ATokenAndNoHttpsIsNotWritten) {
  const auto one = kubeconfig("http://127.0.0.1:8001");
  renew();
  const auto text = one->text();
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(text.error().message, HasSubstr("http://127.0.0.1:8001 is no https"));
  EXPECT_THAT(tended_for(*one, 60s), HasSubstr("is no https"));
  EXPECT_EQ(tokens.made, 3);
  EXPECT_EQ(content(), "");
}

}  // namespace
}  // namespace croft::app
