#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "agent/metrics/web_server.h"
#include "base/clock.h"
#include "desk/daemon/refreshed.h"
#include "desk/door/doorkeeper.h"
#include "desk/use/scene.h"
#include "history/decide/forecast.h"
#include "ipam/audit/findings.h"
#include "ipam/use/transact.h"

namespace croft::app {

/// A file of src/desk/page, which the program carries.
struct DeskAsset {
  std::string_view path, type, content;
};
[[nodiscard]] std::span<const DeskAsset> desk_assets();

/// The findings of a check, and what it could not look at.
struct DeskFindings {
  WallTime checked{};
  std::vector<core::audit::Finding> findings;
  std::vector<net::Address> gone{};  ///< all whose pods or nodes are not there any more
  std::vector<std::string> notes{};
};

/// The page and what it asks for (docs/desk.md). Answers from what was read last; nothing that is asked here writes.
class DeskPages {
 public:
  struct Parts {
    engine::Context context;                         ///< of a store that refuses writes
    std::string store;                               ///< its URL, for people
    std::function<Result<DeskFindings>()> check;     ///< runs on a thread of its own
    std::optional<edge::Doorkeeper::Judge> judge{};  ///< absent: whoever asks on this machine is welcome
    std::string history{};                           ///< its file; empty: there is none
    std::chrono::nanoseconds scene_age = std::chrono::seconds(5);
    std::chrono::nanoseconds check_age = std::chrono::minutes(1);
  };
  /// References in the parts outlive it.
  explicit DeskPages(Parts parts);
  ~DeskPages();

  /// For WebServer::start.
  [[nodiscard]] edge::WebAnswer answer(const edge::WebRequest& request);

 private:
  class Query;
  using Json = nlohmann::ordered_json;
  /// A check, as its findings are answered.
  struct Checked {
    std::string at, answer;
    std::vector<net::Address> gone;
  };
  /// By pool.
  using Forecasts = std::map<std::string, core::history::Forecast>;
  using Route = Result<Json> (DeskPages::*)(const Query& query);

  [[nodiscard]] Result<Checked> check() const;
  [[nodiscard]] edge::WebAnswer answer_with(const edge::WebRequest& request);
  [[nodiscard]] std::optional<edge::WebAnswer> refusal(const edge::WebRequest& request);
  [[nodiscard]] Result<Json> overview(const Query& query);
  [[nodiscard]] Result<Json> map(const Query& query);
  [[nodiscard]] Result<Json> who(const Query& query);
  [[nodiscard]] Result<Json> nodes(const Query& query);
  [[nodiscard]] Result<Json> blocks(const Query& query);
  [[nodiscard]] Result<Json> reliefs(const Query& query);
  [[nodiscard]] Result<Json> explain(const Query& query);

  [[nodiscard]] Result<std::shared_ptr<const engine::Scene>> scene();
  [[nodiscard]] Result<std::shared_ptr<const Checked>> checked();
  [[nodiscard]] std::shared_ptr<const Forecasts> forecasts();

  const Parts parts_;
  std::optional<edge::Doorkeeper> doorkeeper_;
  Refreshed<engine::Scene> scene_;
  Refreshed<Checked> checked_;
  Refreshed<Forecasts> forecasts_;
};

}  // namespace croft::app
