// The CNI plugins on a node's agent, a SQLite file, and a node's stock of cloud addresses. Other stores and the cloud
// are the sibling's, croft-ipam-cluster (docs/adr/0019-plugin-files.md).

#include <array>

#include "cli/croft_ipam/personalities.h"
#include "cli/croft_ipam/plugin_main.h"

int main(int argc, char** argv) {
  using namespace croft::app;
  static constexpr std::array kPersonalities = {
      Personality{"croft-ipam", serve_croft_ipam},
      Personality{"croft-vpc", serve_croft_vpc},
  };
  plugin_main(argc, argv, kPersonalities, CROFT_LIBRARIES);
}
