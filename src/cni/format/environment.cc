#include "cni/format/environment.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/json/writer.h"
#include "base/letters.h"
#include "base/net/prefix.h"
#include "base/printable.h"
#include "base/text/go_text.h"
#include "base/texts.h"

namespace croft::wire::cni {
namespace {

constexpr Words<Command, 6> kCommands = {{{"ADD", Command::add},
                                          {"DEL", Command::del},
                                          {"CHECK", Command::check},
                                          {"GC", Command::gc},
                                          {"STATUS", Command::status},
                                          {"VERSION", Command::version}}};

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

std::string_view name_of(Command command) { return word_in(kCommands, command); }

std::optional<Command> parse_command(std::string_view word) { return value_in(kCommands, word); }

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
  const auto allowed = [](char c) { return is_alphanumeric(c) || c == '_' || c == '.' || c == '-'; };
  return !text.empty() && is_alphanumeric(text.front()) && std::all_of(text.begin(), text.end(), allowed);
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
                 echo(network_name)};
  }
  const std::size_t room = core::kKeyNameBytesMax - network_name.size() - 1;  // one byte for the dot between
  if (container_id.size() > room) {
    return Error{
        Code::invalid_environment,
        fmt::format("CNI_CONTAINERID is too long: {} bytes, at most {} in this network", container_id.size(), room),
        echo(container_id)};
  }
  return {};
}

std::optional<Error> check_recordable_interface(const std::string& interface_name) {
  if (is_plain_text(interface_name)) return {};
  return Error{Code::invalid_environment, "CNI_IFNAME is not UTF-8 text without control characters",
               echo(interface_name)};
}

namespace {

std::string cut(std::string_view text) {
  if (text.size() <= kErrorTextBytesMax) return std::string(text);
  return std::string(text.substr(0, kErrorTextBytesMax)) + "...";
}

}  // namespace

std::string print_error(const Error& error) {
  JsonWriter out;
  out.begin_object();
  out.integer("code", static_cast<std::int64_t>(error.code));
  out.text("msg", cut(error.msg));
  if (!error.details.empty()) out.text("details", cut(error.details));
  out.end_object();
  return std::move(out).take();
}

namespace {

/// Go's strconv.Atoi: decimal digits with an optional sign, 64 bits.
[[nodiscard]] Result<std::int64_t> part(std::string_view name, std::string_view text) {
  const auto failed = [&](std::string_view why) {
    return fail(ErrorCode::invalid_argument, "failed to convert {} version part {}: strconv.Atoi: parsing {}: {}", name,
                go_quote(text), go_quote(text), why);
  };
  std::string_view digits = text;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  if (digits.size() < text.size() && digits.starts_with('-')) return failed("invalid syntax");
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool all_read = end == digits.data() + digits.size();
  if (error == std::errc::result_out_of_range && all_read) return failed("value out of range");
  if (error != std::errc{} || !all_read) return failed("invalid syntax");
  return value;
}

}  // namespace

Result<VersionNumber> parse_version(std::string_view text) {
  VersionNumber number;
  if (text.empty()) text = kDefaultVersion;
  const auto parts = split(text, '.');
  if (parts.size() > 3) {
    return fail(ErrorCode::invalid_argument, "invalid version {}: too many parts", go_quote(text));
  }
  TRY(number.major, part("major", parts[0]));
  if (parts.size() > 1) {
    TRY(number.minor, part("minor", parts[1]));
  }
  if (parts.size() > 2) {
    TRY(number.micro, part("micro", parts[2]));
  }
  return number;
}

std::string incompatible_details(std::string_view config, std::span<const std::string_view> supported) {
  std::vector<std::string> quoted;
  for (const std::string_view version : supported) quoted.push_back(go_quote(version));
  return fmt::format("config is {}, plugin supports [{}]", go_quote(config), joined(quoted, " "));
}

std::string print_versions(std::span<const std::string_view> supported) {
  JsonWriter out(JsonWriter::Layout::compact);
  out.begin_object();
  out.text("cniVersion", kSupportedVersions.back());
  out.texts("supportedVersions", supported);
  out.end_object();
  return std::move(out).take() + "\n";
}

