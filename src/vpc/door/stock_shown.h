#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "vpc/format/messages.h"
#include "vpc/use/stock_keeper.h"
#include "vpc/use/warm_stock.h"

// An agent's stock and state, as tables for people (`croft vpc show`). Pure.

namespace croft::edge {

/// One of the last calls that an agent answered.
struct StockHeard {
  std::chrono::nanoseconds at{};  ///< since boot
  std::string call;               ///< "ADD", "BorrowIP"
  std::string who;
  std::string outcome;
};

/// The calls of one action of the cloud.
struct CloudCalls {
  std::uint64_t good = 0, failed = 0;
  std::chrono::nanoseconds last{};       ///< since boot
  std::string last_failure;              ///< empty: there was none
  std::chrono::nanoseconds failed_at{};  ///< since boot
};

struct StockShown {
  std::vector<std::pair<std::string, std::string>> agent;  ///< property and value
  engine::StockView view;
  engine::KeeperOutlook outlook;
  std::map<std::string, CloudCalls> cloud;      ///< by action
  std::vector<engine::PeerAgents::Peer> peers;  ///< as they were last looked for
  std::deque<StockHeard> heard;                 ///< the last one first
};

/// Why no pod gets it; empty: one may, has it, or had it and it cools.
[[nodiscard]] std::string why_aside(const core::WarmAddress& one);
[[nodiscard]] wire::vpc::ShowAnswer shown(const StockShown& all, const Instant& now);

}  // namespace croft::edge
