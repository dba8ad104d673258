// The operator's command line.

#include <cstdlib>
#include <exception>
#include <new>
#include <sstream>

#include <fmt/format.h>

#include "app/croft/command_line.h"
#include "app/croft/json_output.h"
#include "app/open_store.h"
#include "base/printable.h"
#include "edge/error_table.h"
#include "engine/damage_telling.h"
#include "os/clock.h"
#include "os/process.h"
#include "os/random.h"

namespace croft::app {

Result<engine::Context> CommandLine::open(bool create) {
  auto opened =
      open_store(store_url, create ? store::OpenMode::create : store::OpenMode::existing, clock, kubernetes_registry);
  if (!opened && opened.error().code == ErrorCode::not_found) {
    // An absent store is an unreachable one; an absent pool or address is an ordinary error.
    return fail(ErrorCode::unavailable, opened.error().message);
  }
  if (!opened) return fail(opened.error());
  // What is left out of an answer is named beside it, once.
  store = std::make_unique<engine::DamageTelling>(*std::move(opened), [](const store::Key&, const Error& damage) {
    static_cast<void>(os::write_standard_error("croft: damaged record, set aside: " + damage.message + "\n"));
  });
  return engine::Context{*store, clock, random};
}

bool CommandLine::in_colour() const {
  if (colour == "auto") return os::standard_output_is_terminal() && std::getenv("NO_COLOR") == nullptr;
  return colour == "always";
}

std::string CommandLine::data(const std::string& json_text) const {
  return printable(output == Output::yaml ? yaml_of(json_text) : json_text, Printed::json);
}

void print(const std::string& text, Printed how) {
  if (!os::write_standard_output(text, how)) std::exit(static_cast<int>(edge::ExitCode::error));
}

void tell(const std::string& text) { static_cast<void>(os::write_standard_error(text + "\n")); }

Result<net::Address> address_argument(const std::string& name, const std::string& text) {
  auto address = net::Address::parse(text);
  if (!address) return fail(address.error().in(name));
  return *address;
}

Result<net::Prefix> prefix_argument(const std::string& name, const std::string& text) {
  auto prefix = net::Prefix::parse(text);
  if (!prefix) return fail(prefix.error().in(name));
  return *prefix;
}

namespace {

constexpr const char* kFooter =
    "Exit codes: 0 fine, 1 error, 2 usage, 3 findings, 4 store unreachable, 5 refused for safety.\n"
    "Examples:\n"
    "  croft pool create a --cidr 10.1.0.0/16\n"
    "  croft pool show a\n"
    "  croft ip list -o json\n"
    "  croft check --cni-cache /var/lib/cni\n"
    "  croft explain --node node-a\n"
    "  croft service create web --type NodePort --tcp 80:8080\n"
    "  croft host-local check --dir /var/lib/cni/networks/cbr0\n";

void add_common(CLI::App& app, CommandLine& line) {
  app.add_option("--store", line.store_url, "Store to work on: sqlite:/absolute/path.db")
      ->envname("CROFT_STORE")
      ->default_val(edge::kDefaultStoreUrl);
  app.add_option("-o,--output", line.output, "Form of the output: table, wide, json or yaml")
      ->transform(
          CLI::CheckedTransformer(std::map<std::string, CommandLine::Output>{{"table", CommandLine::Output::table},
                                                                             {"wide", CommandLine::Output::wide},
                                                                             {"json", CommandLine::Output::json},
                                                                             {"yaml", CommandLine::Output::yaml}}))
      ->default_str("table");
  app.add_option("--colour,--color", line.colour, "Colour: auto (only on a terminal), always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->default_val("auto");
}

int run(int argc, char** argv) {
  const os::SystemClock clock;
  os::SystemRandom random;
  CommandLine line{"", CommandLine::Output::table, "auto", {}, clock, random, nullptr};
  CLI::App app("Croft hands out IP addresses and keeps the register of who holds them.", "croft");
  app.footer(kFooter);
  app.set_version_flag("--version", std::string("croft ") + CROFT_VERSION + "\nbuilt with " + CROFT_LIBRARIES);
  app.require_subcommand(1);
  app.fallthrough();
  add_common(app, line);
  add_pool_commands(app, line);
  add_block_commands(app, line);
  add_ip_commands(app, line);
  add_node_commands(app, line);
  add_affinity_commands(app, line);
  add_config_commands(app, line);
  add_check_command(app, line);
  add_explain_command(app, line);
  add_host_local_commands(app, line);
  add_service_commands(app, line);
  add_store_commands(app, line);
  add_record_commands(app, line);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    const int code = app.exit(error, out, err);
    static_cast<void>(os::write_standard_output(out.str()));
    static_cast<void>(os::write_standard_error(err.str()));
    return code == 0 ? 0 : static_cast<int>(edge::ExitCode::usage);
  }
  const Result<int> code = line.run(line);
  if (code) return *code;
  const Error& error = code.error();
  static_cast<void>(os::write_standard_error(fmt::format("croft: {}{}{}\n", printable(error.message, Printed::line),
                                                         error.details.empty() ? "" : "\n  ", error.details)));
  return static_cast<int>(edge::exit_code_of(error.code));
}

}  // namespace
}  // namespace croft::app

int main(int argc, char** argv) {
  croft::os::fill_standard_streams();
  croft::os::survive_file_size_limit();
  try {
    return croft::app::run(argc, argv);
  } catch (const std::bad_alloc&) {
    croft::os::write_last_words_to_standard_error("croft: out of memory: give this process more\n");
    return static_cast<int>(croft::edge::ExitCode::error);
  } catch (const std::exception& error) {
    static_cast<void>(croft::os::write_standard_error(std::string("croft: ") + error.what() + "\n"));
    return static_cast<int>(croft::edge::ExitCode::error);
  }
}
