#include "base/net/prefix.h"

#include <fmt/format.h>

#include "base/net/echo.h"

namespace croft::net {
namespace {

/// Reads "<address>/<length>", host bits allowed, the length within the family. `what` begins the error message:
/// `invalid <what> "<text>": <reason>`.
[[nodiscard]] Result<AddressWithLength> parse_cidr(std::string_view what, std::string_view text) {
  const auto refuse = [&](std::string reason) {
    return fail(ErrorCode::invalid_argument, fmt::format("invalid {} {}: {}", what, echo(text), reason));
  };
  const std::size_t slash = text.rfind('/');
  if (slash == text.npos) return refuse("no \"/<length>\" at the end");

  const AddressScan scan = scan_address(text.substr(0, slash));
  if (!scan.ok()) {
    return refuse(fmt::format("{} (at {})", scan.reason, echo(text.substr(scan.stopped_at))));
  }
  const std::string_view length_text = text.substr(slash + 1);
  const auto length = parse_prefix_length(length_text);
  if (!length || *length > bit_length(scan.family)) {
    return refuse(
        fmt::format("the length of an {} prefix is a decimal number from 0 to {} without leading zeros, not {}",
                    name_of(scan.family), bit_length(scan.family), echo(length_text)));
  }
  return AddressWithLength{Address::from(scan.family, scan.value), *length};
}

}  // namespace

Result<Prefix> Prefix::parse(std::string_view text) {
  TRY(const AddressWithLength cidr, parse_cidr("prefix", text));
  if (const auto prefix = from(cidr.address, cidr.length)) return *prefix;
  return fail(ErrorCode::invalid_argument, fmt::format("invalid prefix {}: host bits are set; the network is {}",
                                                       echo(text), cidr.network().to_string()));
}

std::string Prefix::to_string() const { return AddressWithLength{address_, length_}.to_string(); }

Result<AddressWithLength> AddressWithLength::parse(std::string_view text) {
  return parse_cidr("address with length", text);
}

std::string AddressWithLength::to_string() const {
  return address.is_valid() ? fmt::format("{}/{}", address.to_string(), length) : "invalid";
}

std::string joined(std::span<const Prefix> prefixes, std::string_view separator) {
  std::string text;
  for (const Prefix& one : prefixes) {
    if (!text.empty()) text += separator;
    text += one.to_string();
  }
  return text;
}

}  // namespace croft::net
