// The CNI plugins on a node's agent, a SQLite file, and a node's stock of cloud addresses. Other stores and the cloud
// are the sibling's, croft-ipam-cluster (docs/adr/0019-plugin-files.md).

#include <array>
#include <string>

#include "cli/croft_ipam/plugin_main.h"
#include "cli/croft_ipam/plugin_wiring.h"
#include "cli/stores/open_sqlite.h"
#include "os/clock.h"
#include "os/process.h"

namespace croft::app {
namespace {

template <class World>
int serve(const char* personality, World world_of(const Clock&, Random&), edge::CniPlugin plugin_of(const World&),
          const edge::CniHost& host) {
  os::make_files_private();
  const os::SystemClock clock;
  os::SystemRandom random;
  World world = world_of(clock, random);
  world.open_store = [&](const std::string& url, store::OpenMode mode) { return open_sqlite(url, mode, clock); };
  std::string input;
  world.hand_over = hand_over_to_sibling(personality, input);
  edge::CniHost keeping = host;
  keeping.read_stdin = [&] {
    auto read = host.read_stdin();
    if (read) input = *read;
    return read;
  };
  return edge::serve_cni(plugin_of(world), keeping, os::write_json_to_standard_output, os::write_standard_error);
}

int serve_croft_ipam(const edge::CniHost& host) {
  return serve("croft-ipam", croft_ipam_world, edge::croft_ipam_plugin, host);
}

int serve_croft_vpc(const edge::CniHost& host) {
  return serve("croft-vpc", croft_vpc_world, edge::croft_vpc_plugin, host);
}

}  // namespace
}  // namespace croft::app

int main(int argc, char** argv) {
  using namespace croft::app;
  static constexpr std::array kPersonalities = {
      Personality{"croft-ipam", serve_croft_ipam},
      Personality{"croft-vpc", serve_croft_vpc},
  };
  plugin_main(argc, argv, kPersonalities, CROFT_LIBRARIES);
}
