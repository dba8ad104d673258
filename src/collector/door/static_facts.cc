#include "collector/door/static_facts.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/time_text.h"
#include "collector/format/facts.h"
#include "os/files.h"

namespace croft::edge {
namespace {

/// Clocks of two machines differ by so much without anything being wrong. Never more than the facts may be old, by far:
/// what is of the future stays fresh for that much longer.
std::chrono::nanoseconds future_max(std::chrono::nanoseconds age_max) {
  return std::min<std::chrono::nanoseconds>(std::chrono::minutes{1}, age_max / 4);
}

}  // namespace

Result<core::collect::Facts> StaticFacts::facts() {
  core::collect::Facts facts;
  facts.taken_at = clock_.now();
  // Before it is read: what takes its place meanwhile must not lend it its time.
  const auto written = os::modification_time(path_);
  if (!written) return fail(written.error().in("facts " + path_));
  auto bytes = os::read_file(path_, wire::kFactsBytesMax);
  if (!bytes) return fail(bytes.error().in("facts " + path_));
  auto file = wire::parse_facts(*bytes);
  if (!file) return fail(file.error().in("facts " + path_));
  bytes->clear();
  bytes->shrink_to_fit();

  for (const auto& node : file->nodes) facts.add_node(node);
  if (file->pods) {
    facts.set_pods_known();
    for (const auto& pod : *file->pods) facts.add_pod(pod);
  }
  facts.cluster = std::move(file->cluster);
  facts.complete = file->complete;
  if (!file->complete) facts.incomplete_because = path_ + ": complete is not true";
  const WallTime as_of = file->time.value_or(*written);
  // Not by their difference: a time of three hundred years ago has none that fits.
  if (as_of < facts.taken_at.wall - age_max_ || as_of > facts.taken_at.wall + future_max(age_max_)) {
    facts.complete = false;
    facts.incomplete_because =
        fmt::format("{}: {} {}, more than {} s ago or in the future", path_,
                    file->time ? "its time is" : "it says no time and was written", rfc3339_rounded_up(as_of),
                    std::chrono::duration_cast<std::chrono::seconds>(age_max_).count());
  }
  facts.freeze();
  return facts;
}

}  // namespace croft::edge
