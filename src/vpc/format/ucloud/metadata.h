#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/net/mac.h"
#include "base/result.h"
#include "vpc/format/ucloud/signing.h"

namespace croft::wire::ucloud {

/// What a machine learns of itself at `/meta-data/v1.json`. All but `mac` may be empty: not said.
struct Metadata {
  std::string zone;
  std::string region;
  std::string instance;
  std::string project;
  std::string interface_id;  ///< as the metadata call it
  net::Mac mac;
  std::string vpc;
  std::string subnet;
  bool is_bare_metal = false;
  friend bool operator==(const Metadata&, const Metadata&) = default;
};
/// Of the interface with `default` true, of a virtual machine (`uhost`) or a bare one (`uphost`); a machine with a
/// single interface may leave `default` away. Error: invalid_argument, also when several are the default or none is.
[[nodiscard]] Result<Metadata> decode_metadata(std::string_view bytes);

inline constexpr std::string_view kMetadataPath = "/meta-data/v1.json";
/// With the role behind it.
inline constexpr std::string_view kCredentialsPathV1 = "/meta-data/v1/uam/security-credentials/";
inline constexpr std::string_view kCredentialsPathV2 = "/meta-data/v2/iam/security-credentials/";

/// Keys of the security token service.
struct Credentials {
  Keys keys;
  WallTime expires{};
};
/// Reads both forms: v1 with PublicKey, PrivateKey and seconds since 1970 in Data, v2 with AccessKeyId, AccessKeySecret
/// and an RFC 3339 time, in Data or beside it. Errors: refused_by_configuration for a RetCode that is not 0;
/// invalid_argument; no message tells a key.
[[nodiscard]] Result<Credentials> decode_credentials(std::string_view bytes);

}  // namespace croft::wire::ucloud