namespace {

struct Pair {
  std::string_view text, key, value;
};

croft::Error bad_value(const Pair& pair, std::string_view why) {
  return make_error(ErrorCode::invalid_argument, "ARGS: error parsing value of pair {}: {}", go_quote(pair.text), why);
}

[[nodiscard]] Result<Pair> pair_of(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == text.npos || text.find('=', equals + 1) != text.npos) {
    return fail(invalid_argument("ARGS: invalid pair " + go_quote(text)));
  }
  return Pair{text, text.substr(0, equals), text.substr(equals + 1)};
}

[[nodiscard]] Result<void> take_ignore_unknown(const Pair& pair, Args& out) {
  const std::string lower = lowered(std::string(pair.value));
  if (lower != "1" && lower != "true" && lower != "0" && lower != "false") {
    return fail(bad_value(pair, "boolean unmarshal error: invalid input " + lower));
  }
  out.ignore_unknown = lower == "1" || lower == "true";
  return {};
}

[[nodiscard]] Result<void> take_ips(const Pair& pair, Args& out) {
  if (pair.value.empty()) return {};  // unset, as in the reference
  const bool is_list = pair.value.find(',') != pair.value.npos;
  std::vector<net::Address> addresses;
  for (const std::string_view item : split(pair.value, ',')) {
    const auto address = parse_requested_address(is_list ? trimmed(item) : item);
    if (!address) return fail(bad_value(pair, fmt::format("invalid IP address {}", item)));
    addresses.push_back(*address);
  }
  out.ips = std::move(addresses);
  return {};
}

/// False when the key is not known.
[[nodiscard]] Result<bool> take(const Pair& pair, std::span<const std::string_view> known_keys, Args& out) {
  if (pair.key == "IgnoreUnknown") {
    TRY_VOID(take_ignore_unknown(pair, out));
    return true;
  }
  // A field of the reference's own struct that its reader stumbles over.
  if (pair.key == "CommonArgs") {
    return fail(
        invalid_argument("ARGS: cannot unmarshal into field 'CommonArgs' - type '*types.CommonArgs' does not implement "
                         "encoding.TextUnmarshaler"));
  }
  if (std::find(known_keys.begin(), known_keys.end(), pair.key) == known_keys.end()) return false;
  if (pair.key == "IP") {
    TRY_VOID(take_ips(pair, out));
  } else {
    out.texts.insert_or_assign(std::string(pair.key), std::string(pair.value));
  }
  return true;
}

}  // namespace

std::string_view trimmed(std::string_view text, std::string_view blanks) {
  const auto first = text.find_first_not_of(blanks);
  return first == text.npos ? std::string_view() : text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

Result<Args> parse_args(std::string_view text, std::span<const std::string_view> known_keys) {
  if (text.size() > kArgsBytesMax) {
    return fail(ErrorCode::invalid_argument, "ARGS: {} bytes are too many, at most {} are read", text.size(),
                kArgsBytesMax);
  }
  Args args;
  if (text.empty()) return args;
  std::vector<std::string> unknown;
  for (const std::string_view one : split(text, ';')) {
    TRY(const Pair pair, pair_of(one));
    TRY(const bool known, take(pair, known_keys, args));
    if (!known) unknown.push_back(go_quote(pair.text));
  }
  if (!unknown.empty() && !args.ignore_unknown) {
    return fail(ErrorCode::invalid_argument, "ARGS: unknown args [{}]", joined(unknown, " "));
  }
  return args;
}

std::optional<net::Address> parse_requested_address(std::string_view text) {
  if (text.find('/') == text.npos) {
    const auto address = net::parse_address(text);
    return address ? std::optional(address->unmapped()) : std::nullopt;
  }
  const auto with_length = net::AddressWithLength::parse(text);
  if (!with_length) return {};
  return with_length->address.unmapped();
}

}  // namespace croft::wire::cni
