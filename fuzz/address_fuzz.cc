// Reads any bytes as an address, a prefix and an address with length. Checked: nothing crashes; addresses are accepted
// exactly when inet_pton accepts them, with the same value; what is accepted survives printing and reading; the
// constant-expression readers agree with the others; a message stays one short line of printable ASCII.

#include <arpa/inet.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "base/net/address.h"
#include "base/net/prefix.h"

namespace {

using croft::Error;
using croft::Result;
using croft::net::Address;
using croft::net::AddressWithLength;
using croft::net::Family;
using croft::net::Prefix;
using croft::net::U128;

constexpr std::size_t kMessageSizeMax = 400;

void check_message(const Error& error) {
  CROFT_ASSERT(error.code == croft::ErrorCode::invalid_argument);
  CROFT_ASSERT(error.message.size() <= kMessageSizeMax);
  CROFT_ASSERT(std::all_of(error.message.begin(), error.message.end(), [](char c) { return c >= ' ' && c <= '~'; }));
}

Address from_network_bytes(Family family, const unsigned char* bytes) {
  U128 value;
  for (int i = 0; i < bit_length(family) / 8; ++i) value = value << 8 | U128{bytes[i]};
  return Address::from(family, value);
}

/// inet_pton reads up to a NUL byte; a text with one is no address.
std::optional<Address> system_parse(const std::string& text) {
  unsigned char bytes[16];
  if (text.find('\0') != text.npos) return std::nullopt;
  if (inet_pton(AF_INET, text.c_str(), bytes) == 1) return from_network_bytes(Family::v4, bytes);
  if (inet_pton(AF_INET6, text.c_str(), bytes) == 1) return from_network_bytes(Family::v6, bytes);
  return std::nullopt;
}

template <class T>
std::optional<T> value_of(const Result<T>& result) {
  std::optional<T> value;
  if (result) value = *result;
  return value;
}

/// A value, once accepted, reads back from its own text; a refusal has a fit message.
template <class T>
void check_round_trip(const Result<T>& read) {
  if (!read) return check_message(read.error());
  const Result<T> again = T::parse(read->to_string());
  CROFT_ASSERT(again.has_value() && *again == *read);
}

void check_address(const std::string& text) {
  const Result<Address> address = Address::parse(text);
  const std::optional<Address> accepted = value_of(address);
  CROFT_ASSERT(accepted == system_parse(text));
  CROFT_ASSERT(accepted == croft::net::parse_address(text));
  check_round_trip(address);
}

void check_prefix(const std::string& text) {
  const Result<Prefix> prefix = Prefix::parse(text);
  const Result<AddressWithLength> with_length = AddressWithLength::parse(text);
  check_round_trip(prefix);
  check_round_trip(with_length);
  CROFT_ASSERT(value_of(prefix) == croft::net::parse_prefix(text));
  // A prefix is an address with length whose host bits are zero.
  const bool masked = with_length && with_length->network().address() == with_length->address;
  CROFT_ASSERT(prefix.has_value() == masked);
  if (!prefix) return;
  CROFT_ASSERT(*prefix == with_length->network());
  CROFT_ASSERT(prefix->contains(prefix->first()) && prefix->contains(prefix->last()));
  CROFT_ASSERT(!prefix->last().next() || !prefix->contains(*prefix->last().next()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  check_address(text);
  check_prefix(text);
  return 0;
}
