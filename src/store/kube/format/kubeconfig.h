#pragma once

// How to reach a Kubernetes API and as whom: a kubeconfig, client-go's format, or what a pod is given
// (docs/notes/kubernetes-client.md). No file is read here.

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "http/url/url.h"

namespace croft::wire::kube {

/// The size of a token, also in its file. The API server itself takes 1 MiB of headers.
inline constexpr std::size_t kTokenBytesMax = std::size_t{32} << 10;

/// Whether a text can be the value of a header: not empty nor too long, ASCII without spaces and control characters.
[[nodiscard]] bool is_bearer_token(std::string_view text);
/// A token as its file has it, without the white space around it; as client-go takes it.
[[nodiscard]] std::string_view trimmed_token(std::string_view content);

/// From when until when a token says that it is good (RFC 7519: `iat`, `exp`).
struct TokenLife {
  WallTime made;
  WallTime end;
  friend bool operator==(const TokenLife&, const TokenLife&) = default;
};
/// The life of a service account's token, a JSON Web Token, by its own claims; nobody has checked its signature.
/// Nothing for what is none, or says no end. One that does not say when it was made was made at 1970.
[[nodiscard]] std::optional<TokenLife> life_of_token(std::string_view token);

/// The body of a TokenRequest (authentication.k8s.io/v1) for a token of the API server's own audience.
[[nodiscard]] std::string encode_token_request(std::chrono::seconds life);
/// The token of its answer. Error: corrupt: it has none that is_bearer_token().
[[nodiscard]] Result<std::string> decode_token_request(std::string_view json);

/// The one bound of a kubeconfig. One of all clusters of a large company is far below.
inline constexpr std::size_t kKubeconfigBytesMax = std::size_t{1} << 20;

/// PEM: the text itself, or the file that has it; both empty: there is none.
struct KubePem {
  std::string data;
  std::string file;
  [[nodiscard]] bool is_set() const { return !data.empty() || !file.empty(); }
  friend bool operator==(const KubePem&, const KubePem&) = default;
};

/// One API and one identity. Paths of files are absolute where the directory given to the decoder is.
struct KubeAccess {
  std::vector<wire::Url> servers;  ///< at least one, all of one cluster; a name somebody has to look up
  KubePem ca;                      ///< who signed the servers' certificates; set where they are https
  std::string tls_server_name;     ///< the name their certificates must have; empty: the host of each

  KubePem certificate;  ///< ours; with `key`, or neither is set
  KubePem key;
  std::string token;       ///< sent as a bearer token; empty: none
  std::string token_file;  ///< wins over `token`; read again and again, as somebody renews it

  std::string name_space;      ///< where the identity is at home; empty: not said, kubectl takes "default"
  std::string namespace_file;  ///< of a pod, which kubelet made beside the token: says it there; empty: no pod

  /// Whether the kubeconfig itself holds what nobody else may read.
  [[nodiscard]] bool carries_secret() const { return !token.empty() || !key.data.empty(); }
  friend bool operator==(const KubeAccess&, const KubeAccess&) = default;
};

/// Error: invalid_argument: no server, https without a CA, http with any identity, a certificate without its key.
[[nodiscard]] Result<void> check_access(const KubeAccess& access);

/// Reads a kubeconfig written in JSON (of YAML: store/kube/format/yaml.h). `directory` is where the file
/// lies: relative paths in it begin there. `context` chooses; empty: `current-context` does.
///
/// As client-go reads it: members by their exact names, unknown ones passed over, `tokenFile` before `token`, data
/// before a file. More servers than the cluster's own may stand in an extension of the cluster, which other programs
/// pass over: `extensions: [{name: croft, extension: {servers: [https://10.0.0.2:6443]}}]`.
///
/// Error, with the member: invalid_argument: of the wrong type, no base64, no URL, no token, a context, cluster or user
/// that is not there; those of check_access. refused_by_configuration, with what to do instead: `exec`,
/// `auth-provider`, `username`, `as`, `proxy-url`, `insecure-skip-tls-verify`. None repeats what may be secret.
[[nodiscard]] Result<KubeAccess> decode_kubeconfig(std::string_view json, std::string_view directory,
                                                   std::string_view context = {});

/// A kubeconfig in JSON for a program that has nothing but this file: what decode_kubeconfig() reads. `ca_pem` and
/// `token` are the texts themselves; no other identity of `access` goes in.
[[nodiscard]] std::string encode_kubeconfig(const KubeAccess& access, std::string_view ca_pem, std::string_view token);

/// Replacements for parts of a kubeconfig, as client-go's overrides; empty: none.
struct KubeOverrides {
  std::string server;  ///< the URL of one, in the place of all
  std::string ca_file;
  std::string certificate_file, key_file;  ///< both or none
  std::string token;
};
/// `access` may be of no kubeconfig at all, empty, where `overrides` has a server. Error: invalid_argument, naming the
/// part: no URL, no token; those of check_access.
[[nodiscard]] Result<void> override_access(KubeAccess& access, const KubeOverrides& overrides);

/// The access that kubelet gives to a pod: KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT and a directory with
/// `token`, `ca.crt` and `namespace`. Error: invalid_argument, naming the variables, when they are no host and port.
[[nodiscard]] Result<KubeAccess> in_cluster_access(std::string_view host, std::string_view port);

}  // namespace croft::wire::kube
