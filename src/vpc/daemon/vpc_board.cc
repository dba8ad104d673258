#include "vpc/daemon/vpc_board.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/quoted.h"
#include "http/endpoint.h"

namespace croft::app {
namespace {

constexpr std::chrono::nanoseconds kLookAgain = std::chrono::minutes{10};
/// Each of which somebody else was faster.
constexpr int kTries = 4;
/// Where all of them are.
const std::string kNamespace = "kube-system";

}  // namespace

Result<void> VpcBoard::publish(const cloud::Interface& interface, const Status& status, Deadline deadline) {
  const wire::kube::IpamdRecord record{node_,       address_,   interface.subnet, status.free,
                                       status.high, status.low, status.status};
  if (own_ && own_->record == record && clock_.now().since_boot - own_at_ < kLookAgain) return {};
  // With what was read before the first try needs one request; after a conflict it is read again.
  const bool is_new = own_ && own_->record != record;
  std::optional<Ipamd> before = std::exchange(own_, std::nullopt);
  if (!is_new) before.reset();
  for (int tries = 1;; ++tries) {
    if (!before) {
      TRY(before, stocks_.find(kNamespace, node_, deadline));
    }
    if (before && before->record == record) {
      own_ = std::move(before);
      break;
    }
    auto written = stocks_.write(before, kNamespace, node_, record, deadline);
    if (written) {
      own_ = *std::move(written);
      break;
    }
    const ErrorCode code = written.error().code;
    const bool again = code == ErrorCode::conflict || code == ErrorCode::already_exists || code == ErrorCode::not_found;
    if (!again || tries == kTries) return fail(std::move(written).error());
    before.reset();
  }
  own_at_ = clock_.now().since_boot;
  return {};
}

Result<void> VpcBoard::clean_up(Deadline deadline) {
  // The objects first: whose node comes in between is in the list of nodes.
  TRY(const auto all, stocks_.all(deadline));
  TRY(const std::set<std::string> nodes, store::kube::node_names(api_, deadline));
  std::map<std::string, std::string> absent;
  if (!nodes.contains(node_)) {
    absent_.clear();
    return {};
  }
  std::optional<Error> failed;
  for (const auto& one : all) {
    const std::string& node = one.record.node;
    if (node.empty() || nodes.contains(node)) continue;
    const auto before = absent_.find(one.meta.uid);
    if (before == absent_.end() || before->second != node) {
      absent.emplace(one.meta.uid, node);
      continue;
    }
    const auto removed = stocks_.remove(one.meta, deadline);
    // Changed meanwhile: it is looked at anew.
    if (!removed && removed.error().code != ErrorCode::conflict && !failed) failed = removed.error();
    if (!removed) absent.emplace(one.meta.uid, node);
  }
  absent_ = std::move(absent);
  if (failed) return fail(*std::move(failed));
  return {};
}

/// Each again only after it was right, or away, in between.
void VpcBoard::note_passed_over(std::map<std::string, std::string> passed_over,
                                const std::function<void(const std::string& line)>& tell) {
  const std::lock_guard lock(mutex_);
  for (const auto& [node, address] : passed_over) {
    const auto before = told_.find(node);
    if (tell == nullptr || (before != told_.end() && before->second == address)) continue;
    tell(fmt::format(
        "node {} is not borrowed from: spec.addr of its ipamds object is {}, no numeric ADDRESS:PORT; its agent writes "
        "it anew, or delete the object",
        in_quotes(node), in_quotes(address)));
  }
  told_ = std::move(passed_over);
}

Result<std::vector<engine::PeerAgents::Peer>> VpcBoard::peers(
    const std::string& subnet, Deadline deadline, const std::function<void(const std::string& line)>& tell) {
  TRY(const auto all, stocks_.all(deadline));
  std::vector<engine::PeerAgents::Peer> peers;
  std::map<std::string, std::string> passed_over;
  for (const auto& one : all) {
    const wire::kube::IpamdRecord& record = one.record;
    if (record.node == node_ || record.node.empty() || record.address.empty()) continue;
    if (record.subnet != subnet) continue;
    if (!os::Endpoint::parse_numeric(record.address, true)) {
      passed_over.emplace(record.node, record.address);
      continue;
    }
    const std::int64_t said = record.status == "dry" ? 0 : std::max<std::int64_t>(record.current, 0);
    const auto free = std::min<std::int64_t>(said, std::numeric_limits<std::uint32_t>::max());
    peers.push_back({record.node, record.address, record.subnet, static_cast<std::uint32_t>(free)});
  }
  note_passed_over(std::move(passed_over), tell);
  std::stable_sort(peers.begin(), peers.end(), [](const auto& a, const auto& b) { return a.free > b.free; });
  return peers;
}

}  // namespace croft::app
