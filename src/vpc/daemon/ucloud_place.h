#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "http/http1_client.h"
#include "vpc/provider.h"

namespace croft::app {

/// Where UCloud is, and what it is told that its metadata do not say; all of it may be empty.
struct UCloudPlace {
  std::string api;       ///< URL; empty: UCloud's own inside a VPC
  std::string metadata;  ///< URL; empty: UCloud's own
  std::string region, project, vpc, subnet;
  /// Variables by name, of which keys are taken (cloud::ucloud::keys_of_environment).
  std::map<std::string, std::string> environment;
};

/// The provider. `look_up` may be empty: then the URLs have numeric addresses. Errors: invalid_argument for a URL.
/// `clock` outlives it, and so does what `log` uses: one line for people, from any thread.
[[nodiscard]] Result<std::unique_ptr<cloud::Provider>> open_ucloud(
    const UCloudPlace& place, os::LookUp look_up, const Clock& clock,
    std::function<void(const std::string& line)> log = nullptr);

/// The variables of the environment that a UCloudPlace and its keys are made of.
[[nodiscard]] std::map<std::string, std::string> ucloud_environment();

}  // namespace croft::app
