// Records of Croft's own stores, in canonical JSON.
//
// Input: the first byte is the number of the kind as it is stored; a line with the name; then the bytes.
//
// Checked: nothing crashes; a refusal is corrupt or newer_version and says why; what is accepted is written again byte
// for byte, as there is one way to write a value.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "register/format/records.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using croft::ErrorCode;
  if (size == 0) return 0;
  const auto kind = croft::wire::kind_numbered(data[0]);
  if (!kind) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t end = std::min(rest.find('\n'), rest.size());
  const std::string_view bytes = rest.substr(std::min(end + 1, rest.size()));
  const auto value = croft::wire::decode_record({*kind, std::string(rest.substr(0, end))}, bytes);
  if (!value) {
    const croft::Error& error = value.error();
    CROFT_ASSERT(error.code == ErrorCode::corrupt || error.code == ErrorCode::newer_version);
    CROFT_ASSERT(!error.message.empty());
    return 0;
  }
  CROFT_ASSERT(croft::core::kind_of(*value) == *kind);
  CROFT_ASSERT(croft::wire::encode_record(*value) == bytes);
  return 0;
}
