#pragma once

#include <vector>

#include "net/address_with_length.h"
#include "wire/cni_config.h"
#include "wire/cni_json_decode.h"

// Parts of a network configuration that the decoders of all personalities read alike. For those decoders only.

namespace croft::wire::cni {

/// Reads the lists of attachments that still exist, under both names, from the top level of a configuration.
[[nodiscard]] MaybeFault read_valid_attachments(const JsonAt& root, ValidAttachments& out);

/// Reads the addresses of `prevResult` from the top level of a configuration.
[[nodiscard]] MaybeFault read_previous_addresses(const JsonAt& root, std::vector<net::AddressWithLength>& out);

}  // namespace croft::wire::cni
