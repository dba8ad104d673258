#include "cni/format/environment.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/net/echo.h"
#include "base/text/go_text.h"
#include "register/names.h"

namespace croft::wire::cni {
namespace {

struct CommandWord {
  Command command;
  std::string_view word;
};
constexpr std::array<CommandWord, 6> kCommands = {{{Command::add, "ADD"},
                                                   {Command::del, "DEL"},
                                                   {Command::check, "CHECK"},
                                                   {Command::gc, "GC"},
                                                   {Command::status, "STATUS"},
                                                   {Command::version, "VERSION"}}};

constexpr unsigned bit(Command command) { return 1U << static_cast<unsigned>(command); }
constexpr unsigned kAttachment = bit(Command::add) | bit(Command::check) | bit(Command::del);
constexpr unsigned kAll = kAttachment | bit(Command::gc) | bit(Command::status);

/// One row of the table in docs/notes/cni.md#environment.
struct Variable {
  const char* name;
  std::string Environment::*value;
  unsigned required_by;  ///< bits of commands; CNI_COMMAND itself is always required
  std::optional<Error> (*check)(const std::string&);
};
constexpr std::array<Variable, 7> kVariables = {{
    {"CNI_COMMAND", &Environment::command, kAll, nullptr},
    {"CNI_CONTAINERID", &Environment::container_id, kAttachment, check_container_id},
    {"CNI_NETNS", &Environment::netns, bit(Command::add) | bit(Command::check), nullptr},
    {"CNI_IFNAME", &Environment::interface_name, kAttachment, check_interface_name},
    {"CNI_ARGS", &Environment::args, 0, nullptr},
    {"CNI_PATH", &Environment::path, kAll, nullptr},
    {"CNI_NETNS_OVERRIDE", &Environment::netns_override, 0, nullptr},
}};

bool is_forbidden_in_interface(char32_t code) { return code == '/' || code == ':' || is_space(code); }

}  // namespace

std::string_view name_of(Command command) {
  const auto row = std::find_if(kCommands.begin(), kCommands.end(), [&](auto& c) { return c.command == command; });
  return row->word;
}

std::optional<Command> parse_command(std::string_view word) {
  const auto row = std::find_if(kCommands.begin(), kCommands.end(), [&](auto& c) { return c.word == word; });
  return row == kCommands.end() ? std::nullopt : std::optional(row->command);
}

Environment Environment::from(const char* (*get)(const char* name)) {
  Environment environment;
  for (const Variable& variable : kVariables) {
    if (const char* value = get(variable.name)) environment.*variable.value = value;
  }
  return environment;
}

bool Environment::overrides_netns_check() const {
  return netns_override == "1" || same_member_name(netns_override, "true");
}

bool is_cni_name(std::string_view text) {
  const auto allowed = [](char c) { return core::is_alphanumeric(c) || c == '_' || c == '.' || c == '-'; };
  return !text.empty() && core::is_alphanumeric(text.front()) && std::all_of(text.begin(), text.end(), allowed);
}

std::optional<Error> check_container_id(const std::string& container_id) {
  if (is_cni_name(container_id)) return {};
  return Error{Code::invalid_environment, "invalid characters in containerID", container_id};
}

std::optional<Error> check_interface_name(const std::string& interface_name) {
  constexpr std::size_t kBytesMax = 15;
  if (interface_name.size() > kBytesMax) {
    return Error{Code::invalid_environment, "interface name is too long",
                 fmt::format("interface name should be less than {} characters", kBytesMax + 1)};
  }
  if (interface_name == "." || interface_name == "..") {
    return Error{Code::invalid_environment, "interface name is . or ..", {}};
  }
  for (std::string_view rest = interface_name; !rest.empty();) {
    const Rune rune = first_rune(rest);
    if (is_forbidden_in_interface(rune.code)) {
      return Error{Code::invalid_environment, "interface name contains / or : or whitespace characters", {}};
    }
    rest.remove_prefix(rune.size);
  }
  return {};
}

std::optional<Error> check_network_name(const std::string& network_name) {
  if (network_name.empty()) return Error{Code::invalid_network_config, "missing network name", {}};
  if (is_cni_name(network_name)) return {};
  return Error{Code::invalid_network_config, "invalid characters found in network name", network_name};
}

std::optional<Error> check_environment(const Environment& environment) {
  const auto command = parse_command(environment.command);
  const unsigned command_bit = command ? bit(*command) : 0;
  std::string missing;
  for (const Variable& variable : kVariables) {
    const std::string& value = environment.*variable.value;
    const bool required = (variable.required_by & command_bit) != 0;
    if (value.empty()) {
      const bool is_command = variable.value == &Environment::command;
      if (required || is_command) missing += (missing.empty() ? "" : ",") + std::string(variable.name);
    } else if (required && variable.check != nullptr) {
      if (auto error = variable.check(value)) return error;
    }
  }
  if (missing.empty()) return {};
  return Error{Code::invalid_environment, fmt::format("required env variables [{}] missing", missing), {}};
}

std::optional<Error> check_owner_size(const std::string& network_name, const std::string& container_id) {
  constexpr std::size_t kNetworkBytesMax = 255;
  if (network_name.size() > kNetworkBytesMax) {
    return Error{Code::invalid_network_config,
                 fmt::format("network name is too long: {} bytes, at most {}", network_name.size(), kNetworkBytesMax),
                 net::echo(network_name)};
  }
  const std::size_t room = core::kKeyNameBytesMax - network_name.size() - 1;  // one byte for the dot between
  if (container_id.size() > room) {
    return Error{
        Code::invalid_environment,
        fmt::format("CNI_CONTAINERID is too long: {} bytes, at most {} in this network", container_id.size(), room),
        net::echo(container_id)};
  }
  return {};
}

std::optional<Error> check_recordable_interface(const std::string& interface_name) {
  if (is_plain_text(interface_name)) return {};
  return Error{Code::invalid_environment, "CNI_IFNAME is not UTF-8 text without control characters",
               net::echo(interface_name)};
}

}  // namespace croft::wire::cni
