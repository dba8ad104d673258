#include "cni/door/skeleton.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cni/error_table.h"

namespace croft::edge {
namespace {

using wire::cni::check_environment;
using wire::cni::Code;
using wire::cni::Command;
using wire::cni::Environment;
using MaybeError = std::optional<wire::cni::Error>;

CniAnswer failed(const wire::cni::Error& error) { return {1, print_error(error), {}}; }

/// The text for an empty CNI_COMMAND: a person called the plugin by hand.
std::string about_text(const CniPlugin& plugin) {
  return fmt::format("{}\nCNI protocol versions supported: {}\n", plugin.about,
                     fmt::join(plugin.supported_versions, ", "));
}

/// Steps 3 and 4: standard input and the network's name.
MaybeError read_config(const CniHost& host, CniRequest& request) {
  auto bytes = host.read_stdin();
  if (!bytes) {
    return wire::cni::Error{Code::io_failure, "error reading from stdin: " + bytes.error().message,
                            bytes.error().details};
  }
  auto document = wire::cni::parse_network_config(*bytes);
  if (!document) return document.error();
  auto name = wire::cni::read_network_name(*document);
  if (!name) return name.error();
  request.network.document = *std::move(document);
  request.network.name = *std::move(name);
  return {};
}

/// The version of the specification that introduced a command; nothing for those of the first one.
std::optional<std::string_view> introduced_in(Command command) {
  if (command == Command::check) return "0.4.0";
  if (command == Command::gc || command == Command::status) return "1.1.0";
  return {};
}

/// Step 7: CHECK, GC and STATUS need a configuration, and a plugin, that are new enough.
MaybeError check_introduction(const CniPlugin& plugin, Command command, const std::string& config_version) {
  const auto introduction = introduced_in(command);
  if (!introduction) return {};
  const auto wanted = wire::cni::parse_version(config_version);
  if (!wanted) return wire::cni::Error{Code::decoding_failure, wanted.error().message, {}};
  if (*wanted < *wire::cni::parse_version(*introduction)) {
    return wire::cni::Error{
        Code::incompatible_version, fmt::format("config version does not allow {}", name_of(command)), {}};
  }
  const bool reached = std::any_of(plugin.supported_versions.begin(), plugin.supported_versions.end(), [&](auto text) {
    const auto version = wire::cni::parse_version(text);
    return version && *version >= *wanted;
  });
  if (reached) return {};
  return wire::cni::Error{
      Code::incompatible_version, fmt::format("plugin version does not allow {}", name_of(command)), {}};
}

/// Step 8: only exactly the versions of the list.
MaybeError check_supported(const CniPlugin& plugin, const std::string& config_version) {
  const auto& versions = plugin.supported_versions;
  if (std::find(versions.begin(), versions.end(), config_version) != versions.end()) return {};
  return wire::cni::Error{Code::incompatible_version, "incompatible CNI versions",
                          wire::cni::incompatible_details(config_version, versions)};
}

MaybeError check_version(const CniPlugin& plugin, CniRequest& request) {
  auto version = wire::cni::read_cni_version(request.network.document);
  if (!version) return version.error();
  if (auto error = check_introduction(plugin, request.command, *version)) return error;
  if (auto error = check_supported(plugin, *version)) return error;
  request.network.cni_version = *std::move(version);
  return {};
}

/// Step 9, moved in front of the command.
MaybeError check_netns(const CniHost& host, Command command) {
  const bool concerned = command == Command::add || command == Command::del;
  if (!concerned || host.environment.overrides_netns_check()) return {};
  const os::SameNamespace answer = host.compare_netns(host.environment.netns);
  if (answer == os::SameNamespace::yes) {
    return wire::cni::Error{Code::invalid_netns, "plugin's netns and netns from CNI_NETNS should not be the same", {}};
  }
  if (answer != os::SameNamespace::own_cannot_open) return {};
  return wire::cni::Error{Code::invalid_netns, "get plugin's netns failed", {}};
}

/// GC and STATUS don't validate what they don't require, so nobody may use it.
Environment visible_environment(const Environment& environment, Command command) {
  Environment visible = environment;
  if (command == Command::gc || command == Command::status) {
    visible.container_id.clear();
    visible.interface_name.clear();
    visible.netns.clear();
  }
  return visible;
}

/// Whether the command only takes away, so that it has nothing to do for an owner that cannot exist.
bool only_releases(Command command) { return command == Command::del || command == Command::gc; }

MaybeError check_limits(const CniPlugin& plugin, const CniRequest& request) {
  if (!plugin.limits_owner) return {};
  const Environment& environment = request.environment;
  if (auto error = wire::cni::check_owner_size(request.network.name, environment.container_id)) return error;
  if (only_releases(request.command)) return {};
  return wire::cni::check_recordable_interface(environment.interface_name);
}

CniAnswer run_add(const CniPlugin& plugin, const CniRequest& request) {
  if (!plugin.handlers.add) return {};
  const auto result = plugin.handlers.add(request);
  if (!result) return failed(result.error());
  auto text = print_result(*result, request.network.cni_version);
  if (!text) return failed(text.error());
  return {0, *std::move(text), {}};
}

CniAnswer run_silent(const std::function<MaybeError(const CniRequest&)>& handler, const CniRequest& request) {
  if (!handler) return {};
  const auto error = handler(request);
  return error ? failed(*error) : CniAnswer{};
}

CniAnswer run_status(const CniPlugin& plugin, const CniRequest& request) {
  if (!plugin.handlers.status) return {};
  auto error = plugin.handlers.status(request);
  return error ? failed(as_status_error(*std::move(error))) : CniAnswer{};
}

CniAnswer run_command(const CniPlugin& plugin, const CniRequest& request) {
  switch (request.command) {
    case Command::add:
      return run_add(plugin, request);
    case Command::del:
      return run_silent(plugin.handlers.del, request);
    case Command::check:
      return run_silent(plugin.handlers.check, request);
    case Command::gc:
      return run_silent(plugin.handlers.gc, request);
    case Command::status:
      return run_status(plugin, request);
    case Command::version:
      break;  // answered before
  }
  return {};
}

}  // namespace

CniAnswer run_cni(const CniPlugin& plugin, const CniHost& host) {
  const Environment& environment = host.environment;
  if (const auto error = check_environment(environment)) {
    if (environment.command.empty() && !plugin.about.empty()) return {0, {}, about_text(plugin)};
    return failed(*error);
  }
  const auto command = wire::cni::parse_command(environment.command);
  if (command == Command::version) return {0, wire::cni::print_versions(plugin.supported_versions), {}};

  CniRequest request;
  if (const auto error = read_config(host, request)) return failed(*error);
  if (!command) return failed({Code::invalid_environment, "unknown CNI_COMMAND: " + environment.command, {}});
  request.command = *command;
  request.environment = visible_environment(environment, *command);
  if (const auto error = check_version(plugin, request)) return failed(*error);
  const auto own_netns = check_netns(host, *command);
  // DEL first gives back what it can: it prints nothing, so the complaint is still the only document.
  if (own_netns && *command != Command::del) return failed(*own_netns);
  CniAnswer answer;
  if (const auto error = check_limits(plugin, request)) {
    if (!only_releases(*command)) return failed(*error);
  } else {
    answer = run_command(plugin, request);
  }
  return own_netns && answer.exit_code == 0 ? failed(*own_netns) : answer;
}

int serve_cni(const CniPlugin& plugin, const CniHost& host, const std::function<bool(std::string_view)>& write_out,
              const std::function<bool(std::string_view)>& write_err) {
  const CniAnswer answer = run_cni(plugin, host);
  // Nobody is left to tell when standard error is gone too.
  if (!answer.err.empty()) static_cast<void>(write_err(answer.err));
  if (answer.out.empty() || write_out(answer.out)) return answer.exit_code;
  static_cast<void>(write_err("standard output cannot be written; the caller does not know the outcome\n"));
  return 1;
}

}  // namespace croft::edge
