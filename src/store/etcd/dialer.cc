#include "store/etcd/dialer.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace croft::store::etcd {

Result<std::shared_ptr<os::GrpcChannel>> Dialer::dial_one(const os::Endpoint& endpoint, bool ready, Deadline deadline) {
  ++dials_;
  os::GrpcOptions options;
  options.http2.settings_timeout = options_.dial_timeout;
  options.message_bytes_max = options_.response_bytes_max;
  TRY(auto channel, os::GrpcChannel::connect(endpoint, options_.security.get(), options, clock_, deadline));
  if (ready) TRY_VOID(channel->wait_until_ready(deadline));
  return channel;
}

void Dialer::set_aside(std::size_t member) {
  const std::lock_guard lock(mutex_);
  aside_until_[member] = clock_.now().since_boot + kAside;
}

std::vector<std::size_t> Dialer::order_from(std::size_t first, const Instant& now) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < endpoints_.size(); ++i) order.push_back((first + i) % endpoints_.size());
  const std::lock_guard lock(mutex_);
  std::stable_partition(order.begin(), order.end(),
                        [&](std::size_t member) { return aside_until_[member] <= now.since_boot; });
  return order;
}

Result<Dialer::Dialed> Dialer::dial(std::size_t first, bool ready, Deadline deadline) {
  ErrorCode code = ErrorCode::unavailable;
  std::string reasons;
  for (const std::size_t member : order_from(first, clock_.now())) {
    const Instant now = clock_.now();
    if (deadline.passed(now)) {
      return fail(ErrorCode::deadline_exceeded, "no member of etcd could be reached in time" + reasons);
    }
    auto channel = dial_one(endpoints_[member], ready, earlier(deadline, Deadline::after(now, options_.dial_timeout)));
    if (channel) return Dialed{*std::move(channel), member};
    reasons += fmt::format("{}{}", reasons.empty() ? ": " : "; ", channel.error().message);
    // A file that is missing may be on its way: certificates are renewed while plugins run.
    const bool passes = is_transient(channel.error().code) || channel.error().code == ErrorCode::not_found;
    if (!passes) code = channel.error().code;
  }
  return fail(code, "no member of etcd can be reached" + reasons);
}

}  // namespace croft::store::etcd
