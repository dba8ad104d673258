// The flags of the plugin's kubeconfig, for who writes it first (croftd install) and who keeps it (croftd agent).

#include "agent/daemon/daemon.h"
#include "agent/daemon/plugin_kubeconfig.h"

namespace croft::app {

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

}  // namespace croft::app
