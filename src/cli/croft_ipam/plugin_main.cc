#include "cli/croft_ipam/plugin_main.h"

#include <cstdlib>
#include <new>

#include "base/json/reader.h"
#include "cli/build_commit.h"
#include "os/process.h"

namespace croft::app {
namespace {

std::string_view name_of(std::string_view called_as) { return called_as.substr(called_as.rfind('/') + 1); }

int refuse_name(std::string_view name) {
  const wire::cni::Error error{wire::cni::Code::refused,
                               "this file is not \"" + std::string(name) +
                                   "\": install croft-ipam-cluster as calico-ipam, croft-ipam as croft-vpc, and "
                                   "Croft's host-local as host-local",
                               ""};
  static_cast<void>(os::write_json_to_standard_output(wire::cni::print_error(error)));
  return 1;
}

/// A person asks, no runtime: that would have said CNI_COMMAND.
bool asks_for_version(int argc, char** argv) {
  return argc == 2 && std::string_view(argv[1]) == "--version" && std::getenv("CNI_COMMAND") == nullptr;
}

int print_version(std::string_view name, std::string_view libraries) {
  const std::string text =
      std::string(name) + " " + CROFT_VERSION + commit_text() + "\nbuilt with " + std::string(libraries) + "\n";
  return os::write_standard_output(text) ? 0 : 1;
}

int serve(int argc, char** argv, std::span<const Personality> personalities, std::string_view libraries) {
  std::string_view name = name_of(argc > 0 ? argv[0] : "");
  if (personalities.size() == 1) name = personalities.front().name;
  if (asks_for_version(argc, argv)) return print_version(name, libraries);
  const edge::CniHost host{
      wire::cni::Environment::from([](const char* variable) -> const char* { return std::getenv(variable); }),
      [] { return os::read_standard_input(wire::kStdinBytesMax + 1); },
      os::is_own_network_namespace,
  };
  for (const Personality& personality : personalities) {
    if (personality.name != name) continue;
    const bool has_options = argc > 1 && personality.answer_options != nullptr;
    return has_options ? personality.answer_options({argv + 1, argv + argc}) : personality.serve(host);
  }
  return refuse_name(name);
}

}  // namespace

void plugin_main(int argc, char** argv, std::span<const Personality> personalities, std::string_view libraries) {
  os::prepare_plugin_process();
  try {
    os::end_process(serve(argc, argv, personalities, libraries));
  } catch (const std::bad_alloc&) {
    // As wire::cni prints it, from memory that is there already.
    os::write_last_words_to_standard_output(
        "{\n    \"cniVersion\": \"1.0.0\",\n    \"code\": 11,\n    \"msg\": \"out of memory: give the plugin "
        "more\"\n}\n");
    os::end_process(1);
  }
}

os::LogPlace log_place(const std::string& file) {
  const char* named = std::getenv("CROFT_LOG_DIRECTORY");
  return {named != nullptr && *named != '\0' ? named : "/var/log/croft", "ipam.log", file};
}

}  // namespace croft::app
