#include "base/net/address.h"

#include <iterator>

#include <fmt/format.h>

#include "base/net/prefix.h"
#include "base/printable.h"
#include "base/texts.h"

namespace croft::net {
namespace {

constexpr std::size_t kGroups = 8;
using Groups = std::array<unsigned, kGroups>;

/// A run of zero groups: [start, end); empty when there is none worth shortening.
struct ZeroRun {
  std::size_t start = kGroups;
  std::size_t end = kGroups;
};

Groups groups_of(U128 value) {
  Groups groups{};
  for (std::size_t i = 0; i < kGroups; ++i) {
    groups[i] = static_cast<unsigned>((value >> static_cast<int>(16 * (kGroups - 1 - i))).lo & 0xffffU);
  }
  return groups;
}

ZeroRun longest_zero_run(const Groups& groups) {
  ZeroRun best;
  for (std::size_t i = 0; i < kGroups; ++i) {
    std::size_t end = i;
    while (end < kGroups && groups[end] == 0) ++end;
    if (end - i >= 2 && end - i > best.end - best.start) best = {i, end};
    if (end > i) i = end - 1;
  }
  return best;
}

std::string v4_text(std::uint64_t v) {
  return fmt::format("{}.{}.{}.{}", v >> 24, v >> 16 & 0xffU, v >> 8 & 0xffU, v & 0xffU);
}

std::string v6_text(U128 value) {
  const Groups groups = groups_of(value);
  const ZeroRun run = longest_zero_run(groups);
  std::string out;
  for (std::size_t i = 0; i < kGroups; ++i) {
    if (i == run.start) {
      out += "::";
      i = run.end;
      if (i == kGroups) break;
    } else if (i > 0) {
      out += ':';
    }
    fmt::format_to(std::back_inserter(out), "{:x}", groups[i]);
  }
  return out;
}

}  // namespace

Result<Address> Address::parse(std::string_view text) {
  const AddressScan scan = scan_address(text);
  if (scan.ok()) return from(scan.family, scan.value);
  const bool has_more = scan.stopped_at < text.size();
  const std::string at = has_more ? fmt::format(" (at {})", echo(text.substr(scan.stopped_at))) : std::string();
  return fail(ErrorCode::invalid_argument, fmt::format("invalid IP address {}: {}{}", echo(text), scan.reason, at));
}

std::string Address::to_string() const {
  if (!is_valid()) return "invalid";
  return is_v4() ? v4_text(value_.lo) : v6_text(value_);
}

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
  return fmt::format("{}", fmt::join(prefixes, separator));
}

}  // namespace croft::net
