// The CNI plugins on a store and on a node's stock of cloud addresses.

#include <array>

#include "cli/croft_ipam/personalities.h"
#include "cli/croft_ipam/plugin_main.h"

int main(int argc, char** argv) {
  using namespace croft::app;
  static constexpr std::array kPersonalities = {
      Personality{"croft-ipam", serve_croft_ipam},
      Personality{"calico-ipam", serve_calico_ipam, answer_calico_options},
      Personality{"croft-vpc", serve_croft_vpc},
  };
  plugin_main(argc, argv, kPersonalities, CROFT_LIBRARIES);
}
