#include "cni/door/skeleton.h"

#include <gtest/gtest.h>

#include "base/net/prefix.h"
#include "cni/error_table.h"
#include "cni/format/config.h"

namespace croft::edge {
namespace {

using wire::cni::AddResult;
using wire::cni::Checked;
using wire::cni::Code;

constexpr const char* kConfig = R"({"cniVersion":"1.1.0","name":"net","ipam":{"type":"croft-ipam"}})";

std::string config_of(std::string_view version) {
  return R"({"cniVersion":")" + std::string(version) + R"(","name":"net","ipam":{"type":"croft-ipam"}})";
}

/// One call with everything in order; a test spoils what it is about. Records which handlers ran.
struct Call {
  CniPlugin plugin;
  wire::cni::Environment environment{"ADD", "dummy", "/var/run/netns/x", "eth0", "", "/opt/cni/bin", ""};
  std::string input = kConfig;
  std::optional<Error> input_error;
  os::SameNamespace netns = os::SameNamespace::no;

  std::vector<std::string> events;
  std::optional<CniRequest> seen;
  std::optional<wire::cni::Error> handler_error;

  explicit Call(std::string command = "ADD") {
    environment.command = std::move(command);
    plugin.about = "CNI croft-ipam plugin 0.1.0";
    plugin.handlers.add = [this](const CniRequest& request) -> Checked<AddResult> {
      note("add", request);
      if (handler_error) return *handler_error;
      return AddResult{{{net::AddressWithLength::parse("10.1.2.2/24").value(), std::nullopt}}, {}, {}};
    };
    plugin.handlers.del = silent("del");
    plugin.handlers.check = silent("check");
    plugin.handlers.gc = silent("gc");
    plugin.handlers.status = silent("status");
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  CniAnswer run() { return run_cni(plugin, host()); }

  CniHost host() {
    return {environment,
            [this]() -> Result<std::string> {
              events.push_back("stdin");
              if (input_error) return fail(*input_error);
              return input;
            },
            [this](const std::string& path) {
              events.push_back("netns " + path);
              return netns;
            }};
  }

  /// "exit out"; the error object as "code msg | details".
  std::string outcome() {
    const CniAnswer answer = run();
    EXPECT_EQ(answer.exit_code == 0 || answer.exit_code == 1, true);
    if (answer.exit_code == 0) return answer.out;
    return error_text(answer.out);
  }

  static std::string error_text(const std::string& out) {
    const auto document = wire::parse_json(out);
    if (!document) return "not JSON: " + out;
    std::string text;
    for (auto member = document->root().first_child(); member; member = member->next_sibling()) {
      text += (text.empty() ? "" : member->key() == "msg" ? " " : " | ") + std::string(member->text());
    }
    return text;
  }

 private:
  std::function<std::optional<wire::cni::Error>(const CniRequest&)> silent(const std::string& name) {
    return [this, name](const CniRequest& request) {
      note(name, request);
      return handler_error;
    };
  }
  void note(const std::string& name, const CniRequest& request) {
    events.push_back(name);
    seen.emplace();
    seen->command = request.command;
    seen->environment = request.environment;
    seen->network.name = request.network.name;
    seen->network.cni_version = request.network.cni_version;
  }
};

using Events = std::vector<std::string>;

TEST(Skeleton, AddRunsAndPrintsInTheVersionAsked) {
  Call call;
  const CniAnswer answer = call.run();
  EXPECT_EQ(answer, (CniAnswer{0,
                               "{\n    \"cniVersion\": \"1.1.0\",\n    \"ips\": [\n        {\n"
                               "            \"address\": \"10.1.2.2/24\"\n        }\n    ]\n}",
                               ""}));
  EXPECT_EQ(call.events, (Events{"stdin", "netns /var/run/netns/x", "add"}));
  EXPECT_EQ(call.seen->network.name, "net");
  EXPECT_EQ(call.seen->network.cni_version, "1.1.0");
  EXPECT_EQ(call.seen->environment, call.environment);
  Call old;
  old.input = R"({"name":"net"})";
  EXPECT_NE(old.run().out.find("\"ip4\""), std::string::npos);
  EXPECT_EQ(old.seen->network.cni_version, "0.1.0");
}

TEST(Skeleton, OtherCommandsPrintNothing) {
  for (const char* command : {"DEL", "CHECK", "GC", "STATUS"}) {
    Call call(command);
    EXPECT_EQ(call.run(), CniAnswer{}) << command;
    ASSERT_TRUE(call.seen);
    EXPECT_EQ(name_of(call.seen->command), command);
  }
}

TEST(Skeleton, ACommandWithoutHandlerSucceedsSilently) {
  for (const char* command : {"ADD", "DEL", "CHECK", "GC", "STATUS"}) {
    Call call(command);
    call.plugin.handlers = {};
    EXPECT_EQ(call.run(), CniAnswer{}) << command;
  }
}

// Rows 72 to 76 as the runtime sees them; the cases are in cni/format/environment_test.cc.
TEST(Skeleton, AnInvalidEnvironmentIsRefusedBeforeStdinIsRead) {
  Call call;
  call.environment.container_id = "some-%%container-id";
  EXPECT_EQ(call.outcome(), "4 invalid characters in containerID | some-%%container-id");
  Call missing;
  missing.environment.netns = missing.environment.interface_name = missing.environment.path = "";
  EXPECT_EQ(missing.outcome(), "4 required env variables [CNI_NETNS,CNI_IFNAME,CNI_PATH] missing");
  EXPECT_EQ(missing.events, Events{});
}

TEST(Skeleton, GcAndStatusNeedOnlyThePathAndSeeNothingUnchecked) {
  for (const char* command : {"GC", "STATUS"}) {
    Call call(command);
    call.environment.container_id = "a%b";
    call.environment.interface_name = "..";
    EXPECT_EQ(call.run(), CniAnswer{});
    EXPECT_EQ(call.seen->environment.container_id, "");
    EXPECT_EQ(call.seen->environment.interface_name, "");
    EXPECT_EQ(call.events, (Events{"stdin", command == std::string("GC") ? "gc" : "status"}));
  }
}

// Row 77.
TEST(Skeleton, AnAbsentVersionIsTheFirst) {
  Call call("DEL");
  call.input = R"({"name":"net"})";
  EXPECT_EQ(call.outcome(), "");
  call.plugin.supported_versions = {"4.3.2"};
  EXPECT_EQ(call.outcome(), "1 incompatible CNI versions | config is \"0.1.0\", plugin supports [\"4.3.2\"]");
  Call unknown;
  unknown.input = config_of("0.3.2");
  EXPECT_EQ(
      unknown.outcome(),
      "1 incompatible CNI versions | config is \"0.3.2\", plugin supports [\"0.1.0\" \"0.2.0\" \"0.3.0\" \"0.3.1\" "
      "\"0.4.0\" \"1.0.0\" \"1.1.0\"]");
  unknown.input = config_of("1.0");
  EXPECT_EQ(unknown.outcome().substr(0, 27), "1 incompatible CNI versions");
}

// Rows 78 to 80.
TEST(Skeleton, CheckGcAndStatusNeedVersionsThatKnowThem) {
  const auto outcome = [](const char* command, std::string_view version,
                          const std::vector<std::string_view>& supported = {}) {
    Call call(command);
    call.input = config_of(version);
    if (!supported.empty()) call.plugin.supported_versions = supported;
    return call.outcome();
  };
  EXPECT_EQ(outcome("CHECK", "0.3.0"), "1 config version does not allow CHECK");
  EXPECT_EQ(outcome("CHECK", ""), "1 config version does not allow CHECK");
  EXPECT_EQ(outcome("CHECK", "0.4.0"), "");
  EXPECT_EQ(outcome("CHECK", "1.0"),
            "1 incompatible CNI versions | config is \"1.0\", plugin supports [\"0.1.0\" \"0.2.0\" "
            "\"0.3.0\" \"0.3.1\" \"0.4.0\" \"1.0.0\" \"1.1.0\"]");
  EXPECT_EQ(outcome("GC", "0.3.0"), "1 config version does not allow GC");
  EXPECT_EQ(outcome("GC", "1.0.0"), "1 config version does not allow GC");
  EXPECT_EQ(outcome("STATUS", "1.0.0"), "1 config version does not allow STATUS");
  const std::vector<std::string_view> old = {"0.1.0", "0.2.0", "0.3.0"};
  EXPECT_EQ(outcome("CHECK", "0.4.0", old), "1 plugin version does not allow CHECK");
  EXPECT_EQ(outcome("GC", "1.1.0", old), "1 plugin version does not allow GC");
  EXPECT_EQ(outcome("STATUS", "1.1.0", old), "1 plugin version does not allow STATUS");
  EXPECT_EQ(outcome("GC", "9.9.9"), "1 plugin version does not allow GC");
  for (const char* command : {"CHECK", "GC", "STATUS"}) {
    EXPECT_EQ(
        outcome(command, "adsfsadf"),
        "6 failed to convert major version part \"adsfsadf\": strconv.Atoi: parsing \"adsfsadf\": invalid syntax");
    EXPECT_EQ(outcome(command, "1.2.3.4"), "6 invalid version \"1.2.3.4\": too many parts");
  }
  Call number("DEL");
  number.input = R"({"name":"net","cniVersion":5})";
  EXPECT_EQ(number.outcome(),
            "6 decoding version from network config: cniVersion: an integer (5) where a string is wanted");
}

// Rows 81, 117, 118.
TEST(Skeleton, TheNameIsCheckedBeforeTheCommand) {
  for (const char* command : {"ADD", "NOPE", "GC"}) {
    Call call(command);
    call.input = R"({"name":"te%%st","cniVersion":5})";
    EXPECT_EQ(call.outcome(), "7 invalid characters found in network name | te%%st");
    call.input = "{";
    EXPECT_EQ(call.outcome().substr(0, 35), "6 error unmarshall network config: ");
    call.input = "null";
    EXPECT_EQ(call.outcome(), "7 missing network name");
  }
}

// Row 82.
TEST(Skeleton, VersionNeedsNothingAndReadsNothing) {
  Call call("VERSION");
  call.environment = {};
  call.environment.command = "VERSION";
  call.input_error = Error{ErrorCode::internal, "unreadable", {}};
  EXPECT_EQ(call.run(),
            (CniAnswer{0,
                       "{\"cniVersion\":\"1.1.0\",\"supportedVersions\":[\"0.1.0\",\"0.2.0\",\"0.3.0\",\"0.3.1\","
                       "\"0.4.0\",\"1.0.0\",\"1.1.0\"]}\n",
                       ""}));
  EXPECT_EQ(call.events, Events{});
}

// Row 83.
TEST(Skeleton, UnknownCommand) {
  Call call("NOPE");
  EXPECT_EQ(call.outcome(), "4 unknown CNI_COMMAND: NOPE");
  call.environment = {};
  call.environment.command = "add";
  EXPECT_EQ(call.outcome(), "4 unknown CNI_COMMAND: add");
}

// Row 84.
TEST(Skeleton, WithoutACommandItTellsWhatItIs) {
  Call call("");
  EXPECT_EQ(call.run(), (CniAnswer{0, "",
                                   "CNI croft-ipam plugin 0.1.0\nCNI protocol versions supported: 0.1.0, 0.2.0, 0.3.0, "
                                   "0.3.1, 0.4.0, 1.0.0, 1.1.0\n"}));
  EXPECT_EQ(call.events, Events{});
  call.plugin.about = "";
  EXPECT_EQ(call.outcome(), "4 required env variables [CNI_COMMAND] missing");
}

// Rows 85 and 86.
TEST(Skeleton, ErrorsOfStdinAndOfHandlers) {
  Call unreadable;
  unreadable.input_error = Error{ErrorCode::internal, "bad file descriptor", {}};
  EXPECT_EQ(unreadable.outcome(), "5 error reading from stdin: bad file descriptor");
  for (const char* command : {"ADD", "DEL", "CHECK", "GC"}) {
    Call call(command);
    call.handler_error = wire::cni::Error{static_cast<Code>(1234), "potato", "chips"};
    EXPECT_EQ(call.outcome(), "1234 potato | chips");
  }
  Call status("STATUS");
  status.handler_error = wire::cni::Error{Code::store_damaged, "broken", {}};
  EXPECT_EQ(status.outcome(), "50 broken");
}

// Row 119, with the check in front of ADD. DEL gives back first, as in the reference.
TEST(Skeleton, OwnNetnsIsRefusedBeforeAddAndAfterDel) {
  for (const char* command : {"ADD", "DEL"}) {
    Call call(command);
    call.netns = os::SameNamespace::yes;
    EXPECT_EQ(call.outcome(), "8 plugin's netns and netns from CNI_NETNS should not be the same");
    EXPECT_EQ(call.seen.has_value(), std::string(command) == "DEL");
    call.netns = os::SameNamespace::own_cannot_open;
    EXPECT_EQ(call.outcome(), "8 get plugin's netns failed");
    call.netns = os::SameNamespace::cannot_open;
    EXPECT_EQ(call.run().exit_code, 0);
    EXPECT_TRUE(call.seen);
    call.netns = os::SameNamespace::yes;
    for (const char* yes : {"1", "True"}) {
      call.environment.netns_override = yes;
      EXPECT_EQ(call.run().exit_code, 0);
    }
  }
  Call check("CHECK");
  check.netns = os::SameNamespace::yes;
  EXPECT_EQ(check.outcome(), "");
}

TEST(Skeleton, AnOwnerThatDoesNotFitIsRefusedButAlwaysReleased) {
  const auto outcome = [](const char* command, auto spoil) {
    Call call(command);
    call.plugin.limits_owner = true;
    spoil(call);
    const std::string text = call.outcome();
    return text + (call.seen ? " called" : "");
  };
  const auto long_id = [](Call& call) { call.environment.container_id = std::string(1021, 'x'); };
  const auto long_network = [](Call& call) {
    call.input = R"({"cniVersion":"1.1.0","name":")" + std::string(256, 'n') + "\"}";
  };
  for (const char* command : {"ADD", "CHECK"}) {
    EXPECT_EQ(outcome(command, long_id).substr(0, 27), "4 CNI_CONTAINERID is too lo");
    EXPECT_EQ(outcome(command, long_network).substr(0, 26), "7 network name is too long");
    EXPECT_EQ(outcome(command, [](Call& call) { call.environment.interface_name = "a\x01"; }).substr(0, 12),
              "4 CNI_IFNAME");
  }
  EXPECT_EQ(outcome("DEL", long_id), "");
  EXPECT_EQ(outcome("DEL", long_network), "");
  EXPECT_EQ(outcome("GC", long_network), "");
  EXPECT_EQ(outcome("GC", long_id), " called");
  EXPECT_EQ(outcome("DEL", [](Call& call) { call.environment.interface_name = "a\x01"; }), " called");
  // Without limits any length passes, as in the reference.
  Call unlimited("DEL");
  unlimited.environment.container_id = std::string(5000, 'x');
  unlimited.run();
  EXPECT_TRUE(unlimited.seen);
}

TEST(Skeleton, AddBeforeVersion030WithoutAddressIsAnErrorAndNotAHalfResult) {
  Call call;
  call.input = config_of("0.2.0");
  call.plugin.handlers.add = [](const CniRequest&) -> Checked<AddResult> { return AddResult{}; };
  EXPECT_EQ(call.outcome(), "999 cannot convert: no valid IP addresses");
}

TEST(Skeleton, StdinOverTheCapIsRefused) {
  Call call;
  call.input = std::string(wire::kStdinBytesMax + 1, ' ');
  EXPECT_EQ(call.outcome(), "6 error unmarshall network config: invalid JSON: larger than 2097152 bytes");
  call.input = std::string(200'000, '[');
  EXPECT_EQ(call.outcome(),
            "6 error unmarshall network config: invalid JSON: more than 10000 arrays and objects inside each other");
}

// A release must not depend on pools (docs/promises.md#promise-3).
TEST(Skeleton, DelWithBrokenPoolsReachesItsHandlerAndDecodes) {
  Call call("DEL");
  call.input =
      R"({"cniVersion":"1.0.0","name":"net","ipam":{"type":"croft-ipam","store":"memory:","pools":[{"cidr":7}]}})";
  call.environment.args = "broken";
  std::string store;
  call.plugin.handlers.del = [&store](const CniRequest& request) -> std::optional<wire::cni::Error> {
    const auto config = decode_croft_ipam_config(request.network, request.environment.args, needs_of(request.command));
    if (!config) return config.error();
    store = config->ipam.store.value_or("");
    return {};
  };
  EXPECT_EQ(call.run(), CniAnswer{});
  EXPECT_EQ(store, "memory:");
}

TEST(Serve, WritesTheAnswerAndFailsWhenNobodyTakesIt) {
  Call call;
  std::string out;
  std::string err;
  const auto to_out = [&out](std::string_view text) { return out += text, true; };
  const auto to_err = [&err](std::string_view text) { return err += text, true; };
  EXPECT_EQ(serve_cni(call.plugin, call.host(), to_out, to_err), 0);
  EXPECT_EQ(out, call.run().out);
  EXPECT_EQ(err, "");
  EXPECT_EQ(serve_cni(
                call.plugin, call.host(), [](std::string_view) { return false; }, to_err),
            1);
  EXPECT_EQ(err, "standard output cannot be written; the caller does not know the outcome\n");
  Call about("");
  err.clear();
  out.clear();
  EXPECT_EQ(serve_cni(about.plugin, about.host(), to_out, to_err), 0);
  EXPECT_EQ(out, "");
  EXPECT_EQ(err, about.run().err);
}

}  // namespace

namespace {

using wire::cni::Code;

TEST(ErrorTable, EveryErrorCodeHasItsRow) {
  for (int code = 0; code <= static_cast<int>(ErrorCode::internal); ++code) {
    const auto one = static_cast<ErrorCode>(code);
    EXPECT_NE(exit_code_of(one), ExitCode::fine) << name_of(one);
    EXPECT_NE(exit_code_of(one), ExitCode::findings) << name_of(one);
    EXPECT_GT(static_cast<int>(cni_code_of(one)), 0) << name_of(one);
    // What may pass by itself must not look final to the runtime.
    EXPECT_TRUE(!is_transient(one) || cni_code_of(one) == Code::try_again_later) << name_of(one);
  }
}

TEST(ErrorTable, NumbersOfDesign) {
  const auto cni = [](ErrorCode code) { return static_cast<int>(cni_code_of(code)); };
  const auto exit = [](ErrorCode code) { return static_cast<int>(exit_code_of(code)); };
  EXPECT_EQ(cni(ErrorCode::invalid_argument), 7);
  EXPECT_EQ(cni(ErrorCode::no_pool), 11);
  EXPECT_EQ(cni(ErrorCode::read_only), 11);
  EXPECT_EQ(cni(ErrorCode::permission_denied), 11);
  EXPECT_EQ(cni(ErrorCode::exhausted), 100);
  EXPECT_EQ(cni(ErrorCode::corrupt), 101);
  EXPECT_EQ(cni(ErrorCode::newer_version), 101);
  EXPECT_EQ(cni(ErrorCode::refused_by_configuration), 102);
  EXPECT_EQ(cni(ErrorCode::refused_for_safety), 102);
  EXPECT_EQ(cni(ErrorCode::internal), 999);
  EXPECT_EQ(exit(ErrorCode::invalid_argument), 2);
  EXPECT_EQ(exit(ErrorCode::unavailable), 4);
  EXPECT_EQ(exit(ErrorCode::deadline_exceeded), 4);
  EXPECT_EQ(exit(ErrorCode::permission_denied), 4);
  EXPECT_EQ(exit(ErrorCode::read_only), 4);
  EXPECT_EQ(exit(ErrorCode::refused_for_safety), 5);
  EXPECT_EQ(exit(ErrorCode::exhausted), 1);
}

TEST(ErrorTable, MessageAndDetailsStay) {
  EXPECT_EQ(to_cni_error({ErrorCode::exhausted, "no address is free", "pool a: full"}),
            (wire::cni::Error{Code::no_address, "no address is free", "pool a: full"}));
}

TEST(ErrorTable, StatusFailsWithItsOwnCodes) {
  EXPECT_EQ(as_status_error({Code::store_damaged, "m", "d"}), (wire::cni::Error{Code::plugin_not_available, "m", "d"}));
  EXPECT_EQ(as_status_error({Code::limited_connectivity, "m", ""}).code, Code::limited_connectivity);
}

}  // namespace
}  // namespace croft::edge
