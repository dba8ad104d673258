#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/clock.h"
#include "store/kube/api.h"
#include "store/kube/format/event.h"

namespace croft::store::kube {

/// Tells by Events what happens to pods, nodes and Services. From a thread of its own: nobody waits for it, and what
/// can't be sent is dropped, for it is in a log too. Safe to use from several threads.
class Events {
 public:
  struct Options {
    std::string component = "croft-agent";
    std::string node;
    std::chrono::nanoseconds interval = std::chrono::minutes(1);    ///< between two about one object
    bool each_reason = false;                                       ///< the interval is of one object and one reason
    std::chrono::nanoseconds time_limit = std::chrono::seconds(5);  ///< of one request
  };
  /// `clock` and `random` must outlive it.
  Events(std::unique_ptr<Api> api, const Clock& clock, Random& random, Options options);
  /// Sends nothing more; waits for the request under way.
  ~Events();
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  /// What an Event says. `reason` and `action` are words in CamelCase; `action` may be empty.
  struct Told {
    wire::kube::Event::Type type = wire::kube::Event::Type::warning;
    std::string reason, action, message;
  };
  /// Nothing comes of it where the object has no name, within the interval, or when too many wait.
  void tell(wire::kube::Regarding about, Told told);

  struct Counts {
    std::uint64_t sent = 0;
    std::uint64_t dropped = 0;  ///< within the interval, too many, or not taken by the API
    std::string trouble;        ///< why the last one was not taken; empty: it was
  };
  [[nodiscard]] Counts counts() const;

 private:
  struct Waiting {
    wire::kube::Regarding about;
    Told told;
    WallTime at;
  };
  void run();
  void send(const Waiting& waiting);

  const std::unique_ptr<Api> api_;
  const Clock& clock_;
  Random& random_;
  const Options options_;
  mutable std::mutex mutex_;  ///< guards all below
  std::condition_variable wake_;
  bool stopping_ = false;
  std::deque<Waiting> waiting_;
  std::map<std::string, std::chrono::nanoseconds> told_since_boot_;  ///< by what it is about
  Counts counts_;
  std::thread thread_;
};

}  // namespace croft::store::kube
