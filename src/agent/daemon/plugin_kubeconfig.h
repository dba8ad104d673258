#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/stores/open_store.h"
#include "store/kube/api.h"
#include "store/kube/format/kubeconfig.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's
class App;
}

namespace croft::app {

struct PluginKubeconfigOptions {
  std::string file;                  ///< as this process sees it
  std::vector<std::string> servers;  ///< URLs that the plugin is to ask; empty: those that this process asks
  std::string server_name;           ///< of their certificates; empty: their hosts, or what the kubeconfig says
  std::string service_account = "croft-plugin";
  std::string name_space;  ///< of the service account; empty: that of this process, else croft-system
  std::int64_t token_seconds = 86'400;
};

/// The flags, for who writes it first (croftd install) and who keeps it (croftd agent).
void add_plugin_kubeconfig_options(CLI::App& command, PluginKubeconfigOptions& options);

/// The plugin's kubeconfig: one JSON file with everything in it, and a token of its own, which somebody has to renew.
/// For one thread.
class PluginKubeconfig {
 public:
  /// By an API that may make such tokens (deploy/kubernetes/access.yaml). Connects nothing. Error: of the URL and the
  /// kubeconfig that it names; invalid_argument for a server that is none.
  [[nodiscard]] static Result<std::unique_ptr<PluginKubeconfig>> make(PluginKubeconfigOptions options,
                                                                      const std::string& store_url, const Clock& clock,
                                                                      Random& random);

  /// Opens the API that the file names, as the plugin does: with the token in it. Connects nothing.
  using OpenAsPlugin = std::function<Result<std::unique_ptr<store::kube::Api>>(const std::string& file)>;

  /// The same with everything given. `options` names servers only by `access`.
  PluginKubeconfig(PluginKubeconfigOptions options, wire::kube::KubeAccess access,
                   std::unique_ptr<store::kube::Api> api, const Clock& clock, Random& random,
                   OpenAsPlugin open_as_plugin)
      : options_(std::move(options)),
        access_(std::move(access)),
        api_(std::move(api)),
        open_as_plugin_(std::move(open_as_plugin)),
        clock_(clock),
        random_(random) {}

  /// Its text, with a new token. Errors: store::kube::request_token; of the file with the CA;
  /// invalid_argument: the plugin would refuse it, as where the server is no https, or one by name.
  [[nodiscard]] Result<std::string> text();

  /// The action taken, or why it could not be.
  struct Tended {
    std::string line;
    bool is_failure = false;
  };
  /// Looks whether the file is there, names these servers and this CA, and has most of its token's life before it; if
  /// not, writes it anew, durably and at once. To be called every now and then: most calls only look at the clock.
  /// A new token may be due again when it comes, as where this node's clock is ahead, or may not be readable. That is a
  /// failure too: the token is written, for the server may take it, and told. Every 12 to 18 s the API server is asked
  /// with the token in the file. One that it refuses (401), as after its service account was made anew, is replaced.
  /// Behind one that was replaced for itself the next comes after 5 minutes and up to a half more. A file that is gone
  /// is written only where the record of `croftd install` beside it names it: what was taken back stays so. Nor is any
  /// while somebody installs or takes back.
  [[nodiscard]] std::optional<Tended> renew_if_due();

 private:
  /// Why it must be written now; an empty text: it need not.
  struct Reason {
    std::string text;
    bool is_of_token = false;  ///< only the token is to be another
    bool is_absent = false;
  };
  [[nodiscard]] Reason reason() const;
  /// The same of what stands in the file.
  [[nodiscard]] Reason reason_of(const wire::kube::KubeAccess& is) const;
  /// The file, as the plugin reads it.
  [[nodiscard]] Result<wire::kube::KubeAccess> in_file() const;
  /// Error: refused_by_configuration, where the file was taken back; those of the record.
  [[nodiscard]] Result<void> check_it_was_not_taken_back() const;
  [[nodiscard]] Result<wire::kube::KubeAccess> write();
  /// The words about it.
  [[nodiscard]] Tended judged(const wire::kube::KubeAccess& written, const Reason& why) const;
  /// Asks the API server, when it is time, whether it still takes the token in the file.
  void ask_of_token();
  /// `pause`, and up to a half more: nodes that were started together ask one after the other.
  [[nodiscard]] std::chrono::nanoseconds spread(std::chrono::nanoseconds pause);
  [[nodiscard]] Result<std::string> ca() const;
  /// The server that the plugin is to ask. The plugin looks up no names: where this process asks by name, the numeric
  /// servers that the file has from its installation stay.
  [[nodiscard]] wire::kube::KubeAccess access_of_plugin() const;

  const PluginKubeconfigOptions options_;
  const wire::kube::KubeAccess access_;
  const std::unique_ptr<store::kube::Api> api_;
  const OpenAsPlugin open_as_plugin_;
  const Clock& clock_;
  Random& random_;
  std::chrono::nanoseconds next_look_{0};   ///< since boot
  std::chrono::nanoseconds next_ask_{0};    ///< since boot: whether the token is taken
  std::chrono::nanoseconds next_token_{0};  ///< since boot: no sooner, where the token alone is the reason
  std::string refused_token_;               ///< the last one that was refused
  std::uint64_t jitter_ = 0;  ///< of 1024: how far into the second quarter of its life the token is renewed
};

/// When somebody renews a token: after a quarter of its life, and `jitter` of 1024 parts of another.
[[nodiscard]] WallTime renew_at(const wire::kube::TokenLife& life, std::uint64_t jitter);

}  // namespace croft::app
