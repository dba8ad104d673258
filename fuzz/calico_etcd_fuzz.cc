// Calico's keys and records in etcd.
//
// Input: the first byte says what the rest is. `k` a key; `b` a line with a block's CIDR, then its record; `a` the
// record of an affinity, `h` of a handle, `c` of the IPAM configuration; `p`, `r` and `n` a line with a name, then the
// record of a pool, a reservation or a node of that name; `B` what Croft keeps beside a pool, `C` beside a block.
//
// Checked: nothing crashes; errors are of the codes they may be of; a key that was read is printed the same, and again
// after the way through the store's own key; a record that was read, written and read again is the same and is written
// the same; a block is read the same in both ways there are.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "calico/etcd.h"
#include "calico/resources.h"

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
  // With white space in front a block is read in the general way, without it perhaps in the short one.
  const std::string spaced = " " + std::string(bytes.substr(std::min(end + 1, bytes.size())));
  const auto generally = decode_block(key, spaced);
  const auto perhaps_short = decode_block(key, std::string_view(spaced).substr(1));
  CROFT_ASSERT(generally.has_value() == perhaps_short.has_value() && (!generally || *generally == *perhaps_short));
  try_record(bytes.substr(std::min(end + 1, bytes.size())), [&](std::string_view b) { return decode_block(key, b); });
}

/// `decode` reads a name and bytes into a Result.
template <class Decode>
void try_resource(std::string_view bytes, Decode decode) {
  const auto end = std::min(bytes.find('\n'), bytes.size());
  const std::string name(bytes.substr(0, end));
  try_record(bytes.substr(std::min(end + 1, bytes.size())), [&](std::string_view b) { return decode(name, b); });
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
    case 'p':
      try_resource(rest, [](const std::string& name, std::string_view b) {
        auto record = decode_pool(name, b);
        if (record) {
          CROFT_ASSERT(record->pool.block_length >= record->pool.cidr.length());
          CROFT_ASSERT(!record->rest.block_size_too_large || !record->unallocatable().empty());
        }
        return record;
      });
      break;
    case 'r':
      try_resource(rest, decode_reservation);
      break;
    case 'B':
      if (const auto beside = croft::wire::decode_pool_beside("pool", rest)) {
        const std::string written = croft::wire::encode_pool_beside(*beside);
        CROFT_ASSERT(croft::wire::encode_pool_beside(*croft::wire::decode_pool_beside("pool", written)) == written);
      }
      break;
    case 'C':
      if (const auto beside = croft::wire::decode_cooling_beside("block", rest)) {
        const std::string written = croft::wire::encode_cooling_beside(*beside);
        CROFT_ASSERT(croft::wire::encode_cooling_beside(*croft::wire::decode_cooling_beside("block", written)) ==
                     written);
      }
      break;
    case 'n':
      try_resource(rest, decode_node);
      break;
    default:
      break;
  }
  return 0;
}
