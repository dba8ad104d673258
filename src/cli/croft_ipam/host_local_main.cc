// The CNI plugin host-local, a file of its own: no store, no network.

#include <array>

#include "cli/croft_ipam/personalities.h"
#include "cli/croft_ipam/plugin_main.h"

int main(int argc, char** argv) {
  using namespace croft::app;
  static constexpr std::array kPersonalities = {Personality{"host-local", serve_host_local}};
  plugin_main(argc, argv, kPersonalities, CROFT_LIBRARIES);
}
