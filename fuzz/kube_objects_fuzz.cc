// Kubernetes' objects in etcd.
//
// Input: the first byte says what the rest is. `r` a RangeAllocation, `s` a Service, `c` a ServiceCIDR; of
// the last two the names are those of the corpus.
//
// Checked: nothing crashes; errors are of the codes they may be of and have a text; a range allocation that was read,
// written and read again is the same and is written the same, also with other bits.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "services/format/kubernetes_objects.h"

namespace {

using croft::ErrorCode;
using namespace croft::wire::kube;

template <class T>
bool is_read(const croft::Result<T>& result) {
  if (result) return true;
  const ErrorCode code = result.error().code;
  CROFT_ASSERT(code == ErrorCode::corrupt || code == ErrorCode::refused_by_configuration);
  CROFT_ASSERT(!result.error().message.empty());
  return false;
}

void check_rewritten(const croft::core::RangeAllocation& range) {
  const std::string written = encode_range_allocation(range);
  const auto again = decode_range_allocation("place", written);
  CROFT_ASSERT(again && again->range == range.range && again->data == range.data);
  CROFT_ASSERT(encode_range_allocation(*again) == written);
}

void try_range(std::string_view bytes) {
  auto range = decode_range_allocation("place", bytes);
  if (!is_read(range)) return;
  check_rewritten(*range);
  range->data += '\x01';
  range->range = "10.0.0.0/24";
  check_rewritten(*range);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'r':
      try_range(rest);
      break;
    case 's':
      is_read(decode_service("place", {"shop", "front"}, rest));
      break;
    case 'c':
      is_read(decode_service_cidr("place", "kubernetes", rest));
      break;
    default:
      break;
  }
  return 0;
}
