#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace croft::edge {

/// gRPC's service of reflection, for tools such as grpcurl, in its two versions, whose messages have the same bytes.
bool is_reflection(std::string_view method);

/// The answer to one message of a reflection call: which services there are, and the descriptors of their files, which
/// protobuf has with the code. What is not found, and extensions, of which there are none, is an answer too.
/// Error: invalid_argument when the message is none.
/// `service` is what this server has beside health and reflection.
[[nodiscard]] Result<std::string> reflect(std::string_view message, std::string_view service);

}  // namespace croft::edge
