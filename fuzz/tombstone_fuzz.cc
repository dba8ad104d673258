// Reads any bytes as what a DEL left behind. Checked: nothing crashes; a refusal says why; what was read is written and
// read as the same.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "cni/format/tombstone.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto read = croft::wire::decode_tombstone({reinterpret_cast<const char*>(data), size});
  if (!read) {
    CROFT_ASSERT(!read.error().message.empty());
    return 0;
  }
  const auto again = croft::wire::decode_tombstone(croft::wire::encode(*read));
  CROFT_ASSERT(again && *again == *read);
  return 0;
}
