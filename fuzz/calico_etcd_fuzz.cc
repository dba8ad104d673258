// Calico's keys and records in etcd.
//
// Input: the first byte says what the rest is. `k` a key; `b` a line with a block's CIDR, then its record; `a` the
// record of an affinity, `h` of a handle, `c` of the IPAM configuration.
//
// Checked: nothing crashes; errors are of the codes they may be of; a key that was read is printed the same, and again
// after the way through the store's own key; a record that was read, written and read again is the same and is written
// the same.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "wire/calico_etcd.h"

namespace {

using croft::ErrorCode;
using croft::net::Prefix;
using namespace croft::wire::calico;

void try_key(std::string_view text) {
  const auto key = parse_key(text);
  if (!key) {
    CROFT_ASSERT(key.error().code == ErrorCode::corrupt || key.error().code == ErrorCode::not_found);
    return;
  }
  CROFT_ASSERT(print_key(*key) == std::string(text));
  const auto record = record_of(*key);
  if (record) CROFT_ASSERT(key_of(*record) == *key);
}

/// `decode` reads bytes into a Result.
template <class Decode>
void try_record(std::string_view bytes, Decode decode) {
  const auto record = decode(bytes);
  if (!record) {
    CROFT_ASSERT(record.error().code == ErrorCode::corrupt && !record.error().message.empty());
    return;
  }
  const std::string written = encode(*record);
  const auto again = decode(written);
  CROFT_ASSERT(again && encode(*again) == written);
}

void try_block(std::string_view bytes) {
  const auto end = std::min(bytes.find('\n'), bytes.size());
  const auto cidr = Prefix::parse(bytes.substr(0, end));
  if (!cidr) return;
  const BlockKey key{*cidr};
  try_record(bytes.substr(std::min(end + 1, bytes.size())), [&](std::string_view b) { return decode_block(key, b); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'k':
      try_key(rest);
      break;
    case 'b':
      try_block(rest);
      break;
    case 'a':
      try_record(rest, [](std::string_view b) {
        return decode_affinity({{croft::core::AffinityOwner::Type::host, "node-a"}, Prefix()}, b);
      });
      break;
    case 'h':
      try_record(rest, [](std::string_view b) { return decode_handle({"network.container"}, b); });
      break;
    case 'c':
      try_record(rest, decode_ipam_config);
      break;
    default:
      break;
  }
  return 0;
}
