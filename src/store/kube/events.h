#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "base/result.h"
#include "register/owner.h"
#include "store/kube/api.h"

namespace croft::store::kube {

/// The subject of an Event.
struct Regarding {
  std::string_view api_version = "v1";
  std::string_view kind;   ///< "Pod"
  std::string name_space;  ///< empty: it is in none
  std::string name;
  std::string uid;  ///< empty: not known
};

/// Tells by Events of core/v1 what happens to pods, nodes and Services. It has a thread of its own, so that nothing
/// waits for it. An Event that can't be sent is dropped, for it is in a log too. Safe to use from several threads.
class Events {
 public:
  struct Options {
    std::string component = "croft-agent";
    std::string node;
    std::chrono::nanoseconds interval = std::chrono::minutes(1);  ///< between two of one reason about one object
  };
  static constexpr std::chrono::seconds kRequestTime{5};

  /// `clock` and `random` must outlive it.
  Events(std::unique_ptr<Api> api, const Clock& clock, Random& random, Options options);
  /// Sends nothing more; waits for the request under way.
  ~Events();
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  enum class Type : std::uint8_t { normal, warning };
  /// `reason` and `action` are words in CamelCase; `action` may be empty. A long message is cut.
  struct Told {
    Type type = Type::warning;
    std::string reason, action, message;
  };
  /// Nothing comes of it where the object has no name, within the interval, or when too many wait.
  void tell(Regarding about, Told told);
  /// Why a pod has no address; nothing where it has no name or namespace.
  void tell_of_refusal(const core::PodIdentity& pod, const Error& why);

  /// Why the API did not take the last one; empty: it did.
  [[nodiscard]] std::string trouble() const;

 private:
  struct Waiting {
    Regarding about;
    Told told;
    WallTime at;
  };
  void run();
  [[nodiscard]] Result<void> send(const Waiting& waiting);

  const std::unique_ptr<Api> api_;
  const Clock& clock_;
  Random& random_;
  const Options options_;
  mutable std::mutex mutex_;  ///< guards all below
  std::condition_variable wake_;
  bool stopping_ = false;
  std::deque<Waiting> waiting_;
  std::map<std::string, std::chrono::nanoseconds> told_since_boot_;  ///< by what it is about
  std::string trouble_;
  std::thread thread_;
};

}  // namespace croft::store::kube
