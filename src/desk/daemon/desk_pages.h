#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "agent/metrics/web_server.h"
#include "base/clock.h"
#include "base/result.h"
#include "desk/door/doorkeeper.h"
#include "desk/use/page_data.h"
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

/// A value that takes long to make: made in a thread of its own when somebody asks and the last one is old, and never
/// when nobody does. Those who ask get the last one meanwhile, unless it is older than twice its age.
template <class T>
class Refreshed {
 public:
  /// `make` runs on that thread. A value is old after `age`, and later where it took long: making it shall take a
  /// twentieth of the time at most. References outlive it.
  Refreshed(const Clock& clock, std::chrono::nanoseconds age, std::function<Result<T>()> make)
      : clock_(clock), age_(age), make_(std::move(make)), thread_([this](const std::stop_token& end) { run(end); }) {}

  struct Seen {
    std::shared_ptr<const T> value;      ///< the last one; null: there is none yet
    std::optional<Error> trouble;        ///< why the last try made none
    std::chrono::nanoseconds made_at{};  ///< since boot: when making `value` began
    bool is_being_made = false;          ///< another one is on its way
  };
  /// Waits for the first one, for another where the last is older than twice its age, or for the failure of that; no
  /// longer than `patience`.
  [[nodiscard]] Seen get(std::chrono::nanoseconds patience) {
    std::unique_lock lock(mutex_);
    const auto now = clock_.now().since_boot;
    if (now >= due_ && !seen_.is_being_made) {
      seen_.is_being_made = true;
      turn_.notify_all();
    }
    turn_.wait_for(lock, patience,
                   [&] { return !seen_.is_being_made || (seen_.value != nullptr && now - seen_.made_at <= 2 * age_); });
    return seen_;
  }

 private:
  static constexpr int kPart = 20;

  void run(const std::stop_token& end) {
    std::unique_lock lock(mutex_);
    while (turn_.wait(lock, end, [this] { return seen_.is_being_made; })) {
      lock.unlock();
      const auto begun = clock_.now().since_boot;
      Result<T> made = try_to_make();
      const auto now = clock_.now().since_boot;
      lock.lock();
      seen_.trouble = made ? std::nullopt : std::optional(made.error());
      if (made) {
        seen_.value = std::make_shared<const T>(*std::move(made));
        seen_.made_at = begun;
      }
      due_ = now + (made ? std::max(age_, (now - begun) * kPart) : age_);
      seen_.is_being_made = false;
      turn_.notify_all();
    }
  }

  [[nodiscard]] Result<T> try_to_make() {
    try {
      return make_();
    } catch (const std::exception& thrown) {
      return fail(ErrorCode::internal, thrown.what());  // no memory, say; the controller goes on
    }
  }

  const Clock& clock_;
  const std::chrono::nanoseconds age_;
  const std::function<Result<T>()> make_;
  std::mutex mutex_;  ///< guards all below
  std::condition_variable_any turn_;
  Seen seen_;
  std::chrono::nanoseconds due_{0};
  std::jthread thread_;  ///< last: it uses the others
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
    std::chrono::nanoseconds page_data_age = std::chrono::seconds(5);
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

  [[nodiscard]] Result<std::shared_ptr<const engine::PageData>> page_data();
  [[nodiscard]] Result<std::shared_ptr<const Checked>> checked();
  [[nodiscard]] std::shared_ptr<const Forecasts> forecasts();

  const Parts parts_;
  std::optional<edge::Doorkeeper> doorkeeper_;
  Refreshed<engine::PageData> page_data_;
  Refreshed<Checked> checked_;
  Refreshed<Forecasts> forecasts_;
};

}  // namespace croft::app
