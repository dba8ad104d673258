#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace croft::os {

/// A certificate and its key, PEM. The key (PKCS #8, not encrypted) is a secret.
struct CertificateWithKey {
  std::string certificate;
  std::string key;
};

/// How long a certificate is good for.
struct Validity {
  WallTime from;
  WallTime until;
};

/// A CA that signs itself: EC P-256, for nothing but certificates right below it (path length 0).
/// Errors: invalid_argument for a name that make_node_certificate refuses; internal.
[[nodiscard]] Result<CertificateWithKey> make_authority(const std::string& name, const Validity& validity);

/// A certificate for a node, for both sides of TLS: EC P-256; its DNS name (SAN) is `name`, so is its common name
/// as far as that may be so long. Errors: invalid_argument for a name that is none of a node (RFC 1123: small letters,
/// digits, `-` and `.`, 253 bytes), and for an authority that is none or whose key is another's; internal.
[[nodiscard]] Result<CertificateWithKey> make_node_certificate(const CertificateWithKey& authority,
                                                               const std::string& name, const Validity& validity);

/// What one says of itself.
struct CertificateFacts {
  std::vector<std::string> dns_names;
  std::string common_name;
  Validity validity;
  bool is_authority = false;
};
/// Of the first certificate in a PEM. Error: invalid_argument when there is none that can be read.
[[nodiscard]] Result<CertificateFacts> certificate_facts(const std::string& pem);

/// Whether an authority signed a certificate. Its dates do not matter. Error: invalid_argument as certificate_facts.
[[nodiscard]] Result<bool> is_signed_by(const std::string& pem, const std::string& authority_pem);

/// Whether a key is a certificate's. Error: invalid_argument when one of them can not be read.
[[nodiscard]] Result<bool> is_key_of(const CertificateWithKey& one);

}  // namespace croft::os
