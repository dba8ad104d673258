#include "desk/daemon/desk.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "agent/daemon/log_format.h"
#include "agent/daemon/store_parts.h"
#include "agent/metrics/server.h"
#include "calico/crd.h"
#include "collector/audit/leaks.h"
#include "collector/daemon/running_pods.h"
#include "collector/use/node_facts.h"
#include "desk/daemon/desk_pages.h"
#include "ipam/use/audit.h"
#include "ipam/use/inspect.h"
#include "noderanges/audit/node_range_audit.h"
#include "noderanges/use/node_range.h"
#include "os/files.h"
#include "store/kube/objects.h"
#include "store/kube/token_review.h"
#include "store/store_url.h"

namespace croft::app {
namespace {

using core::audit::Finding;
using edge::Verdict;

/// Somebody waits for the page.
constexpr std::chrono::seconds kLookTime{5};
/// For one step of reading a large register.
constexpr std::chrono::seconds kCheckTime{30};
/// Findings are read by people.
constexpr std::size_t kFindingsMax = 1000;
/// For one request to an API server.
constexpr std::chrono::seconds kReviewTime{5};

/// Users who may list what the page shows may look: the blocks, in the group of Calico's that the store uses, and pods.
edge::Doorkeeper::Judge judge_by_api(store::kube::Api& api, std::optional<wire::calico::ApiGroup> group,
                                     const Clock& clock, spdlog::logger& log) {
  return [&api, group, &clock, &log](const std::string& token) mutable -> Verdict {
    // The one who asks here is still a stranger.
    const auto not_judged = [&log](const Error& why) -> Verdict {
      log.warn("desk: a token cannot be judged: {}", one_line(why.message));
      return {Verdict::Kind::unsure, "the API server could not be asked about this token; the daemon's log says why"};
    };
    const Deadline deadline = Deadline::after(clock.now(), kReviewTime);
    if (!group) {
      const auto found = store::kube::discover_calico_group(api, deadline);
      if (!found) return not_judged(found.error());
      group = *found;
    }
    const auto blocks = wire::calico::crd_kind_of(core::Kind::block, *group);
    const std::array<store::kube::NeededRights, 2> needed = {
        {{blocks.group, blocks.plural, {"list"}}, {"", "pods", {"list"}}}};
    const auto reviewed = store::kube::review_token(api, token, needed, deadline);
    if (!reviewed) return not_judged(reviewed.error());
    if (!reviewed->is_known) return {Verdict::Kind::unknown, "the API server does not know this token"};
    if (reviewed->is_allowed) return {Verdict::Kind::welcome, {}};
    return {Verdict::Kind::forbidden, fmt::format("{} may not list {}.{} and pods in the whole cluster", reviewed->user,
                                                  blocks.plural, blocks.group)};
  };
}

/// The findings of `croft check` on the register, its pods and nodes.
class Checker {
 public:
  Checker(const engine::Context& context, store::kube::Api* api) : context_(context), api_(api) {}

  [[nodiscard]] Result<DeskFindings> check() {
    DeskFindings found{context_.clock.now().wall, {}};
    core::collect::Facts pods;
    std::optional<Error> hidden;
    const auto running = [&]() -> Result<std::vector<core::audit::RunningPod>> {
      if (api_ == nullptr || hidden) return std::vector<core::audit::RunningPod>();
      auto listed = list_running_pods(*api_, context_.clock, &pods);
      if (listed || listed.error().code != ErrorCode::permission_denied) return listed;
      hidden = listed.error();
      return std::vector<core::audit::RunningPod>();
    };
    TRY(engine::AuditReport report, engine::audit(context_, {}, engine::kCollectAgeMin, "", running));
    TRY_VOID(find_leaks(pods, hidden, report));
    found.notes = std::move(report.notes);
    for (const auto& [kind, why] : report.not_allowed) found.notes.push_back(why.message);
    found.findings = std::move(report.findings);
    TRY_VOID(add_others(found.findings));
    for (const Finding& one : found.findings) {
      const auto address = net::parse_address(one.subject);
      if (address && (one.id == "pod_gone" || one.id == "node_gone")) found.gone.push_back(*address);
    }
    found.count = found.findings.size();
    found.findings.resize(std::min(found.count, kFindingsMax));
    found.findings.shrink_to_fit();
    return found;
  }

 private:
  [[nodiscard]] Result<void> find_leaks(core::collect::Facts& facts, const std::optional<Error>& hidden,
                                        engine::AuditReport& report) {
    if (api_ == nullptr || hidden) {
      report.notes.push_back(hidden ? hidden->message
                                    : "pods were not asked, as this store is in no Kubernetes API: `croft check "
                                      "--kubeconfig FILE` or `--cni-cache` compares with those that run");
      return {};
    }
    TRY(const auto nodes, engine::NodeFacts(context_).facts());
    facts.add_nodes_of(nodes);
    core::audit::find_leaks(report, facts, {});
    for (Finding& one : report.findings) one.what += one.looks > 0 ? "; seen in one look" : "";
    return {};
  }

