#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "base/assert.h"
#include "base/net/address.h"
#include "base/result.h"
#include "register/records.h"

namespace croft::wire::cni {

/// Error codes of the CNI specification that Croft produces (docs/notes/cni.md#error-codes), and Croft's own from
/// 100 on (docs/promises.md#cni-codes).
enum class Code : std::uint16_t {
  incompatible_version = 1,
  invalid_environment = 4,
  io_failure = 5,
  decoding_failure = 6,
  invalid_network_config = 7,
  invalid_netns = 8,
  try_again_later = 11,
  plugin_not_available = 50,  ///< STATUS only
  limited_connectivity = 51,  ///< STATUS only
  no_address = 100,
  store_damaged = 101,  ///< or written by a newer version
  refused = 102,        ///< by configuration or for safety
  internal = 999,
};

/// A failure as the runtime gets it. Croft's own Error (base/result.h) becomes one through cni/error_table.h.
struct Error {
  Code code = Code::internal;
  std::string msg;
  std::string details;  ///< left out when empty
  friend bool operator==(const Error&, const Error&) = default;
};

/// The longest `msg` or `details` that is printed; what is longer is cut and ends in "...".
inline constexpr std::size_t kErrorTextBytesMax = std::size_t{64} << 10;

/// The error object as the reference prints it: code, msg, details; four blanks; no newline behind it.
[[nodiscard]] std::string print_error(const Error& error);

/// A value, or the CNI error that stands in its place. (croft::Result carries croft::Error, which knows no CNI codes;
/// what is read from a runtime must be refused with exactly the code the specification gives.)
template <class T>
class [[nodiscard]] Checked {
 public:
  Checked(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Checked(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  [[nodiscard]] T& operator*() & { return value(); }
  [[nodiscard]] const T& operator*() const& { return const_cast<Checked*>(this)->value(); }
  [[nodiscard]] T&& operator*() && { return std::move(value()); }
  [[nodiscard]] T* operator->() { return &value(); }
  [[nodiscard]] const T* operator->() const { return &**this; }
  /// Only when it is not ok().
  [[nodiscard]] const Error& error() const {
    CROFT_ASSERT(!ok());
    return *std::get_if<1>(&state_);
  }

 private:
  [[nodiscard]] T& value() {
    CROFT_ASSERT(ok());
    return *std::get_if<0>(&state_);
  }
  std::variant<T, Error> state_;
};

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

/// The versions of the CNI specification that Croft speaks, oldest first.
inline constexpr std::array<std::string_view, 7> kSupportedVersions = {"0.1.0", "0.2.0", "0.3.0", "0.3.1",
                                                                       "0.4.0", "1.0.0", "1.1.0"};
/// The meaning of an absent `cniVersion`.
inline constexpr std::string_view kDefaultVersion = "0.1.0";

/// Orders versions (docs/notes/cni.md#versions): one to three integer parts, missing ones 0, the empty text 0.1.0.
struct VersionNumber {
  std::int64_t major = 0, minor = 0, micro = 0;
  friend auto operator<=>(const VersionNumber&, const VersionNumber&) = default;
};
/// Error: invalid_argument with the reference's text, e.g. `invalid version "1.2.3.4": too many parts`.
[[nodiscard]] Result<VersionNumber> parse_version(std::string_view text);

/// Details of "incompatible CNI versions": `config is "0.3.2", plugin supports ["0.1.0" "0.2.0"]`.
[[nodiscard]] std::string incompatible_details(std::string_view config, std::span<const std::string_view> supported);

/// The answer to VERSION, one line with its newline: `{"cniVersion":"1.1.0","supportedVersions":[...]}`.
[[nodiscard]] std::string print_versions(std::span<const std::string_view> supported);

/// A text without these characters at both ends.
[[nodiscard]] std::string_view trimmed(std::string_view text, std::string_view blanks = " \t");

/// The longest CNI_ARGS that is read; Linux passes no longer environment string anyway.
inline constexpr std::size_t kArgsBytesMax = std::size_t{128} << 10;

/// Keys that Kubernetes runtimes send.
inline constexpr std::string_view kPodNameArg = "K8S_POD_NAME";
inline constexpr std::string_view kPodNamespaceArg = "K8S_POD_NAMESPACE";
inline constexpr std::string_view kPodInfraContainerArg = "K8S_POD_INFRA_CONTAINER_ID";
inline constexpr std::string_view kPodUidArg = "K8S_POD_UID";

/// The keys each personality knows besides IgnoreUnknown, which all know.
inline constexpr std::array<std::string_view, 5> kCroftArgKeys = {"IP", kPodNameArg, kPodNamespaceArg,
                                                                  kPodInfraContainerArg, kPodUidArg};
inline constexpr std::array<std::string_view, 1> kHostLocalArgKeys = {"IP"};

/// CNI_ARGS, read.
struct Args {
  bool ignore_unknown = false;
  std::vector<net::Address> ips;  ///< of IP, as listed
  /// The values of the known keys other than IP and IgnoreUnknown.
  std::map<std::string, std::string, std::less<>> texts;
  friend bool operator==(const Args&, const Args&) = default;
};

/// Reads `KEY=value;KEY=value` by the rules and with the error texts of docs/notes/cni.md#cni-args. Keys are
/// case-sensitive, a repeated key's last value wins, and nothing is trimmed. Unknown keys are an error unless
/// IgnoreUnknown is true anywhere in the text. `IP` is parsed only when `known_keys` has it; it may be a list with
/// commas, as the plugin `static` reads it and Multus sends it. Error: invalid_argument, message beginning with "ARGS:
/// ".
[[nodiscard]] Result<Args> parse_args(std::string_view text, std::span<const std::string_view> known_keys);

/// `<ip>[/<len>]`, the form of requested addresses in every channel (docs/notes/cni.md#conventions). The length is
/// checked and dropped; an IPv4-mapped address is the IPv4 one, as in the reference. nullopt when it is no such text.
[[nodiscard]] std::optional<net::Address> parse_requested_address(std::string_view text);

}  // namespace croft::wire::cni
