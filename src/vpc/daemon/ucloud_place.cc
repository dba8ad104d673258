#include "vpc/daemon/ucloud_place.h"

#include <utility>

#include "cli/stores/environment.h"
#include "http/tls.h"
#include "vpc/ucloud/ucloud.h"

namespace croft::app {

Result<std::unique_ptr<cloud::Provider>> open_ucloud(const UCloudPlace& place, os::LookUp look_up, const Clock& clock,
                                                     std::function<void(const std::string& line)> log) {
  namespace ucloud = cloud::ucloud;
  ucloud::Options options;
  TRY(options.api, wire::Url::parse(place.api.empty() ? ucloud::kDefaultApi : place.api));
  TRY(options.metadata, wire::Url::parse(place.metadata.empty() ? ucloud::kDefaultMetadata : place.metadata));
  options.http.look_up = std::move(look_up);
  if (options.api.secure) {
    os::TlsFiles files;
    files.ca_file = "/etc/ssl/certs/ca-certificates.crt";
    if (!options.api.is_numeric) files.server_name = options.api.host;
    files.http1 = true;
    options.http.security = os::make_tls(std::move(files));
  }
  options.keys = ucloud::keys_of_environment(place.environment);
  options.region = place.region;
  options.project = place.project;
  options.vpc = place.vpc;
  options.subnet = place.subnet;
  options.log = std::move(log);
  return ucloud::make_ucloud(std::move(options), clock);
}

std::map<std::string, std::string> ucloud_environment() {
  std::map<std::string, std::string> found;
  for (const char* name : {"UCLOUD_API_PUBKEY", "UCLOUD_API_PRIKEY", "UCLOUD_ACCESS_PUBKEY", "UCLOUD_ACCESS_PRIKEY"}) {
    if (auto value = from_environment(name); !value.empty()) found.emplace(name, std::move(value));
  }
  return found;
}

}  // namespace croft::app
