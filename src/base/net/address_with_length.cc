#include "base/net/address_with_length.h"

#include <fmt/format.h>

#include "base/net/cidr_text.h"

namespace croft::net {

Result<AddressWithLength> AddressWithLength::parse(std::string_view text) {
  return parse_cidr("address with length", text);
}

std::string AddressWithLength::to_string() const {
  return address.is_valid() ? fmt::format("{}/{}", address.to_string(), length) : "invalid";
}

}  // namespace croft::net
