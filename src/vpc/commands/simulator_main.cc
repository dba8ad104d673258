// A cloud for tests: UCloud's API, metadata and credentials, with a world behind them that can be looked at.

#include <algorithm>
#include <exception>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/printable.h"
#include "os/clock.h"
#include "os/digest.h"
#include "os/files.h"
#include "os/process.h"
#include "os/random.h"
#include "os/stop_signal.h"
#include "vpc/simulator/simulator.h"

namespace croft::app {
namespace {

int tell(const Error& error) {
  static_cast<void>(
      os::write_standard_error(fmt::format("croft-vpc-sim: {}\n", printable(error.message, Printed::line))));
  return error.code == ErrorCode::invalid_argument ? 2 : 1;
}

int run(int argc, char** argv) {
  os::StopSignal stop(std::chrono::milliseconds(1000));
  CLI::App app("A simulator of UCloud's API for secondary addresses, its metadata and credentials.", "croft-vpc-sim");
  std::string where = "127.0.0.1:0";
  std::string file;
  app.add_option("--listen", where, "numeric address and port; port 0: a free one")->capture_default_str();
  app.add_option("--config", file, "JSON file: subnets, nodes, keys, latency")->required();
  app.set_version_flag("--version", std::string("croft-vpc-sim ") + CROFT_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
  }
  const auto text = os::read_file(file, std::size_t{4} << 20);
  if (!text) return tell(text.error());
  auto config = cloud::simulator::decode_config(*text);
  if (!config) return tell(config.error().in(file));
  const os::SystemClock clock;
  os::SystemRandom random;
  const auto running = cloud::simulator::Simulator::start(std::move(*config), where, os::sha1, clock, random);
  if (!running) return tell(running.error());
  if (!os::write_standard_output("listening on " + (*running)->where() + "\n")) return 1;
  while (!stop.wait_for(std::chrono::hours(1))) {
  }
  return 0;
}

}  // namespace
}  // namespace croft::app

int main(int argc, char** argv) {
  croft::os::fill_standard_streams();
  try {
    return croft::app::run(argc, argv);
  } catch (const std::exception& error) {
    static_cast<void>(croft::os::write_standard_error(std::string("croft-vpc-sim: ") + error.what() + "\n"));
    return 1;
  }
}
