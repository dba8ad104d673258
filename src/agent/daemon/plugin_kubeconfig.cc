#include "agent/daemon/plugin_kubeconfig.h"

#include <algorithm>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "agent/daemon/daemon.h"
#include "base/net/address.h"
#include "base/printable.h"
#include "base/texts.h"
#include "base/time_text.h"
#include "install/door/node_files.h"
#include "install/format/node_network.h"
#include "os/files.h"
#include "store/kube/object_list.h"

namespace croft::app {
namespace {

using std::chrono::seconds;

constexpr seconds kApiTime{10};
constexpr seconds kTendEvery{5};
/// After a failure; an API that is away comes back or not.
constexpr seconds kTryAgain{30};
/// Between new tokens that the one before is the reason for, as where the server refuses all of them, or this node's
/// clock is ahead.
constexpr seconds kTokenPause{5 * 60};
/// A token that is revoked is noticed within this time and a half, and the time to ask.
constexpr seconds kAskEvery{12};
/// For that; the agent has other things to do.
constexpr seconds kAskTime{3};
constexpr std::size_t kFileBytesMax = std::size_t{1} << 20;
constexpr std::size_t kPemBytesMax = std::size_t{1} << 20;
constexpr std::size_t kNamespaceBytesMax = 256;
constexpr const char* kDefaultNamespace = "croft-system";
constexpr std::uint64_t kJitterParts = 1024;

/// Where the account is, unless it was said.
[[nodiscard]] Result<std::string> namespace_of(const wire::kube::KubeAccess& access) {
  if (!access.name_space.empty()) return access.name_space;
  if (access.namespace_file.empty()) return std::string(kDefaultNamespace);
  TRY(const std::string text, os::read_file(access.namespace_file, kNamespaceBytesMax));
  return std::string(wire::kube::trimmed_token(text));
}

/// The plugin looks up no names.
[[nodiscard]] bool are_numeric(const std::vector<wire::Url>& servers) {
  return std::ranges::all_of(servers, &wire::Url::is_numeric);
}

}  // namespace

void add_plugin_kubeconfig_options(CLI::App& command, PluginKubeconfigOptions& options) {
  command
      .add_option("--api-server", options.servers,
                  "URL of an API server with a numeric address, for the plugin to ask; may be given several times "
                  "(default: those of the store's URL)")
      ->envname("CROFT_API_SERVER");
  command
      .add_option("--api-server-name", options.server_name,
                  "Name that the certificates of these servers have, where they have not their addresses "
                  "(tls-server-name)")
      ->envname("CROFT_API_SERVER_NAME");
  command.add_option("--plugin-service-account", options.service_account, "Service account as which the plugin works")
      ->capture_default_str();
  command.add_option("--plugin-namespace", options.name_space,
                     "Namespace of that service account (default: that of this process, else croft-system)");
  command
      .add_option("--plugin-token-seconds", options.token_seconds,
                  "How long a token of the plugin is good; it is renewed after a quarter to half of it")
      ->check(CLI::Range(600, 31536000))
      ->capture_default_str();
}

WallTime renew_at(const wire::kube::TokenLife& life, std::uint64_t jitter) {
  const auto quarter = (life.end - life.made) / 4;
  return life.made + quarter + quarter / static_cast<std::int64_t>(kJitterParts) * static_cast<std::int64_t>(jitter);
}

Result<std::unique_ptr<PluginKubeconfig>> PluginKubeconfig::make(PluginKubeconfigOptions options,
                                                                 const std::string& store_url, const Clock& clock,
                                                                 Random& random) {
  TRY(const KubePlace place, parse_kube_url(store_url));
  TRY(wire::kube::KubeAccess access, kube_access(place));
  if (options.name_space.empty()) {
    TRY(options.name_space, namespace_of(access));
  }
  if (!options.servers.empty()) access.servers.clear();
  for (const std::string& url : options.servers) {
    TRY(wire::Url server, wire::Url::parse(url));
    access.servers.push_back(std::move(server));
  }
  if (!options.server_name.empty()) access.tls_server_name = options.server_name;
  TRY(auto api, open_kube_api(store_url, clock, kDaemonParts, kApiTime));
  auto open_as_plugin = [&clock](const std::string& file) -> Result<std::unique_ptr<store::kube::Api>> {
    TRY(const std::string url, with_kube_flags("kube:", file, ""));
    return open_kube_api(url, clock, kDaemonParts, kAskTime);
  };
  return std::make_unique<PluginKubeconfig>(std::move(options), std::move(access), std::move(api), clock, random,
                                            std::move(open_as_plugin));
}

Result<std::string> PluginKubeconfig::ca() const {
  if (access_.ca.file.empty()) return access_.ca.data;
  return os::read_file(access_.ca.file, kPemBytesMax);
}

Result<wire::kube::KubeAccess> PluginKubeconfig::in_file() const {
  TRY(const std::string text, os::read_secret_file(options_.file, kFileBytesMax));
  return wire::kube::decode_kubeconfig(text, os::directory_of(options_.file));
}

wire::kube::KubeAccess PluginKubeconfig::access_of_plugin() const {
  if (are_numeric(access_.servers)) return access_;
  const auto is = in_file();
  if (!is || !are_numeric(is->servers)) return access_;
  wire::kube::KubeAccess access = access_;
  access.servers = is->servers;
  access.tls_server_name = is->tls_server_name;
  return access;
}

Result<std::string> PluginKubeconfig::text() {
  const wire::kube::KubeAccess access = access_of_plugin();
  if (!are_numeric(access.servers)) {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("the plugin looks up no names, and {0} is one, so no kubeconfig is written for it; give the "
                    "API server's numeric address with --api-server, and where its certificate has the name "
                    "alone, --api-server-name {1}",
                    echo(access.servers.front().host), access.servers.front().host));
  }
  TRY(const std::string pem, ca());
  TRY(const std::string token,
      store::kube::request_token(*api_, options_.name_space, options_.service_account, seconds(options_.token_seconds),
                                 Deadline::after(clock_.now(), kApiTime)));
  std::string made = wire::kube::encode_kubeconfig(access, pem, token);
  // The plugin reads it so: what it would refuse, as a token and no https, must not come to be on a node.
  const auto read = wire::kube::decode_kubeconfig(made, os::directory_of(options_.file));
  if (!read) {
    return fail(
        read.error().in("the plugin would refuse its kubeconfig, so none is written; correct the "
                        "API server's address (--api-server, --store)"));
  }
  return made;
}

