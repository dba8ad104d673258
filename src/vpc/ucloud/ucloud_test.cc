#include "vpc/ucloud/ucloud.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "http/http1_server_fixture.h"
#include "os/clock.h"
#include "os/digest.h"

namespace croft::cloud::ucloud {
namespace {

using namespace net::literals;
using std::chrono::milliseconds;
using std::chrono::seconds;
namespace wu = wire::ucloud;

/// The parameters of a form, as the client writes them.
wu::Parameters parameters_of(std::string_view form) {
  wu::Parameters all;
  for (std::size_t i = 0; i < form.size();) {
    const std::string_view one = form.substr(i, form.find('&', i) - i);
    i += one.size() + 1;
    std::string plain[2];
    std::size_t part = 0;
    for (std::size_t k = 0; k < one.size(); ++k) {
      if (one[k] == '=') {
        part = 1;
      } else if (one[k] == '%') {
        plain[part] += static_cast<char>(std::stoi(std::string(one.substr(k + 1, 2)), nullptr, 16));
        k += 2;
      } else {
        plain[part] += one[k];
      }
    }
    all.emplace_back(plain[0], plain[1]);
  }
  return all;
}

/// The value of a parameter; null: it is not there.
const std::string* find(const wu::Parameters& parameters, std::string_view name) {
  const auto found = std::ranges::find(parameters, name, &std::pair<std::string, std::string>::first);
  return found == parameters.end() ? nullptr : &found->second;
}

// ---------------------------------------------------------------- the client, with a server that says what it is told

constexpr const char* kMetadataAnswer = R"({"availability-zone":"cn-bj2-04","instance-id":"uhost-1","region":"cn-bj2",
  "uhost":{"project-id":"org-1","network-interfaces":[{"default":true,"id":"x","mac":"52:54:00:00:00:0A",
  "subnet-id":"subnet-1","vpc-id":"uvnet-1"}]}})";
constexpr const char* kHostAnswer = R"({"RetCode":0,"UHostSet":[{"IPSet":[{"Default":"true","Mac":"52:54:00:00:00:0a",
  "NetworkInterfaceId":"uni-1"}]}]})";

/// The wall clock of the machine, set wrong.
class SetClock final : public Clock {
 public:
  std::atomic<seconds> ahead{seconds{0}};
  [[nodiscard]] Instant now() const override {
    Instant now = right_.now();
    now.wall += ahead.load();
    return now;
  }

 private:
  os::SystemClock right_;
};

class Scripted : public testing::Test {
 protected:
  struct Step {
    std::string action;
    int status = 200;
    std::string body;
    bool lost = false;  ///< the connection is closed without an answer
  };

  void SetUp() override {
    server_ =
        std::make_unique<os::Http1ServerFixture>([this](const os::HttpRequest& request) { return answer(request); });
    restart();
  }

  void restart() {
    Place place;
    place.api = "http://" + server_->where();
    place.metadata = place.api + "/node-a";
    provider = open_ucloud(place, keys, {}, machine).value();
    provider->on_call([this](const Provider::Call& call) { calls.push_back(call.action + " " + call.outcome); });
  }

