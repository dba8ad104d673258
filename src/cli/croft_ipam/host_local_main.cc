// The CNI plugin host-local, a file of its own: no store, no network (docs/formats/host-local.md).

#include <array>
#include <functional>
#include <string>

#include "cli/croft_ipam/plugin_main.h"
#include "hostlocal/directory/directory_reservations.h"
#include "hostlocal/door/host_local.h"
#include "os/clock.h"
#include "os/files.h"
#include "os/log_file.h"
#include "os/process.h"

namespace croft::app {
namespace {

using store::OpenMode;

/// A drop-in makes no directories its user doesn't expect: it logs where Croft has its log directory already.
std::function<void(const std::string&)> log_if_wanted() {
  const os::LogPlace place = log_place("");
  const auto directory = os::file_status(place.directory);
  if (!directory || !*directory) return {};
  return [place](const std::string& line) { os::append_log_line(place, line); };
}

int serve_host_local(const edge::CniHost& host) {
  const os::SystemClock clock;
  const edge::HostLocalWorld world{
      [&clock](const std::string& data_dir, const std::string& network, OpenMode mode) {
        return store::hostlocal::open_reservations(data_dir, network, mode, clock);
      },
      store::hostlocal::check_directory,
      clock,
      [](const std::string& line) { static_cast<void>(os::write_standard_error(line + "\n")); },
      log_if_wanted(),
  };
  return edge::serve_cni(edge::host_local_plugin(world), host, os::write_json_to_standard_output,
                         os::write_standard_error);
}

}  // namespace
}  // namespace croft::app

int main(int argc, char** argv) {
  using namespace croft::app;
  static constexpr std::array kPersonalities = {Personality{"host-local", serve_host_local}};
  plugin_main(argc, argv, kPersonalities, CROFT_LIBRARIES);
}
