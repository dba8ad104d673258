#include "install/commands/install_options.h"

#include <string>

#include <fmt/format.h>

#include "base/printable.h"
#include "install/format/subnet_env.h"
#include "os/files.h"
#include "os/process.h"

namespace croft::app {

std::string url_seen_from_here(const InstallOptions& options, std::string url) {
  const std::string& on_host =
      options.configurations_on_host.empty() ? options.configurations : options.configurations_on_host;
  const std::string theirs = fmt::format("kube:{}/", on_host);
  if (url.starts_with(theirs)) url.replace(0, theirs.size(), fmt::format("kube:{}/", options.configurations));
  return url;
}

std::vector<net::Prefix> ranges_of_flannels_agent(const InstallOptions& options) {
  std::vector<net::Prefix> ranges;
  const auto text = os::read_file(options.subnet_env, wire::kSubnetEnvBytesMax);
  if (!text) return ranges;
  const auto env = wire::decode_subnet_env(*text);
  if (!env) return ranges;
  for (const wire::SubnetEnvFamily& family : env->families) ranges.push_back(family.subnet.network());
  return ranges;
}

void trim_path(std::string& path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
}

void tell(const std::string& line) {
  static_cast<void>(os::write_standard_output(printable(line, Printed::line) + "\n"));
}

}  // namespace croft::app
