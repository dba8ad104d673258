#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "http/http1_client.h"
#include "vpc/format/ucloud.h"
#include "vpc/provider.h"

namespace croft::cloud::ucloud {

inline constexpr const char* kDefaultApi = "http://api.service.ucloud.cn";
inline constexpr const char* kDefaultMetadata = "http://100.80.80.80";

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
  std::uint32_t calls_a_second = 20;                   ///< of one action at most; 0: no limit of our own
  std::chrono::nanoseconds call_time{30'000'000'000};  ///< one call of the API, within the deadline
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
