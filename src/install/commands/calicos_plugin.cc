#include "install/commands/calicos_plugin.h"

#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/net/echo.h"
#include "calico/plugin_datastore.h"
#include "os/files.h"

namespace croft::app {
namespace {

using wire::cni::DatastoreChoice;

/// What Calico's installer wrote.
struct Calicos {
  const edge::NodeNetwork* network = nullptr;
  DatastoreChoice datastore;
};

[[nodiscard]] Calicos find_calicos(const std::vector<edge::NodeNetwork>& networks) {
  for (const edge::NodeNetwork& there : networks) {
    if (there.is_ours || there.has_our_name) continue;
    if (auto datastore = wire::cni::datastore_of_calicos_plugin(there.text)) return {&there, *std::move(datastore)};
  }
  return {};
}

/// A file of the node where this process sees it; nullopt: it does not.
[[nodiscard]] std::optional<std::string> seen_from_here(const InstallOptions& options, const std::string& path) {
  const std::string& on_host = options.configurations_on_host;
  if (path.starts_with(on_host + "/")) return options.configurations + path.substr(on_host.size());
  return on_host == options.configurations ? std::optional(path) : std::nullopt;
}

/// Empty: nothing.
[[nodiscard]] Result<std::string> trouble_with(const std::string& path, bool sees_all) {
  TRY(const auto entry, os::entry_status(path));
  if (!entry) return "is not there";
  TRY(const auto file, os::file_status(path));
  // A link's target may be where only the node sees it.
  if (!file) return sees_all ? "is a link to nothing" : "";
  if (file->type != os::FileStatus::Type::regular) return "is no file";
  return file->bytes == 0 ? "is empty" : "";
}

}  // namespace

Result<void> check_calicos_plugin(const InstallOptions& options, const std::vector<edge::NodeNetwork>& networks,
                                  ToldOnce& told) {
  const Calicos calicos = find_calicos(networks);
  if (calicos.network != nullptr && calicos.datastore.kind == DatastoreChoice::Kind::etcd) {
    return fail(
        ErrorCode::refused_by_configuration,
        fmt::format("{}/{} has Calico's plugin ask an etcd, and {} would come before it and have it ask the Kubernetes "
                    "API, where Calico has no records: no pod would start. `croft migrate calico` keeps all that "
                    "Calico's configuration has (docs/runbooks/migrate.md, with --no-conflist in place of "
                    "--main-plugin); remove that file if Calico is on the API by now",
                    options.configurations, net::echo(calicos.network->file), options.network_file));
  }
  const std::string& kubeconfig = options.network.calico_kubeconfig;
  if (!kubeconfig.starts_with('/')) {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("--calico-kubeconfig {}: give an absolute path, as the node sees it", net::echo(kubeconfig)));
  }
  if (options.skip_probe) return {};
  const auto here = seen_from_here(options, kubeconfig);
  if (!here) {
    told(fmt::format("whether Calico's plugin has its kubeconfig {} can't be seen from here", net::echo(kubeconfig)));
    return {};
  }
  TRY(const std::string trouble, trouble_with(*here, options.configurations_on_host == options.configurations));
  if (trouble.empty()) return {};
  const std::string& theirs = calicos.datastore.kubeconfig;
  const bool is_elsewhere = calicos.network != nullptr && !theirs.empty() && theirs != kubeconfig;
  return fail(
      ErrorCode::refused_by_configuration,
      fmt::format(
          "Calico's plugin would ask with {}, which {}, and no pod would start. Calico's installer writes it "
          "(install-cni, the init container of calico-node, which needs no network): run this again then, as "
          "the chart's init container does by itself; or say where it is with --calico-kubeconfig{}; --no-probe "
          "installs without this look",
          kubeconfig, trouble,
          is_elsewhere ? fmt::format(" ({} names {})", net::echo(calicos.network->file), net::echo(theirs)) : ""));
}

}  // namespace croft::app
