#include "cni/door/call_so_far.h"

#include <charconv>
#include <chrono>
#include <cstdint>

#include <fmt/format.h>

namespace croft::edge {
namespace {

/// Another order of the members is another one.
constexpr std::int64_t kVersion = 2;

/// The number in front of the next blank, which goes too.
[[nodiscard]] std::optional<std::int64_t> take_number(std::string_view& text) {
  std::int64_t number = 0;
  const auto [end, trouble] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (trouble != std::errc() || end == text.data() + text.size() || *end != ' ') return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return number;
}

}  // namespace

std::string encode_call_so_far(const CallSoFar& call) {
  const auto wall = std::chrono::nanoseconds(call.began.wall.time_since_epoch()).count();
  return fmt::format("{} {} {} {}", kVersion, std::chrono::nanoseconds(call.began.since_boot).count(), wall,
                     call.agent_said);
}

std::optional<CallSoFar> parse_call_so_far(std::string_view text) {
  if (take_number(text) != kVersion) return std::nullopt;
  const auto since_boot = take_number(text);
  const auto wall = since_boot ? take_number(text) : std::nullopt;
  if (!wall) return std::nullopt;
  CallSoFar call;
  call.began.since_boot = std::chrono::nanoseconds(*since_boot);
  call.began.wall = decltype(call.began.wall)(std::chrono::nanoseconds(*wall));
  call.agent_said = text;
  return call;
}

}  // namespace croft::edge
