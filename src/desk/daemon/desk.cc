#include "desk/daemon/desk.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "agent/daemon/daemon.h"
#include "agent/metrics/web_server.h"
#include "base/texts.h"
#include "calico/crd.h"
#include "collector/audit/leaks.h"
#include "collector/use/node_facts.h"
#include "desk/daemon/desk_pages.h"
#include "ipam/use/audit.h"
#include "ipam/use/inspect.h"
#include "noderanges/audit/node_range_audit.h"
#include "noderanges/use/node_range.h"
#include "os/files.h"
#include "store/kube/cluster_facts.h"
#include "store/kube/objects.h"
#include "store/store_url.h"

namespace croft::app {
namespace {

using core::audit::Finding;
using edge::Verdict;

/// Somebody waits for the page.
constexpr std::chrono::seconds kLookTime{5};
/// For one step of reading a large register.
constexpr std::chrono::seconds kCheckTime{30};
/// A port that is busy, or a right that is missing, may be mended meanwhile.
constexpr std::chrono::minutes kServeAgain{1};
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
      auto listed = store::kube::list_running_pods(*api_, context_.clock, &pods);
      if (listed || listed.error().code != ErrorCode::permission_denied) return listed;
      hidden = listed.error();
      return std::vector<core::audit::RunningPod>();
    };
    TRY(engine::AuditReport report, engine::audit(context_, {}, running));
    TRY_VOID(find_leaks(pods, hidden, report));
    found.notes = std::move(report.notes);
    for (const auto& [kind, why] : report.not_allowed) found.notes.push_back(why.message);
    found.findings = std::move(report.findings);
    TRY_VOID(add_others(found.findings));
    for (const Finding& one : found.findings) {
      const auto address = net::parse_address(one.subject);
      if (address && (one.id == "pod_gone" || one.id == "node_gone")) found.gone.push_back(*address);
    }
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
    if (const auto ranges = engine::read_node_range_overview(context_)) {
      add(core::audit::audit_node_ranges(*ranges, {}, {}));
    }
    return {};
  }

  const engine::Context context_;
  store::kube::Api* const api_;
};

}  // namespace

/// The page while it is served. The order is that of use: the last member uses the others.
class Desk::Served {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Served>> start(const Task& task) {
    auto served = std::make_unique<Served>();
    const bool is_kube = store::scheme_of(task.store_url) == store::Scheme::kube;
    TRY(served->store_, open_store_to_look(task.store_url, task.clock, kDaemonParts, [&task](const Error& why) {
          task.log.warn("desk: what is Croft's own is not shown: {}", one_line(why.message));
        }));
    DeskPages::Parts pages{{*served->store_, task.clock, task.random, kLookTime}, task.store_url, {}};
    if (is_kube) {
      TRY(served->pods_, open_kube_api(task.store_url, task.clock, kDaemonParts, kCheckTime));
      TRY(served->reviews_, open_kube_api(task.store_url, task.clock, kDaemonParts, kReviewTime));
      TRY(const KubePlace place, parse_kube_url(task.store_url));
      pages.judge = judge_by_api(*served->reviews_, place.group, task.clock, task.log);
    }
    const std::string& token_file = task.flags.token_file;
    if (!token_file.empty()) pages.judge = edge::judge_by_file(token_file);
    engine::Context to_check = pages.context;
    to_check.time_limit = kCheckTime;
    served->checker_.emplace(to_check, served->pods_.get());
    pages.check = [&checker = *served->checker_] { return checker.check(); };
    pages.history = task.history;
    served->pages_.emplace(std::move(pages));
    const auto answer = [&all = *served->pages_](const edge::WebRequest& request) { return all.answer(request); };
    TRY(served->server_, edge::WebServer::start(answer, task.address, "desk"));
    task.log.info("desk at http://{}/{}", task.address.text(),
                  !token_file.empty() ? ", for the token of " + token_file
                  : is_kube           ? ", for tokens whose users may list blocks and pods"
                                      : ", for whoever is on this machine");
    return served;
  }

 private:
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<store::kube::Api> pods_, reviews_;  ///< null where the store is no Kubernetes API
  std::optional<Checker> checker_;
  std::optional<DeskPages> pages_;
  std::unique_ptr<edge::WebServer> server_;
};

Result<std::unique_ptr<Desk>> Desk::start(const DeskFlags& flags, const std::string& store_url, Daemon& daemon,
                                          spdlog::logger& log, const std::string& history) {
  if (flags.address.empty()) return nullptr;
  TRY(const auto address, edge::MetricsAddress::parse(flags.address, "desk"));
  if (flags.token_file.empty() && !edge::is_loopback_host(address.text())) {
    return fail(ErrorCode::invalid_argument,
                "--desk {}: whoever reaches this address would see all pods; name a token with "
                "--desk-token-file, or listen at 127.0.0.1 or [::1]",
                flags.address);
  }
  if (!flags.token_file.empty()) {
    const auto read = os::read_secret_file(flags.token_file, edge::Doorkeeper::kTokenBytesMax);
    if (!read) return fail(read.error().in("--desk-token-file"));
  }
  return std::unique_ptr<Desk>(new Desk({flags, address, store_url, daemon.clock, daemon.random, log, history}));
}

Desk::Desk(Task task) : task_(std::move(task)), thread_([this](const std::stop_token& end) { serve(end); }) {}

Desk::~Desk() = default;

void Desk::serve(const std::stop_token& end) {
  std::unique_ptr<Served> served;
  std::mutex mutex;
  std::condition_variable_any turn;
  std::unique_lock lock(mutex);
  while (!end.stop_requested()) {
    if (served == nullptr) {
      auto started = Served::start(task_);
      if (started) {
        served = *std::move(started);
      } else {
        task_.log.warn("desk: {}; trying again in a minute", one_line(started.error().message));
      }
    }
    turn.wait_for(lock, end, kServeAgain, [] { return false; });
  }
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
