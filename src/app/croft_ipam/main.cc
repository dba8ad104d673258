// The CNI IPAM plugin. The name it is called by decides its personality; this version has one, `croft-ipam`.

#include <cstdlib>
#include <iterator>
#include <string>

#include "app/open_store.h"
#include "edge/cni_skeleton.h"
#include "edge/croft_ipam.h"
#include "os/clock.h"
#include "os/log_file.h"
#include "os/process.h"
#include "os/random.h"
#include "wire/cni_json.h"

namespace {

using namespace croft;

std::string personality(const char* called_as) {
  const std::string path = called_as;
  return path.substr(path.rfind('/') + 1);
}

edge::NetnsAnswer compare_netns(const std::string& path) {
  switch (os::is_own_network_namespace(path)) {
    case os::SameNamespace::yes:
      return edge::NetnsAnswer::same;
    case os::SameNamespace::no:
      return edge::NetnsAnswer::different;
    case os::SameNamespace::cannot_open:
      return edge::NetnsAnswer::cannot_open;
    case os::SameNamespace::own_cannot_open:
      return edge::NetnsAnswer::own_cannot_open;
  }
  return edge::NetnsAnswer::cannot_open;
}

int refuse_name(const std::string& name) {
  const wire::cni::Error error{wire::cni::Code::refused,
                               "this plugin has no personality \"" + name + "\": install it as croft-ipam", ""};
  static_cast<void>(os::write_standard_output(wire::cni::print_error(error)));
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  os::prepare_plugin_process();
  const std::string name = personality(argc > 0 ? argv[0] : "croft-ipam");
  if (name != "croft-ipam") return refuse_name(name);

  const os::SystemClock clock;
  os::SystemRandom random;
  const edge::CroftIpamWorld world{
      [&](const std::string& url, edge::OpenMode mode) { return app::open_store(url, mode, clock); },
      clock,
      random,
      os::host_name().value_or(""),
      [](const std::string& file, const std::string& line) { os::append_log_line(file, line); },
  };
  const edge::CniHost host{
      wire::cni::Environment::from([](const char* variable) -> const char* { return std::getenv(variable); }),
      [] { return os::read_standard_input(wire::kStdinBytesMax + 1); },
      compare_netns,
  };
  return edge::serve_cni(edge::croft_ipam_plugin(world), host, os::write_standard_output, os::write_standard_error);
}
