// Calico's keys and records in etcd.
//
// Input: the first byte says what the rest is. `k` a key; `b` a line with a block's CIDR, then its record; `a` the
// record of an affinity, `h` of a handle, `c` of the IPAM configuration; `p`, `r` and `n` a line with a name, then the
// record of a pool, a reservation or a node of that name; `B` what Croft keeps beside a pool, `C` beside a block.
//
// Checked: nothing crashes; errors are of the codes they may be of; a key that was read is either no record's or
// printed the same; a record that was read, written and read again is written the same (Calico's times have no
// fractions, so it need not be the same); a block is read the same in both ways there are.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "calico/etcd_records.h"

namespace {

using croft::ErrorCode;
using croft::net::Prefix;
using namespace croft::core;
using namespace croft::wire::calico;

void try_key(std::string_view text) {
  const auto key = record_at(text);
  if (!key) return;
  const auto place = place_of(*key);
  if (place) CROFT_ASSERT(*place == text);
  if (!place) {
    CROFT_ASSERT(place.error().code == ErrorCode::corrupt || place.error().code == ErrorCode::invalid_argument);
  }
}

/// Nothing where the bytes are no such record.
std::optional<Value> try_record(const Key& key, std::string_view bytes) {
  const auto value = decode_value(key, bytes);
  if (!value) {
    CROFT_ASSERT(value.error().code == ErrorCode::corrupt && !value.error().message.empty());
    return std::nullopt;
  }
  const std::string written = encode_value(*value, {});
  const auto again = decode_value(key, written);
  CROFT_ASSERT(again && encode_value(*again, {}) == written);
  return *value;
}

void try_block(std::string_view bytes) {
  const auto end = std::min(bytes.find('\n'), bytes.size());
  const auto cidr = Prefix::parse(bytes.substr(0, end));
  if (!cidr) return;
  const Key key = block_key(*cidr);
  // With white space in front a block is read in the general way, without it perhaps in the short one.
  const std::string spaced = " " + std::string(bytes.substr(std::min(end + 1, bytes.size())));
  const auto generally = decode_value(key, spaced);
  const auto perhaps_short = decode_value(key, std::string_view(spaced).substr(1));
  CROFT_ASSERT(generally.has_value() == perhaps_short.has_value());
  if (generally) {
    CROFT_ASSERT(without_rest(*generally) == without_rest(*perhaps_short));
    CROFT_ASSERT(encode_value(*generally, {}) == encode_value(*perhaps_short, {}));
  }
  static_cast<void>(try_record(key, std::string_view(spaced).substr(1)));
}

std::optional<Value> try_resource(Kind kind, std::string_view bytes) {
  const auto end = std::min(bytes.find('\n'), bytes.size());
  return try_record({kind, std::string(bytes.substr(0, end))}, bytes.substr(std::min(end + 1, bytes.size())));
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
      static_cast<void>(try_record({Kind::affinity, "host/node-a/ipv4/10.0.0.0/26"}, rest));
      break;
    case 'h':
      static_cast<void>(try_record(handle_key("network.container"), rest));
      break;
    case 'c':
      static_cast<void>(try_record(ipam_config_key(), rest));
      break;
    case 'p':
      if (const auto value = try_resource(Kind::pool, rest)) {
        const auto& pool = std::get<Pool>(*value);
        CROFT_ASSERT(pool.block_length >= pool.cidr.length());
      }
      break;
    case 'r':
      static_cast<void>(try_resource(Kind::reservation, rest));
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
      static_cast<void>(try_resource(Kind::node, rest));
      break;
    default:
      break;
  }
  return 0;
}
