#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cni/format/error.h"
#include "register/records.h"

namespace croft::wire::cni {

enum class Command : std::uint8_t { add, del, check, gc, status, version };

/// The word of CNI_COMMAND, "ADD".
[[nodiscard]] std::string_view name_of(Command command);
/// Exactly the upper-case word; nullopt for any other text.
[[nodiscard]] std::optional<Command> parse_command(std::string_view word);

/// The CNI variables as they came. An unset one and an empty one are the same.
struct Environment {
  std::string command;         ///< CNI_COMMAND
  std::string container_id;    ///< CNI_CONTAINERID
  std::string netns;           ///< CNI_NETNS, a path
  std::string interface_name;  ///< CNI_IFNAME
  std::string args;            ///< CNI_ARGS
  std::string path;            ///< CNI_PATH
  std::string netns_override;  ///< CNI_NETNS_OVERRIDE

  /// Asks `get` (std::getenv, as a rule) for each variable; null means unset.
  [[nodiscard]] static Environment from(const char* (*get)(const char* name));

  /// CNI_NETNS_OVERRIDE is `1` or `true` in any case.
  [[nodiscard]] bool overrides_netns_check() const;
  friend bool operator==(const Environment&, const Environment&) = default;
};

/// `^[a-zA-Z0-9][a-zA-Z0-9_.\-]*$` over the whole text: the rule for container IDs and network names.
[[nodiscard]] bool is_cni_name(std::string_view text);

// Single checks with the texts of docs/notes/cni.md#environment-errors; nullopt when the value is fine.
[[nodiscard]] std::optional<Error> check_container_id(const std::string& container_id);
[[nodiscard]] std::optional<Error> check_interface_name(const std::string& interface_name);
[[nodiscard]] std::optional<Error> check_network_name(const std::string& network_name);

/// Steps 1 and 2 of the dispatch (docs/notes/cni.md#error-order): the first invalid variable in table order wins
/// over any missing one; else all missing ones are named together. A variable that the command does not need is not
/// looked at.
[[nodiscard]] std::optional<Error> check_environment(const Environment& environment);

/// Whether an owner can have a handle: network names to 255 bytes, `<network>.<containerID>` (register/owner.h) to
/// core::kKeyNameBytesMax. The specification sets no limits and the reference accepts any length. Errors: code 7 naming
/// the network, code 4 naming CNI_CONTAINERID.
[[nodiscard]] std::optional<Error> check_owner_size(const std::string& network_name, const std::string& container_id);
/// Whether the interface name can be recorded: the kernel allows control characters and bytes that are not UTF-8,
/// records do not. Error: code 4 naming CNI_IFNAME.
[[nodiscard]] std::optional<Error> check_recordable_interface(const std::string& interface_name);

}  // namespace croft::wire::cni