  std::optional<os::HttpResponse> answer(const os::HttpRequest& request) {
    const std::lock_guard lock(mutex_);
    if (request.target == "/node-a/meta-data/v1.json") return os::HttpResponse{200, {}, metadata};
    if (request.target == "/node-a/meta-data/v1/uam/security-credentials/Uk8sServiceCharacter") {
      ++tokens;
      if (!has_tokens) return os::HttpResponse{404, {}, ""};
      const auto expires = std::chrono::floor<seconds>(clock.now().wall.time_since_epoch()) + token_life;
      return os::HttpResponse{200,
                              {},
                              R"({"RetCode":0,"Data":{"Expiration":)" + std::to_string(expires.count()) +
                                  R"(,"PublicKey":"pub","PrivateKey":"pri-)" + std::to_string(tokens) +
                                  R"(","SecurityToken":"tok-)" + std::to_string(tokens) + "\"}}"};
    }
    requests.push_back(parameters_of(request.body));
    const std::string* action = find(requests.back(), "Action");
    if (action != nullptr && *action == "DescribeUHostInstance") return os::HttpResponse{200, {}, kHostAnswer};
    if (script.empty() || action == nullptr || script.front().action != *action) {
      ADD_FAILURE() << "nobody expected " << (action == nullptr ? "this" : *action);
      return os::HttpResponse{500, {}, ""};
    }
    const Step step = script.front();
    script.pop_front();
    if (step.lost) return std::nullopt;
    return os::HttpResponse{step.status, {}, step.body};
  }

  Deadline soon() { return Deadline::after(clock.now(), seconds(20)); }
  Interface own() { return provider->interface(soon()).value(); }
  ErrorCode allocate_with(const Step& step) {
    script = {step};
    const auto result = provider->allocate(own(), "subnet-1", 1, soon());
    EXPECT_TRUE(script.empty());
    return result ? ErrorCode{} : result.error().code;
  }
  ErrorCode describe_with(const Step& step) {
    script = {step};
    const auto result = provider->describe(own(), "subnet-1", soon());
    return result ? ErrorCode{} : result.error().code;
  }
  static std::string address(const std::string& ip, const std::string& mac = "52:54:00:00:00:0A") {
    return R"({"Ip":")" + ip + R"(","Mask":"255.255.255.0","Gateway":"10.9.1.1","Mac":")" + mac +
           R"(","SubnetId":"subnet-1","VPCId":"uvnet-1"})";
  }

  os::SystemClock clock;
  SetClock machine;
  wu::Keys keys;
  std::string metadata = kMetadataAnswer;
  bool has_tokens = true;
  seconds token_life{3600};
  int tokens = 0;
  std::deque<Step> script;
  std::vector<wu::Parameters> requests;
  std::vector<std::string> calls;
  std::unique_ptr<Provider> provider;

 private:
  std::mutex mutex_;
  std::unique_ptr<os::Http1ServerFixture> server_;
};

TEST_F(Scripted, FindsItsInterface) {
  const Interface found = own();
  EXPECT_EQ(found, (Interface{net::Mac::parse("52:54:00:00:00:0a").value(), "uni-1", "uvnet-1", "subnet-1", "cn-bj2-04",
                              "cn-bj2", "org-1", "uhost-1"}));
  EXPECT_EQ(own(), found);
  EXPECT_EQ(requests.size(), 1U) << "the API knows nothing new while the metadata say the same";
  EXPECT_EQ(calls, (std::vector<std::string>{"metadata ok", "DescribeUHostInstance ok", "metadata ok"}));
  metadata = "{}";
  restart();
  EXPECT_EQ(provider->interface(soon()).error().code, ErrorCode::internal);
}

TEST_F(Scripted, AnOddElementIsPassedOverAndSaysNothingOfWhatIsNotThere) {
  const std::string odd = R"({"Ip":"10.9.1.999","Mac":"52:54:00:00:00:0A","SubnetId":"subnet-1"})";
  const std::string list = R"({"RetCode":0,"DataSet":[)" + address("10.9.1.7") + "," + odd + "]}";
  script = {{"DescribeSecondaryIp", 200, list}};
  const auto found = provider->describe(own(), "subnet-1", soon());
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ(found->front().address, "10.9.1.7"_ip);
  // It may be the one that is asked for.
  script = {{"DescribeSecondaryIp", 200, list},
            {"DescribeSecondaryIp", 200, R"({"RetCode":0,"DataSet":[)" + odd + "]}"},
            {"DescribeSecondaryIp", 200, list},
            {"DescribeSecondaryIp", 200, R"({"RetCode":0,"DataSet":[]})"}};
  const auto unclear = provider->describe_address("uvnet-1", "subnet-1", "10.9.1.9"_ip, soon());
  ASSERT_FALSE(unclear);
  EXPECT_NE(unclear.error().message.find("10.9.1.9 cannot be read"), std::string::npos) << unclear.error().message;
  ASSERT_FALSE(provider->describe_address("uvnet-1", "subnet-1", "10.9.1.9"_ip, soon()));
  EXPECT_TRUE(provider->describe_address("uvnet-1", "subnet-1", "10.9.1.7"_ip, soon()).value());
  EXPECT_FALSE(provider->describe_address("uvnet-1", "subnet-1", "10.9.1.9"_ip, soon()).value());
}

