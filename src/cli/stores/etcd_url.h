#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace croft::app {

/// Where an etcd cluster is and how to speak to it.
struct EtcdPlace {
  std::vector<std::string> endpoints;  ///< `https://10.0.0.1:2379`; numeric
  std::string ca_file, certificate_file, key_file;
  std::string server_name;  ///< the name in the members' certificates, when it is not their address
  std::string user, password_file;
  std::string password;  ///< when there is no file of it; never from a URL
  /// The kube-apiservers' --etcd-prefix, when Services are those of Kubernetes; empty: they are Croft's own.
  std::string kubernetes_prefix;
};

/// Reads
/// `etcd:https://10.0.0.1:2379,https://10.0.0.2:2379?ca=FILE&cert=FILE&key=FILE&name=NAME&user=U&password-file=F`, and
/// `kubernetes=/registry`. For https, files that are not given come from the environment as Calico's plugin reads it:
/// ETCD_CA_CERT_FILE, ETCD_CERT_FILE, ETCD_KEY_FILE. Error: invalid_argument naming the part.
[[nodiscard]] Result<EtcdPlace> parse_etcd_url(const std::string& url);

/// Error: invalid_argument, naming the endpoint, when a password would go over a connection that anybody on the way can
/// read. The same when some endpoints are https and others are not: whoever can cut the ones is asked instead of them.
[[nodiscard]] Result<void> check_secrecy(const EtcdPlace& place);

}  // namespace croft::app
