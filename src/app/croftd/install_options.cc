#include "app/croftd/install_options.h"

#include <string>

#include <fmt/format.h>

#include "base/printable.h"
#include "os/process.h"

namespace croft::app {

std::string url_seen_from_here(const InstallOptions& options, std::string url) {
  const std::string& on_host =
      options.configurations_on_host.empty() ? options.configurations : options.configurations_on_host;
  const std::string theirs = fmt::format("kube:{}/", on_host);
  if (url.starts_with(theirs)) url.replace(0, theirs.size(), fmt::format("kube:{}/", options.configurations));
  return url;
}

void trim_path(std::string& path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
}

void tell(const std::string& line) {
  static_cast<void>(os::write_standard_output(printable(line, Printed::line) + "\n"));
}

}  // namespace croft::app
