#include "hostlocal/commands/host_local_place.h"

#include <fmt/format.h>

#include "base/net/echo.h"
#include "cni/format/environment.h"
#include "os/files.h"

namespace croft::app {
namespace {

Error no_network_directory(const std::string& text) {
  return {
      ErrorCode::invalid_argument,
      fmt::format("--dir: {} is no directory of a network; name one like /var/lib/cni/networks/cbr0", net::echo(text)),
      {}};
}

}  // namespace

Result<HostLocalPlace> host_local_place(const std::string& directory, const std::string& network) {
  std::string path = directory;
  while (path.ends_with('/')) path.pop_back();
  if (path.empty()) return fail(no_network_directory(directory));
  auto resolved = os::resolved_path(path);
  if (!resolved) return fail(resolved.error().in("--dir"));
  HostLocalPlace place{*resolved, os::directory_of(*resolved), resolved->substr(resolved->rfind('/') + 1), network};
  if (place.directory_name.empty() || place.directory_name.front() == '.') {
    return fail(no_network_directory(directory));
  }
  if (place.network.empty()) place.network = place.directory_name;
  if (wire::cni::is_cni_name(place.network)) return place;
  return fail(ErrorCode::invalid_argument,
              fmt::format("--network: {} is no name of a CNI network; give the name of the configuration",
                          net::echo(place.network)));
}

}  // namespace croft::app
