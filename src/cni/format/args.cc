#include "cni/format/args.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/net/address_with_length.h"
#include "base/text/go_text.h"

namespace croft::wire::cni {
namespace {

struct Pair {
  std::string_view text, key, value;
};

Error bad_value(const Pair& pair, std::string_view why) {
  return invalid_argument(fmt::format("ARGS: error parsing value of pair {}: {}", go_quote(pair.text), why));
}

[[nodiscard]] Result<Pair> split(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == text.npos || text.find('=', equals + 1) != text.npos) {
    return fail(invalid_argument("ARGS: invalid pair " + go_quote(text)));
  }
  return Pair{text, text.substr(0, equals), text.substr(equals + 1)};
}

std::string ascii_lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return lower;
}

[[nodiscard]] Result<void> take_ignore_unknown(const Pair& pair, Args& out) {
  const std::string lower = ascii_lower(pair.value);
  if (lower != "1" && lower != "true" && lower != "0" && lower != "false") {
    return fail(bad_value(pair, "boolean unmarshal error: invalid input " + lower));
  }
  out.ignore_unknown = lower == "1" || lower == "true";
  return {};
}

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const auto first = text.find_first_not_of(kBlanks);
  return first == text.npos ? std::string_view() : text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

[[nodiscard]] Result<void> take_ips(const Pair& pair, Args& out) {
  if (pair.value.empty()) return {};  // unset, as in the reference
  const bool is_list = pair.value.find(',') != pair.value.npos;
  std::vector<net::Address> addresses;
  for (std::string_view rest = pair.value;;) {
    const auto comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    const auto address = parse_requested_address(is_list ? without_blanks(item) : item);
    if (!address) return fail(bad_value(pair, fmt::format("invalid IP address {}", item)));
    addresses.push_back(*address);
    if (comma == rest.npos) break;
    rest.remove_prefix(comma + 1);
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

Result<Args> parse_args(std::string_view text, std::span<const std::string_view> known_keys) {
  if (text.size() > kArgsBytesMax) {
    return fail(
        invalid_argument(fmt::format("ARGS: {} bytes are too many, at most {} are read", text.size(), kArgsBytesMax)));
  }
  Args args;
  std::string unknown;
  for (std::string_view rest = text; !text.empty();) {
    const auto semicolon = rest.find(';');
    TRY(const Pair pair, split(rest.substr(0, semicolon)));
    TRY(const bool known, take(pair, known_keys, args));
    if (!known) unknown += (unknown.empty() ? "" : " ") + go_quote(pair.text);
    if (semicolon == rest.npos) break;
    rest.remove_prefix(semicolon + 1);
  }
  if (!unknown.empty() && !args.ignore_unknown) return fail(invalid_argument("ARGS: unknown args [" + unknown + "]"));
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
