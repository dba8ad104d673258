// Reads any bytes as the collector's file of nodes and pods. Checked: nothing crashes; a refusal says why.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "collector/door/static_facts.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto facts = croft::wire::parse_facts({reinterpret_cast<const char*>(data), size});
  if (!facts) CROFT_ASSERT(!facts.error().message.empty());
  return 0;
}