TEST_F(Scripted, SignsEachRequest) {
  script = {{"AllocateSecondaryIp", 200, R"({"RetCode":0,"IpInfo":)" + address("10.9.1.7") + "}"}};
  const auto given = provider->allocate(own(), "subnet-1", 1, soon()).value();
  ASSERT_EQ(given.size(), 1U);
  EXPECT_EQ(given[0], (CloudAddress{"10.9.1.7"_ip, 24, "10.9.1.1"_ip, own().mac, "uvnet-1", "subnet-1", "uni-1"}));
  const wu::Parameters& sent = requests.back();
  EXPECT_EQ(*find(sent, "Signature"), wu::signature_of(sent, "pri-1", os::sha1));
  EXPECT_EQ(*find(sent, "SecurityToken"), "tok-1");
  EXPECT_EQ(*find(sent, "Mac"), "52:54:00:00:00:0A");
  EXPECT_EQ(*find(sent, "ObjectId"), "uni-1");
  EXPECT_EQ(tokens, 1);
}

TEST_F(Scripted, WhereABatchGotNoneTheSubnetSaysWhy) {
  const std::string failed = R"({"RetCode":0,"IpsInfo":[{"Status":{"StatusCode":"Failed","Message":"x"}}]})";
  for (const auto& [left, code] : {std::pair("0", ErrorCode::exhausted), std::pair("5", ErrorCode::unavailable)}) {
    script = {{"AllocateBatchSecondaryIp", 200, failed},
              {"DescribeSubnet", 200,
               R"({"RetCode":0,"DataSet":[{"SubnetId":"subnet-1","AvailableIPs":)" + std::string(left) + "}]}"}};
    EXPECT_EQ(provider->allocate(own(), "subnet-1", 2, soon()).error().code, code);
  }
}

// What the contract says of each thing that can go wrong.
TEST_F(Scripted, TellsWritesByWhatMayHaveBeenDone) {
  const auto with = [&](const std::string& code) {
    return allocate_with({"AllocateSecondaryIp", 200, "{\"RetCode\":" + code + "}"});
  };
  EXPECT_EQ(with("57000"), ErrorCode::exhausted);
  EXPECT_EQ(with("\"57000\""), ErrorCode::exhausted);
  for (const char* code : {"110", "130", "150", "9999"}) EXPECT_EQ(with(code), ErrorCode::unknown_outcome) << code;
  for (const char* code : {"160", "161", "170", "171", "172", "292", "293", "294", "295", "299"}) {
    EXPECT_EQ(with(code), ErrorCode::refused_by_configuration) << code;
  }
  EXPECT_EQ(with("0"), ErrorCode::unknown_outcome);  // and no address
  EXPECT_EQ(std::ranges::count(calls, "AllocateSecondaryIp throttled"), 0);
  EXPECT_EQ(with("153"), ErrorCode::unavailable);
  EXPECT_EQ(allocate_with({"AllocateSecondaryIp", 429, ""}), ErrorCode::unavailable);
  EXPECT_EQ(std::ranges::count(calls, "AllocateSecondaryIp throttled"), 2);
  for (const int status : {500, 502, 503, 504}) {
    EXPECT_EQ(allocate_with({"AllocateSecondaryIp", status, ""}), ErrorCode::unknown_outcome) << status;
  }
  EXPECT_EQ(allocate_with({"AllocateSecondaryIp", 404, ""}), ErrorCode::refused_by_configuration);
  EXPECT_EQ(allocate_with({"AllocateSecondaryIp", 200, "<html>"}), ErrorCode::unknown_outcome);
  EXPECT_EQ(allocate_with({"AllocateSecondaryIp", 200, "", true}), ErrorCode::unknown_outcome);
  EXPECT_EQ(allocate_with({"AllocateSecondaryIp", 200,
                           R"({"RetCode":0,"IpInfo":)" + address("10.9.1.7", "52:54:00:00:00:0B") + "}"}),
            ErrorCode::unknown_outcome);
}

