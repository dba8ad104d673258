// Reads any bytes as the URL of an etcd. Checked: nothing crashes; a refusal has the right code; what is accepted has
// endpoints.

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/assert.h"
#include "cli/stores/open_store.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto place = croft::app::parse_etcd_url(std::string(data, data + size));
  if (place) {
    CROFT_ASSERT(!place->endpoints.empty());
  } else {
    CROFT_ASSERT(place.error().code == croft::ErrorCode::invalid_argument && !place.error().message.empty());
  }
  return 0;
}
