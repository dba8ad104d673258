#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "http/http1_client.h"
#include "vpc/format/ucloud.h"
#include "vpc/provider.h"

namespace croft::cloud::ucloud {

inline constexpr const char* kDefaultApi = "http://api.service.ucloud.cn";
inline constexpr const char* kDefaultMetadata = "http://100.80.80.80";

/// How fast one action may be asked for.
struct Rate {
  double per_second = 20;            ///< at most; 0 or less: no limit of our own
  double least_per_second = 0.5;     ///< how slow being refused makes it at most
  double recovery_per_second = 0.5;  ///< by how much it grows in each second after that
};

/// Additive increase, multiplicative decrease: each refusal halves the rate, time brings it back. It never sleeps:
/// whoever takes a turn waits as long as it says. Safe to use from several threads.
class Limiter {
 public:
  explicit Limiter(const Rate& rate) : rate_(rate), current_(rate.per_second) {}
  /// Takes the next turn, and tells how long to wait for it. Nothing, and no turn is taken, when it would come at the
  /// deadline or later.
  [[nodiscard]] std::optional<std::chrono::nanoseconds> take(const Instant& now, Deadline deadline);
  /// The cloud refused: half as fast from now on. Refusals within one turn of each other count as one.
  void refused(const Instant& now);
  [[nodiscard]] double per_second(const Instant& now);

 private:
  void recover(const Instant& now);  ///< with the mutex

  const Rate rate_;
  std::mutex mutex_;
  double current_;  ///< guarded by mutex_, as all below
  std::optional<std::chrono::nanoseconds> refused_at_;
  std::chrono::nanoseconds looked_at_{0};
  std::chrono::nanoseconds next_{0};
};

/// All that cannot be learned of the machine itself. Its bytes: docs/formats/ucloud.md.
struct Options {
  wire::Url api;
  wire::Url metadata;
  os::Http1Options http;  ///< for both
  /// Used when the metadata give no credentials (keys_of_environment); may be empty.
  wire::ucloud::Keys keys;
  std::string role = "Uk8sServiceCharacter";
  /// In place of what the metadata do not say; each may be empty.
  std::string region, project, vpc, subnet;
  Rate rate;                                           ///< of each action
  std::chrono::nanoseconds call_time{30'000'000'000};  ///< one call of the API, within the deadline
  std::uint32_t batch_max = 32;  ///< the most to ask for in one call; the only bound that is documented is a /27
  /// How to wait for a turn; empty: the thread sleeps.
  std::function<void(std::chrono::nanoseconds)> sleep;
  /// One line for people, from any thread; may be empty.
  std::function<void(const std::string& line)> log;
};

/// Keys of UCLOUD_API_PUBKEY and UCLOUD_API_PRIKEY, or of UCLOUD_ACCESS_PUBKEY and UCLOUD_ACCESS_PRIKEY. Empty ones
/// when a pair is not whole.
[[nodiscard]] wire::ucloud::Keys keys_of_environment(const std::map<std::string, std::string>& environment);

/// UCloud. Nothing is asked before the first call. `clock` must outlive it.
[[nodiscard]] std::unique_ptr<Provider> make_ucloud(Options options, const Clock& clock);

}  // namespace croft::cloud::ucloud