Result<wire::kube::KubeAccess> PluginKubeconfig::write() {
  TRY(const std::string content, text());
  TRY_VOID(os::replace_file_durably(options_.file, content));
  return in_file();
}

PluginKubeconfig::Reason PluginKubeconfig::reason() const {
  const auto is = in_file();
  if (!is && is.error().code == ErrorCode::not_found) return {.text = "it was not there", .is_absent = true};
  return is ? reason_of(*is) : Reason{is.error().message};
}

PluginKubeconfig::Reason PluginKubeconfig::reason_of(const wire::kube::KubeAccess& is) const {
  const auto pem = ca();
  const wire::kube::KubeAccess access = access_of_plugin();
  if (is.servers != access.servers || is.tls_server_name != access.tls_server_name) {
    return {"the API server is another"};
  }
  if (pem && is.ca.data != *pem) return {"the CA of the API server is another"};
  if (!refused_token_.empty() && is.token == refused_token_) {
    return {"the API server refused its token (401)", true};
  }
  const auto life = wire::kube::life_of_token(is.token);
  if (!life) return {"its token says no end", true};
  if (clock_.now().wall < renew_at(*life, jitter_)) return {};
  return {fmt::format("its token ends at {}", rfc3339_exact(life->end)), true};
}

std::chrono::nanoseconds PluginKubeconfig::spread(std::chrono::nanoseconds pause) {
  return pause + pause / (2 * kJitterParts) * static_cast<std::int64_t>(random_.next() % kJitterParts);
}

void PluginKubeconfig::ask_of_token() {
  const Instant now = clock_.now();
  if (now.since_boot < std::max(next_ask_, next_token_)) return;
  next_ask_ = now.since_boot + spread(kAskEvery);
  const auto is = in_file();
  if (!is || is->token.empty() || is->token == refused_token_) return;
  const auto api = open_as_plugin_(options_.file);
  if (api && store::kube::is_token_refused(**api, Deadline::after(now, kAskTime)) == true) refused_token_ = is->token;
}

Result<void> PluginKubeconfig::check_it_was_not_taken_back() const {
  TRY(const wire::InstallRecord record, edge::read_record(os::directory_of(options_.file)));
  if (record.kubeconfig) return {};
  return fail(ErrorCode::refused_by_configuration,
              "no installation is recorded beside it ({}): Croft was taken back from this node; croftd "
              "install writes both",
              wire::kInstallRecordName);
}

PluginKubeconfig::Tended PluginKubeconfig::judged(const wire::kube::KubeAccess& written, const Reason& why) const {
  const auto life = wire::kube::life_of_token(written.token);
  const WallTime now = clock_.now().wall;
  const std::string done = fmt::format("{} written, as {}", options_.file, why.text);
  if (life && now < renew_at(*life, jitter_)) {
    return {fmt::format("{}; its token is good until {}, and renewed at {}", done, rfc3339_exact(life->end),
                        rfc3339_rounded_up(renew_at(*life, jitter_))),
            false};
  }
  const std::string trouble =
      life ? fmt::format(
                 "made at {}, good until {}, it would be due again at once by this node's clock, which says "
                 "{}: set the clock of this node, or of the API server",
                 rfc3339_exact(life->made), rfc3339_exact(life->end), rfc3339_exact(now))
           : "it does not say until when it is good: look at what answers for the API server";
  return {fmt::format("{}; but of the new token: {}; another is asked for every few minutes", done, trouble), true};
}

std::optional<PluginKubeconfig::Tended> PluginKubeconfig::renew_if_due() {
  const auto now = clock_.now().since_boot;
  if (now < next_look_) return std::nullopt;
  next_look_ = now + kTendEvery;
  ask_of_token();
  const Reason why = reason();
  if (why.text.empty() || (why.is_of_token && now < next_token_)) return std::nullopt;
  // Nobody installs or takes back meanwhile.
  edge::InstallTurn turn(os::directory_of(options_.file));
  auto done = turn.begin(clock_, Deadline::after(clock_.now(), {}));
  if (!done && done.error().code == ErrorCode::deadline_exceeded) return std::nullopt;  // soon again
  if (done && why.is_absent) done = check_it_was_not_taken_back();
  const auto written = done ? write() : Result<wire::kube::KubeAccess>(fail(done.error()));
  if (!written) {
    next_look_ = now + kTryAgain;
    return Tended{
        fmt::format("{} is to be written ({}) and is not: {}", options_.file, why.text, written.error().message), true};
  }
  jitter_ = random_.next() % kJitterParts;
  if (why.is_of_token || reason_of(*written).is_of_token) next_token_ = now + spread(kTokenPause);
  return judged(*written, why);
}

}  // namespace croft::app
