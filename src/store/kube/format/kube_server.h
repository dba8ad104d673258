#pragma once

// The small texts of a kubeconfig. Also for who reads a token out of its file.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace croft::wire::kube {

/// A host: a numeric address or a DNS name, as it stands in a variable; IPv6 with or without brackets. The result has
/// none. Nothing for anything else.
[[nodiscard]] std::optional<std::string> server_host(std::string_view text);

/// 1 to 65535 in decimal digits.
[[nodiscard]] std::optional<std::uint16_t> server_port(std::string_view text);

/// Whether a text is a DNS label as Kubernetes wants names of namespaces (RFC 1123): at most 63 of a–z, 0–9 and `-`.
[[nodiscard]] bool is_dns_label(std::string_view text);

/// Whether a text can be the value of a header: not empty, ASCII without spaces and control characters.
[[nodiscard]] bool is_bearer_token(std::string_view text);

/// A token as its file has it, without the white space around it; as client-go takes it.
[[nodiscard]] std::string_view trimmed_token(std::string_view content);

}  // namespace croft::wire::kube