TEST_F(Scripted, TellsReads) {
  EXPECT_EQ(describe_with({"DescribeSecondaryIp", 503, ""}), ErrorCode::unavailable);
  EXPECT_EQ(describe_with({"DescribeSecondaryIp", 200, "", true}), ErrorCode::unavailable);
  EXPECT_EQ(describe_with({"DescribeSecondaryIp", 200, "x"}), ErrorCode::internal);
  EXPECT_EQ(describe_with({"DescribeSecondaryIp", 200, R"({"RetCode":150})"}), ErrorCode::unavailable);
  EXPECT_EQ(describe_with({"DescribeSecondaryIp", 200, R"({"RetCode":0,"DataSet":[{"Ip":"x"}]})"}),
            ErrorCode::internal);
}

// More than was asked for is left out; a MAC is one in either case.
TEST_F(Scripted, FiltersWhatIsDescribed) {
  const std::string three = R"({"RetCode":0,"DataSet":[)" + address("10.9.1.7") + "," +
                            address("10.9.1.8", "52:54:00:00:00:0b") + "," + address("10.9.1.9", "52:54:00:00:00:0a") +
                            "]}";
  script = {{"DescribeSecondaryIp", 200, three},
            {"DescribeSecondaryIp", 200, three},
            {"DescribeSecondaryIp", 200, R"({"RetCode":0,"DataSet":[]})"}};
  EXPECT_EQ(provider->describe(own(), "subnet-1", soon()).value().size(), 2U);
  const auto one = provider->describe_address("uvnet-1", "subnet-1", "10.9.1.8"_ip, soon()).value();
  ASSERT_TRUE(one);
  EXPECT_EQ(one->mac.to_string(), "52:54:00:00:00:0b");
  EXPECT_FALSE(provider->describe_address("uvnet-1", "subnet-1", "10.9.1.8"_ip, soon()).value());
}

// A code that is not known: who has the address decides.
TEST_F(Scripted, LooksWhatARefusalMeant) {
  const auto mac = net::Mac::parse("52:54:00:00:00:0b").value();
  const CloudAddress one{"10.9.1.7"_ip, 24, {}, own().mac, "uvnet-1", "subnet-1", "uni-1"};
  const auto holder = [](const std::string& list) {
    return Step{"DescribeSecondaryIp", 200, R"({"RetCode":0,"DataSet":[)" + list + "]}"};
  };
  const Step move{"MoveSecondaryIPMac", 200, R"({"RetCode":9999})"};
  script = {move, holder(address("10.9.1.7", "52:54:00:00:00:0B"))};
  EXPECT_TRUE(provider->move(one, mac, soon()));
  script = {move, holder(address("10.9.1.7"))};
  EXPECT_EQ(provider->move(one, mac, soon()).error().code, ErrorCode::refused_by_configuration);
  script = {move, holder("")};
  EXPECT_EQ(provider->move(one, mac, soon()).error().code, ErrorCode::not_found);
  script = {{"MoveSecondaryIPMac", 200, R"({"RetCode":58221})"}};
  EXPECT_EQ(provider->move(one, mac, soon()).error().code, ErrorCode::not_found);
  script = {{"MoveSecondaryIPMac", 504, ""}};
  EXPECT_EQ(provider->move(one, mac, soon()).error().code, ErrorCode::unknown_outcome);
  const Step take{"AllocateSecondaryIp", 200, R"({"RetCode":9999})"};
  script = {take, holder(address("10.9.1.7", "52:54:00:00:00:0B"))};
  EXPECT_EQ(provider->allocate_address(own(), "subnet-1", "10.9.1.7"_ip, soon()).error().code,
            ErrorCode::already_exists);
  script = {take, holder(address("10.9.1.7"))};
  EXPECT_EQ(provider->allocate_address(own(), "subnet-1", "10.9.1.7"_ip, soon()).value().address, "10.9.1.7"_ip);
  script = {take, holder("")};
  EXPECT_EQ(provider->allocate_address(own(), "subnet-1", "10.9.1.7"_ip, soon()).error().code,
            ErrorCode::unknown_outcome);
}

