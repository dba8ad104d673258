#include "base/text/proto.h"

namespace croft::proto {
namespace {

/// False where its end is missing.
[[nodiscard]] bool take_varint(std::string_view& bytes, std::uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

}  // namespace

bool take_field(std::string_view& bytes, Field& field) {
  std::uint64_t tag = 0;
  if (!take_varint(bytes, tag) || tag >> 3 == 0 || tag >> 32 != 0) return false;
  field.number = static_cast<std::uint32_t>(tag >> 3);
  const unsigned type = tag & 7;
  field.is_varint = type == 0;
  if (field.is_varint) return take_varint(bytes, field.value);
  std::uint64_t length = type == 1 ? 8 : 4;
  if (type == 2 && !take_varint(bytes, length)) return false;
  if ((type != 1 && type != 2 && type != 5) || length > bytes.size()) return false;
  if (type != 2) field.number = 0;
  field.bytes = bytes.substr(0, length);
  bytes.remove_prefix(length);
  return true;
}

void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

}  // namespace croft::proto
