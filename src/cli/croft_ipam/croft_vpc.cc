#include "vpc/door/croft_vpc.h"

#include "cli/croft_ipam/croft_vpc_world.h"
#include "cli/croft_ipam/personalities.h"
#include "cli/croft_ipam/sibling.h"
#include "cli/stores/open_sqlite.h"
#include "os/clock.h"
#include "os/process.h"
#include "os/random.h"

namespace croft::app {

int serve_croft_vpc(const edge::CniHost& host) {
  os::make_files_private();
  const os::SystemClock clock;
  os::SystemRandom random;
  edge::CroftVpcWorld world = croft_vpc_world(clock, random);
  world.open_store = [&](const std::string& url, store::OpenMode mode) { return open_sqlite(url, mode, clock); };
  world.hand_over = hand_over_to_sibling("croft-vpc");
  return edge::serve_cni(edge::croft_vpc_plugin(world), host, os::write_json_to_standard_output,
                         os::write_standard_error);
}

}  // namespace croft::app