TEST_F(Scripted, RenewsCredentialsBeforeTheyEndAndOnceWhenRefused) {
  token_life = seconds(240);  // less than the 5 minutes: renewed, but not at each call
  static_cast<void>(own());
  const int first = tokens;
  EXPECT_EQ(describe_with({"DescribeSecondaryIp", 200, R"({"RetCode":0})"}), ErrorCode{});
  EXPECT_EQ(tokens, first);
  const Step stale{"DescribeSecondaryIp", 200, R"({"RetCode":174})"};
  script = {stale, {"DescribeSecondaryIp", 200, R"({"RetCode":0})"}};
  EXPECT_TRUE(provider->describe(own(), "subnet-1", soon()));
  EXPECT_EQ(tokens, first + 1);
  script = {stale, stale};
  EXPECT_EQ(provider->describe(own(), "subnet-1", soon()).error().code, ErrorCode::refused_by_configuration);
  EXPECT_TRUE(script.empty());
}

TEST_F(Scripted, KeepsCredentialsThoughTheWallClockIsSet) {
  const Step good{"DescribeSecondaryIp", 200, R"({"RetCode":0})"};
  static_cast<void>(own());
  for (const seconds ahead : {seconds{7200}, seconds{-7200}, seconds{0}}) {
    machine.ahead = ahead;
    EXPECT_EQ(describe_with(good), ErrorCode{}) << ahead.count();
    EXPECT_EQ(tokens, 1) << ahead.count();
  }
  machine.ahead = seconds{7200};  // they seem to be over when they come
  restart();
  EXPECT_EQ(describe_with(good), ErrorCode{});
  EXPECT_EQ(describe_with(good), ErrorCode{});
  EXPECT_EQ(tokens, 2) << "not at each call";
  EXPECT_EQ(*find(requests.back(), "SecurityToken"), "tok-2");
}

TEST_F(Scripted, FallsBackToKeysThatWereGiven) {
  has_tokens = false;
  EXPECT_EQ(provider->interface(soon()).error().code, ErrorCode::refused_by_configuration);
  const auto of = [](const std::map<std::string, std::string>& environment) {
    return keys_of_environment([&](const char* name) {
      const auto found = environment.find(name);
      return found == environment.end() ? std::string() : found->second;
    });
  };
  keys = of({{"UCLOUD_API_PUBKEY", "only half"},
             {"UCLOUD_ACCESS_PUBKEY", "given"},
             {"UCLOUD_ACCESS_PRIKEY", "secret-of-mine"}});
  restart();
  EXPECT_EQ(describe_with({"DescribeSecondaryIp", 200, R"({"RetCode":0})"}), ErrorCode{});
  EXPECT_EQ(*find(requests.back(), "PublicKey"), "given");
  EXPECT_EQ(find(requests.back(), "SecurityToken"), nullptr);
  script = {{"DescribeSecondaryIp", 200, R"({"RetCode":171,"Message":"no"})"}};
  const auto refused = provider->describe(own(), "subnet-1", soon());
  EXPECT_EQ(refused.error().message.find("secret-of-mine"), std::string::npos);
  EXPECT_TRUE(of({{"UCLOUD_API_PUBKEY", "only half"}}).private_key.empty());
  EXPECT_EQ(of({{"UCLOUD_API_PUBKEY", "a"}, {"UCLOUD_API_PRIKEY", "b"}}), (wu::Keys{"a", "b", {}}));
}

}  // namespace
}  // namespace croft::cloud::ucloud