  [[nodiscard]] Result<void> add_others(std::vector<Finding>& findings) {
    const auto add = [&](const std::vector<Finding>& more) {
      findings.insert(findings.end(), more.begin(), more.end());
    };
    TRY(const auto pools, engine::fill_of_pools(context_));
    add(core::audit_fullness(pools));
    // A record that stands in the way is a finding of the register's already.
    if (const auto ranges = engine::look_at_node_ranges(context_)) {
      add(core::audit::audit_node_ranges(*ranges, {}, {}));
    }
    return {};
  }

  const engine::Context context_;
  store::kube::Api* const api_;
};

}  // namespace

struct Desk::Parts {
  std::unique_ptr<store::Store> store;
  std::unique_ptr<store::kube::Api> pods, reviews;  ///< null where the store is no Kubernetes API; each for one thread
  std::optional<Checker> checker;
  std::optional<DeskPages> pages;
  std::unique_ptr<edge::WebServer> server;  ///< last: it uses the others
};

Desk::Desk(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Desk::~Desk() = default;

Result<std::unique_ptr<Desk>> Desk::start(const DeskFlags& flags, const std::string& store_url, Daemon& daemon,
                                          spdlog::logger& log, engine::Past* past) {
  if (flags.address.empty()) return nullptr;
  TRY(const auto address, edge::MetricsAddress::parse(flags.address, "desk"));
  const bool is_kube = store::scheme_of(store_url) == store::Scheme::kube;
  if (flags.token_file.empty() && !edge::is_loopback_host(address.text())) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("--desk {}: whoever reaches this address would see all pods; name a token with "
                            "--desk-token-file, or listen at 127.0.0.1 or [::1]",
                            flags.address));
  }
  auto parts = std::make_unique<Parts>();
  TRY(parts->store, open_store_to_look(store_url, daemon.clock, kDaemonParts, [&log](const Error& why) {
        log.warn("desk: what is Croft's own is not shown: {}", one_line(why.message));
      }));
  DeskPages::Parts pages{{*parts->store, daemon.clock, daemon.random, kLookTime}, store_url, {}};
  if (is_kube) {
    TRY(parts->pods, open_kube_api(store_url, daemon.clock, kDaemonParts, kCheckTime));
    TRY(parts->reviews, open_kube_api(store_url, daemon.clock, kDaemonParts, kReviewTime));
    TRY(const KubePlace place, parse_kube_url(store_url));
    pages.judge = judge_by_api(*parts->reviews, place.group, daemon.clock, log);
  }
  if (!flags.token_file.empty()) {
    pages.judge = edge::judge_by_file(flags.token_file);
    const auto read = os::read_secret_file(flags.token_file, edge::Doorkeeper::kTokenBytesMax);
    if (!read) return fail(read.error().in("--desk-token-file"));
  }
  engine::Context to_check = pages.context;
  to_check.time_limit = kCheckTime;
  parts->checker.emplace(to_check, parts->pods.get());
  pages.check = [&checker = *parts->checker] { return checker.check(); };
  pages.past = past;
  parts->pages.emplace(std::move(pages));
  TRY(parts->server,
      edge::WebServer::start([&all = *parts->pages](const edge::WebRequest& request) { return all.answer(request); },
                             address, "desk"));
  log.info("desk at http://{}/{}", address.text(),
           !flags.token_file.empty() ? ", for the token of " + flags.token_file
           : is_kube                 ? ", for tokens whose users may list blocks and pods"
                                     : ", for whoever is on this machine");
  return std::unique_ptr<Desk>(new Desk(std::move(parts)));
}

void add_desk_flags(CLI::App& command, DeskFlags& flags) {
  command
      .add_option("--desk", flags.address,
                  "Address of a read-only page with pools, the map of addresses, nodes and findings: 127.0.0.1:9680, "
                  "[::1]:9680, or :9680 for all addresses of both families; without it there is none")
      ->type_name("HOST:PORT")
      ->check([](const std::string& given) {
        const auto address = edge::MetricsAddress::parse(given, "desk");
        return address ? std::string() : address.error().message;
      });
  command
      .add_option("--desk-token-file", flags.token_file,
                  "File with the bearer token that the page asks for (mode 0600); without it the page is on loopback "
                  "alone, where a Kubernetes API that keeps the store judges tokens")
      ->type_name("FILE");
}

}  // namespace croft::app
