#pragma once

#include <functional>
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

/// Where UCloud is, and what it is told that its metadata do not say; all of it may be empty.
struct Place {
  std::string api;       ///< URL; empty: UCloud's own inside a VPC
  std::string metadata;  ///< URL; empty: UCloud's own
  std::string region, project, vpc, subnet;
};

/// Keys of UCLOUD_API_PUBKEY and UCLOUD_API_PRIKEY, or of UCLOUD_ACCESS_PUBKEY and UCLOUD_ACCESS_PRIKEY. Empty ones
/// when a pair is not whole. `environment` tells a variable's value; empty: there is none.
[[nodiscard]] wire::ucloud::Keys keys_of_environment(const std::function<std::string(const char* name)>& environment);

/// UCloud at a place; its bytes: docs/formats/ucloud.md. Nothing is asked before the first call. `keys` are used where
/// the metadata give none; may be empty. `look_up` may be empty: then the URLs have numeric addresses. Error:
/// invalid_argument for a URL. `clock` outlives it.
[[nodiscard]] Result<std::unique_ptr<Provider>> open_ucloud(const Place& place, wire::ucloud::Keys keys,
                                                            os::LookUp look_up, const Clock& clock);

}  // namespace croft::cloud::ucloud
