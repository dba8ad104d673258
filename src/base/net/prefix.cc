#include "base/net/prefix.h"

#include <fmt/format.h>

#include "base/net/cidr_text.h"
#include "base/net/echo.h"

namespace croft::net {

Result<Prefix> Prefix::parse(std::string_view text) {
  TRY(const AddressWithLength cidr, parse_cidr("prefix", text));
  if (const auto prefix = from(cidr.address, cidr.length)) return *prefix;
  return fail(ErrorCode::invalid_argument, fmt::format("invalid prefix {}: host bits are set; the network is {}",
                                                       echo(text), cidr.network().to_string()));
}

std::string Prefix::to_string() const { return AddressWithLength{address_, length_}.to_string(); }

}  // namespace croft::net
