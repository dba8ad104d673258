// What a StockService does beside ADDs and DELs, each in a thread for such errands.

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/hex.h"
#include "vpc/door/stock_answers.h"
#include "vpc/door/stock_service.h"
#include "vpc/use/warm_stock.h"

namespace croft::edge {
namespace {

namespace vpc = wire::vpc;
namespace warm = core::warm;
using std::chrono::nanoseconds;

constexpr nanoseconds kRecordMax = std::chrono::seconds{5};

[[nodiscard]] Result<std::optional<net::Address>> address_of(const std::string& text) {
  if (text.empty()) return std::optional<net::Address>();
  TRY(const net::Address address, net::Address::parse(text));
  return std::optional(address);
}

}  // namespace

/// With mutex_ held.
std::deque<StockService::Errand>::iterator StockService::next_of(Lane& lane) {
  return std::ranges::find_if(lane.errands,
                              [&](const Errand& errand) { return !lane.under_way.contains(errand.name); });
}

void StockService::run_errands(Lane& lane) {
  for (;;) {
    Errand errand;
    {
      std::unique_lock lock(mutex_);
      auto next = lane.errands.end();
      lane.comes.wait(lock, [&] {
        next = next_of(lane);
        return next != lane.errands.end() || (stopping_ && lane.errands.empty());
      });
      if (next == lane.errands.end()) return;
      errand = std::move(*next);
      lane.errands.erase(next);
      if (!errand.name.empty()) lane.under_way.insert(errand.name);
    }
    auto answer = errand.run();
    if (!errand.name.empty()) {
      const std::lock_guard lock(mutex_);
      lane.under_way.erase(errand.name);
      lane.comes.notify_all();
    }
    if (!answer) {
      go();  // it is another call's now
      continue;
    }
    std::vector<os::GrpcAnswer> answers;
    answers.push_back(*std::move(answer));
    sink_(std::move(answers));
  }
}

/// What rests on the records alone is done again where the term was over.
template <class Write>
auto StockService::in_new_term(Write write) {
  auto done = write();
  if (done || !warm::is_term_over(done.error())) return done;
  world_.keeper.take_term();
  return write();
}

os::GrpcAnswer StockService::record(os::GrpcCallId call, const core::WarmAddress& told) {
  core::WarmAddress whole = told;
  if (const auto interface = world_.keeper.interface(); interface && whole.mac == net::Mac{})
    whole.mac = interface->mac;
  const auto recorded = in_new_term(
      [&] { return engine::record_in_stock(direct(Deadline::after(world_.clock.now(), kRecordMax)), whole, writer_); });
  if (!recorded) {
    return answer_of(call, vpc::Method::add_pod_network_record, vpc::Failure::record_not_written, recorded.error());
  }
  return ok(call, vpc::CodeAnswer{});
}

os::GrpcAnswer StockService::forget(os::GrpcCallId call, const vpc::RecordKey& key) {
  const warm::Release release{{"", key.sandbox_id, ""}, {key.pod_name, key.pod_namespace, ""}, {}, {}};
  const auto gone = in_new_term([&] {
    return engine::forget_in_stock(direct(Deadline::after(world_.clock.now(), kRecordMax)), release, writer_);
  });
  if (!gone) {
    return answer_of(call, vpc::Method::del_pod_network_record, vpc::Failure::record_not_written, gone.error());
  }
  for (const core::WarmAddress& one : *gone) {
    if (!world_.log) break;
    world_.log(fmt::format("DelPodNetworkRecord pod={}/{} container={}: {} is not the stock's any more",
                           key.pod_namespace, key.pod_name, key.sandbox_id, one.address.to_string()));
  }
  return ok(call, vpc::CodeAnswer{});
}

os::GrpcAnswer StockService::get_record(os::GrpcCallId call, const vpc::RecordKey& key) {
  const auto view = engine::view_stock(cached());
  if (!view) return answer_of(call, vpc::Method::get_pod_network_record, vpc::Failure::record_unreadable, view.error());
  const auto found = std::ranges::find_if(view->addresses, [&](const core::WarmAddress& one) {
    // What was taken in from the pod's status has no container.
    const bool is_of_sandbox = one.owner.container_id == key.sandbox_id || one.owner.container_id.empty();
    return one.state == core::WarmState::held && is_of_sandbox && one.pod.name == key.pod_name &&
           one.pod.namespace_name == key.pod_namespace;
  });
  vpc::NetworkAnswer answer;
  if (found != view->addresses.end()) answer.network = vpc::pod_network_of(*found);
  return ok(call, answer);
}

os::GrpcAnswer StockService::list_records(os::GrpcCallId call) {
  const auto view = engine::view_stock(cached());
  if (!view)
    return answer_of(call, vpc::Method::list_pod_network_record, vpc::Failure::record_unreadable, view.error());
  vpc::NetworksAnswer answer;
  for (const core::WarmAddress& one : view->addresses) {
    if (one.state == core::WarmState::held) answer.networks.push_back(vpc::pod_network_of(one));
  }
  return ok(call, answer);
}

os::GrpcAnswer StockService::describe(os::GrpcCallId call) {
  const auto view = engine::view_stock(cached());
  if (!view) return answer_of(call, vpc::Method::describe_pool, vpc::Failure::stock_unreadable, view.error());
  const Instant now = world_.clock.now();
  vpc::StockAnswer answer;
  for (const core::WarmAddress& one : view->addresses) {
    if (core::is_free_at(one, now)) {
      answer.pool.push_back(vpc::pod_network_of(one));
    } else if (one.state == core::WarmState::cooling && one.doubts.empty()) {
      answer.cooldown.push_back(vpc::pod_network_of(one));
    }
  }
  return ok(call, answer);
}

os::GrpcAnswer StockService::show(os::GrpcCallId call) {
  if (!world_.show) return {call, os::GrpcCode::unimplemented, "this agent shows nothing", {}};
  std::deque<StockHeard> heard;
  {
    const std::lock_guard lock(mutex_);
    heard = heard_;
  }
  const auto answer = world_.show(std::move(heard));
  if (!answer) return {call, os::GrpcCode::unavailable, answer.error().message, {}};
  return ok(call, *answer);
}

os::GrpcAnswer StockService::borrow(os::GrpcCallId call, const vpc::BorrowRequest& request,
                                    const std::string& certified, Deadline limit) {
  const auto mac = net::Mac::parse(request.mac);
  if (!mac) {
    return answer_of(call, vpc::Method::borrow_ip, vpc::Failure::missing_parameter,
                     request.mac.empty() ? invalid_argument("MacAddr is missing") : mac.error());
  }
  const auto wanted = address_of(request.ip);
  if (!wanted) return malformed(call, wanted.error());
  if (wanted->has_value() && request.kept_for.empty()) return malformed(call, invalid_argument("KeptFor is missing"));
  warm::Lend lend{request.request, *mac, request.subnet, *wanted, request.kept_for, request.is_named, certified};
  if (lend.request.empty()) {
    // An older borrower has no name for its request: each is another one.
    std::array<std::uint8_t, 8> bytes{};
    const std::uint64_t number = world_.random.next();
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(number >> (8 * i));
    lend.request = hex_of(bytes);
  }
  const auto lent = world_.keeper.lend(lend, limit);
  heard("BorrowIP",
        request.node.empty() ? mac->to_string() : fmt::format("node {}, {}", request.node, mac->to_string()),
        lent ? "ok, " + lent->address.to_string() : "failed: " + lent.error().message);
  if (!lent) {
    // The borrower has to know whether it may be his already.
    if (lent.error().code == ErrorCode::unknown_outcome) {
      return {call, os::GrpcCode::deadline_exceeded, lent.error().message, {}};
    }
    if (lent.error().code == ErrorCode::exhausted) {
      return {call, os::GrpcCode::resource_exhausted, lent.error().message, {}};
    }
    if (lent.error().code == ErrorCode::permission_denied) {
      return {call, os::GrpcCode::permission_denied, lent.error().message, {}};
    }
    // Surely nothing was moved.
    if (lent.error().code == ErrorCode::conflict) return {call, os::GrpcCode::aborted, lent.error().message, {}};
    if (lent.error().code == ErrorCode::not_found && lend.address) {
      return {call, os::GrpcCode::not_found, lent.error().message, {}};
    }
    return answer_of(call, vpc::Method::borrow_ip, vpc::Failure::not_lent, lent.error());
  }
  vpc::PodNetwork network = vpc::pod_network_of(*lent);
  return ok(call, vpc::NetworkAnswer{vpc::CniCode::success, std::move(network)});
}

os::GrpcAnswer StockService::push(os::GrpcCallId call, const std::string& ip, Deadline limit) {
  const auto address = address_of(ip);
  if (!address) return malformed(call, address.error());
  const auto pushed = world_.keeper.push(*address, limit);
  if (!pushed) return answer_of(call, vpc::Method::push_pool, vpc::Failure::cloud_failed, pushed.error());
  return ok(call, vpc::NetworkAnswer{vpc::CniCode::success, vpc::pod_network_of(*pushed)});
}

os::GrpcAnswer StockService::pop(os::GrpcCallId call, const std::string& ip, Deadline limit) {
  const auto address = address_of(ip);
  if (!address) return malformed(call, address.error());
  const auto popped = world_.keeper.pop(*address, limit);
  if (!popped) {
    const bool is_absent = popped.error().code == ErrorCode::not_found;
    return answer_of(call, vpc::Method::pop_pool, is_absent ? vpc::Failure::not_in_stock : vpc::Failure::not_given_back,
                     popped.error());
  }
  return ok(call, vpc::NetworkAnswer{vpc::CniCode::success, vpc::pod_network_of(*popped)});
}

os::GrpcAnswer StockService::list_unused(os::GrpcCallId call, Deadline limit) {
  const auto unused = world_.keeper.unused(limit);
  if (!unused) return answer_of(call, vpc::Method::list_unuse, vpc::Failure::cloud_failed, unused.error());
  vpc::NetworksAnswer answer;
  for (const core::WarmAddress& one : *unused) answer.networks.push_back(vpc::pod_network_of(one));
  return ok(call, answer);
}

os::GrpcAnswer StockService::release(os::GrpcCallId call, const std::vector<std::string>& ips, Deadline limit) {
  std::vector<net::Address> addresses;
  for (const std::string& ip : ips) {
    const auto address = net::Address::parse(ip);
    if (!address) return malformed(call, address.error());
    addresses.push_back(*address);
  }
  const auto released = world_.keeper.release_unused(addresses, limit);
  if (!released) return answer_of(call, vpc::Method::release_ip, vpc::Failure::in_use, released.error());
  return ok(call, vpc::CodeAnswer{});
}

}  // namespace croft::edge
