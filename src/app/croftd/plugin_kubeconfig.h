#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/kube_url.h"
#include "base/clock.h"
#include "store/kube/api.h"
#include "wire/kube/token.h"

namespace croft::app {

struct PluginKubeconfigOptions {
  std::string file;                  ///< as this process sees it
  std::vector<std::string> servers;  ///< URLs that the plugin is to ask; empty: those that this process asks
  std::string service_account = "croft-plugin";
  std::string name_space;  ///< of the service account; empty: that of this process, else croft-system
  std::int64_t token_seconds = 86'400;
};

/// The plugin's kubeconfig: one JSON file with everything in it, and a token of its own, which somebody has to renew.
/// For one thread.
class PluginKubeconfig {
 public:
  /// By an API that may make such tokens (deploy/kubernetes/access.yaml). Connects nothing. Error: of the URL and the
  /// kubeconfig that it names; invalid_argument for a server that is none.
  [[nodiscard]] static Result<std::unique_ptr<PluginKubeconfig>> make(PluginKubeconfigOptions options,
                                                                      const std::string& store_url, const Clock& clock,
                                                                      Random& random);

  /// Its text, with a new token. Errors: store::kube::request_token; of the file with the CA.
  [[nodiscard]] Result<std::string> text();

  /// What was done, or why it could not be.
  struct Tended {
    std::string line;
    bool is_failure = false;
  };
  /// Looks whether the file is there, names these servers and this CA, and has most of its token's life before it; if
  /// not, writes it anew, durably and at once. To be called every now and then: most calls only look at the clock.
  [[nodiscard]] std::optional<Tended> tend();

 private:
  PluginKubeconfig(PluginKubeconfigOptions options, wire::kube::KubeAccess access,
                   std::unique_ptr<store::kube::Api> api, const Clock& clock, Random& random)
      : options_(std::move(options)),
        access_(std::move(access)),
        api_(std::move(api)),
        clock_(clock),
        random_(random) {}

  /// Why it must be written now; empty: it need not.
  [[nodiscard]] std::string reason();
  [[nodiscard]] Result<std::string> ca() const;

  const PluginKubeconfigOptions options_;
  const wire::kube::KubeAccess access_;
  const std::unique_ptr<store::kube::Api> api_;
  const Clock& clock_;
  Random& random_;
  std::chrono::nanoseconds next_look_{0};  ///< since boot
  std::optional<wire::kube::TokenLife> life_;
  std::uint64_t jitter_ = 0;  ///< of 1024: how far into the second quarter of its life the token is renewed
};

/// When somebody renews a token: after a quarter of its life, and `jitter` of 1024 parts of another.
[[nodiscard]] WallTime renewal_of(const wire::kube::TokenLife& life, std::uint64_t jitter);

}  // namespace croft::app
