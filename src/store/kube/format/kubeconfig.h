#pragma once

// How to reach a Kubernetes API and as whom: a kubeconfig, client-go's format, or what a pod is given
// (docs/reference/kubernetes-client.md). No file is read here.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace croft::wire::kube {

/// A kubeconfig of all clusters of a large company is far below.
inline constexpr std::size_t kKubeconfigBytesMax = std::size_t{1} << 20;
/// What a token may weigh, also in its file. The API server itself takes 1 MiB of headers.
inline constexpr std::size_t kTokenBytesMax = std::size_t{32} << 10;
inline constexpr std::size_t kKubeServersMax = 16;

/// Where one API server listens.
struct KubeServer {
  bool secure = true;        ///< https
  std::string host;          ///< a numeric address, IPv6 without brackets, or a name, which somebody has to look up
  std::uint16_t port = 443;  ///< 80 for http, where the URL has none
  std::string
      path_prefix;  ///< comes before every path of the API: "" or "/k8s/clusters/c-1", never with a slash behind

  /// As a URL, always with its port.
  [[nodiscard]] std::string text() const;
  /// The `:authority` of requests: "10.0.0.1:6443", "[fd00::1]:6443", "api.example:6443".
  [[nodiscard]] std::string authority() const;
  friend bool operator==(const KubeServer&, const KubeServer&) = default;
};

/// PEM: the text itself, or the file that has it; both empty: there is none. Never both.
struct KubePem {
  std::string data;
  std::string file;
  [[nodiscard]] bool is_set() const { return !data.empty() || !file.empty(); }
  friend bool operator==(const KubePem&, const KubePem&) = default;
};

/// One API and one identity. Paths of files are absolute where the directory given to the decoder is.
struct KubeAccess {
  std::string context;  ///< the chosen one's name; empty in a pod

  std::vector<KubeServer> servers;  ///< 1 to kKubeServersMax, all of one cluster, all https or all http
  KubePem ca;                       ///< who signed the servers' certificates; set where they are https
  std::string tls_server_name;      ///< the name their certificates must have; empty: the host of each

  KubePem certificate;  ///< ours; with `key`, or neither is set
  KubePem key;
  std::string token;       ///< sent as a bearer token; empty: none
  std::string token_file;  ///< wins over `token`; read again and again, as somebody renews it
  /// The token's mode is not ours to judge: kubelet makes it, 0644 where the containers of a pod run as several users,
  /// and nobody but the pod sees the file (Kubernetes, "Configure Service Accounts for Pods").
  bool token_file_is_the_pods = false;

  std::string name_space;      ///< where the identity is at home; empty: not said, kubectl takes "default"
  std::string namespace_file;  ///< says it where `name_space` does not; empty: none

  /// Whether anything says who asks.
  [[nodiscard]] bool has_identity() const {
    return certificate.is_set() || key.is_set() || !token.empty() || !token_file.empty();
  }
  /// Whether the kubeconfig itself holds what nobody else may read.
  [[nodiscard]] bool carries_secret() const { return !token.empty() || !key.data.empty(); }
  friend bool operator==(const KubeAccess&, const KubeAccess&) = default;
};

/// Reads the URL of an API server: `https://10.0.0.1:6443`, `https://[fd00::1]`, `https://api.example/k8s/clusters/c`.
/// Error: invalid_argument, saying what is wrong: another scheme, no host, a port that is none, a user, a query.
[[nodiscard]] Result<KubeServer> parse_kube_server(std::string_view url);

/// Reads a kubeconfig written in JSON (of YAML: store/kube/format/kubeconfig_yaml.h). `directory` is where the file
/// lies: relative paths in it begin there. `context` chooses; empty: `current-context` does.
///
/// As client-go reads it: members by their exact names, unknown ones passed over, `token_file` before `token`. More
/// servers than the cluster's own may stand in an extension of the cluster, which other programs pass over:
/// `extensions: [{name: croft, extension: {servers: [https://10.0.0.2:6443]}}]`.
///
/// Error: not_found, where the file says nothing of it: it has no context of the name `context`, or that is empty and
/// there is no `current-context`; invalid_argument, naming the member: of the wrong type, too long, no base64, no URL;
/// a context, cluster or user that is not there, or there twice; a certificate, key or CA given as data and as file
/// (kubectl refuses that too); a certificate without its key; https without a CA; http with any identity; servers of
/// both kinds. refused_by_configuration, naming the member and what to do instead, for what Croft does not do: `exec`,
/// `auth-provider`, `username`, `password`, `as…`, `proxy-url`, `insecure-skip-tls-verify`.
[[nodiscard]] Result<KubeAccess> decode_kubeconfig(std::string_view json, std::string_view directory,
                                                   std::string_view context = {});

/// One of several kubeconfigs that are put together.
struct KubeconfigFile {
  std::string name;       ///< for messages: its path; empty: none
  std::string json;       ///< empty: the file is, and says nothing
  std::string directory;  ///< as above
};
struct AccessOfFiles {
  KubeAccess access;
  std::size_t user_file = 0;  ///< which one says who asks
};
/// The same out of several files, as client-go puts them together: of each cluster, user and context the first file
/// that has one of the name counts, with all that it says, and the first that says a current context. Paths begin in
/// the directory of the file that has them. Errors: as decode_kubeconfig, with the name of the file.
[[nodiscard]] Result<AccessOfFiles> merge_kubeconfigs(std::span<const KubeconfigFile> files,
                                                      std::string_view context = {});

/// A kubeconfig in JSON for a program that has nothing but this file: what decode_kubeconfig() reads. `ca_pem` and
/// `token` are the texts themselves; no other identity of `access` goes in.
[[nodiscard]] std::string encode_kubeconfig(const KubeAccess& access, std::string_view ca_pem, std::string_view token);

/// What takes the place of parts of a kubeconfig, as client-go's overrides do; empty: nothing does.
struct KubeOverrides {
  std::string server;  ///< the URL of one, in the place of all
  std::string ca_file;
  std::string certificate_file, key_file;  ///< both or none
  std::string token;
  friend bool operator==(const KubeOverrides&, const KubeOverrides&) = default;
};
/// `access` may be of no kubeconfig at all, empty, where `overrides` has a server. Error: invalid_argument, as
/// decode_kubeconfig, naming the part.
[[nodiscard]] Result<void> override_access(KubeAccess& access, const KubeOverrides& overrides);

/// Where kubelet puts what a pod needs to reach the API.
inline constexpr std::string_view kServiceAccountDirectory = "/var/run/secrets/kubernetes.io/serviceaccount";

/// What a pod is given: KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT and the directory with `token`, `ca.crt` and
/// `namespace`. Error: invalid_argument, naming the variable, when it is empty or none; then this is no pod.
[[nodiscard]] Result<KubeAccess> in_cluster_access(std::string_view host, std::string_view port,
                                                   std::string_view directory = kServiceAccountDirectory);

}  // namespace croft::wire::kube
