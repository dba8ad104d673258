#include "cni/door/personality.h"

#include <fmt/format.h>

#include "base/quoted.h"
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

}  // namespace croft::edge
