// Reads any bytes as each of the answers of a Kubernetes API server, and as the body of a watch in pieces whose size
// the first byte says. Checked: nothing crashes; a refusal is damage and says why; what is accepted has what every
// reader relies on; however the body comes, its lines are the same; a Lease that is read can be written, with the same
// record.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "store/kube/format/api.h"
#include "store/kube/leadership.h"

using namespace croft;
using namespace croft::wire::kube;

namespace {

constexpr std::size_t kLineBytesMax = 4096;

template <class T>
bool is_good(const Result<T>& result) {
  if (!result) CROFT_ASSERT(result.error().code == ErrorCode::corrupt && !result.error().message.empty());
  return result.has_value();
}

void check_event(std::string_view line) {
  const auto event = decode_event(line);
  if (!is_good(event)) return;
  CROFT_ASSERT(event->status.has_value() == (event->type == ApiEvent::Type::error));
  CROFT_ASSERT(event->object.has_value() != event->status.has_value());
  if (!event->object) return;
  CROFT_ASSERT(!event->object->meta.resource_version.empty());
  CROFT_ASSERT(event->type == ApiEvent::Type::bookmark || !event->object->meta.name.empty());
}

std::vector<std::string> lines_of(std::string_view text, std::size_t step) {
  WatchLines lines(kLineBytesMax);
  std::vector<std::string> found;
  for (; !text.empty(); text.remove_prefix(std::min(step, text.size()))) {
    lines.add(text.substr(0, step));
    for (;;) {
      const auto line = lines.next();
      if (!is_good(line)) return found;
      if (!*line) break;
      CROFT_ASSERT((*line)->size() <= kLineBytesMax);
      found.emplace_back(**line);
    }
  }
  return found;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(decode_status(text));
  if (const auto object = decode_object(text); is_good(object)) {
    CROFT_ASSERT(!object->meta.name.empty() && !object->meta.resource_version.empty());
  }
  if (const auto page = decode_list(text, {"v1", "Pod"}); is_good(page)) {
    CROFT_ASSERT(!page->resource_version.empty());
    for (const auto item : page->items) is_good(decode_item(item, {"v1", "Pod"}));
  }
  if (const auto lease = store::kube::decode_lease(text); is_good(lease)) {
    const std::string written = store::kube::encode_lease("n", "a", lease->resource_version, lease->record);
    CROFT_ASSERT(store::kube::decode_lease(written).value().record == lease->record);
  }
  if (size == 0) return 0;
  const auto whole = lines_of(text, text.size());
  CROFT_ASSERT(lines_of(text, 1U + data[0]) == whole);
  for (const std::string& line : whole) check_event(line);
  return 0;
}
