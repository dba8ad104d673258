// The CNI plugins on a store of a cluster, and calico-ipam. croft-ipam becomes this program where no agent answers.

#include <array>

#include "cli/croft_ipam/personalities.h"
#include "cli/croft_ipam/plugin_main.h"
#include "cli/croft_ipam/sibling.h"

int main(int argc, char** argv) {
  using namespace croft::app;
  static constexpr std::array kPersonalities = {
      Personality{kSibling, serve_cluster_ipam},
      Personality{"croft-ipam", serve_cluster_ipam},
      Personality{"croft-vpc", serve_cluster_vpc},
      Personality{"calico-ipam", serve_calico_ipam, answer_calico_options},
  };
  plugin_main(argc, argv, kPersonalities, CROFT_LIBRARIES);
}
