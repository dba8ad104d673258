#include "cni/door/cni_call.h"

#include <charconv>
#include <chrono>
#include <cstdint>

#include <fmt/format.h>

#include "base/printable.h"
#include "cni/error_table.h"

namespace croft::edge {

CniCall::CniCall(const Clock& clock, std::string subject, WriteLine write, Logs logs,
                 const std::optional<CallSoFar>& so_far)
    : write_(std::move(write)), logs_(logs) {
  if (write_) line_.emplace(clock, std::move(subject), so_far ? so_far->began : clock.now());
}

void CniCall::log_success(const std::string& words) const {
  if (line_ && logs_ == Logs::every_outcome) write_(line_->ended("ok", words));
}

void CniCall::log_failure(wire::cni::Code code, const std::string& words) const {
  if (line_) write_(line_->ended("error", fmt::format("cni={} {}", static_cast<int>(code), words)));
}

void CniCall::warn(const std::string& what) const {
  if (line_) write_(line_->ended("warning", "why=" + in_quotes(what)));
}

wire::cni::Error CniCall::cni_error(const Error& error) { return to_cni_error(error); }

std::string attachment_text(const CniRequest& request) {
  using wire::cni::Command;
  if (request.command == Command::gc || request.command == Command::status) return {};
  return fmt::format(" container={} ifname={}", request.environment.container_id, request.environment.interface_name);
}

std::unique_ptr<Agent> AgentDoor::open() const {
  return find && !socket.empty() && socket != kNoAgent ? find(socket) : nullptr;
}

// ---- a call that goes on in the sibling

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
