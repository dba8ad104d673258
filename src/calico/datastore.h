#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/json/decode.h"

// Where the register is, as the configuration of the personality `calico-ipam` says it
// (docs/notes/calico-ipam.md#plugin-configuration). docs/formats/calico-ipam.md has the table of members.

namespace croft::wire::cni {

inline constexpr std::size_t kEtcdEndpointsMax = 16;

struct DatastoreChoice {
  enum class Kind : std::uint8_t {
    store_url,   ///< `url` says it: `ipam.store` or the variable CROFT_STORE
    etcd,        ///< Calico's etcdv3
    kubernetes,  ///< the Kubernetes API; also when nothing was said, as in Calico
  } kind = Kind::kubernetes;
  std::string url;                     ///< only with store_url; unchecked
  std::vector<std::string> endpoints;  ///< only with etcd, at least one, each beginning with http:// or https://
  // Not with store_url; empty when not given. With kubernetes they take the place of what the kubeconfig says.
  std::string key_file, cert_file, ca_cert_file;  ///< paths; key and certificate come together or not at all
  // Only with etcd.
  std::string user, password;
  // Only with kubernetes; empty when not given.
  std::string kubeconfig;  ///< an absolute path; without it and `api_root`: what a pod is given
  std::string api_root;    ///< takes the place of the kubeconfig's servers; unchecked
  std::string token;       ///< takes the place of its token
  std::string api_group;   ///< as it is written
  friend bool operator==(const DatastoreChoice&, const DatastoreChoice&) = default;
};

/// The store's URL without files and passwords, as it is compared with an agent's: `etcd:http://10.0.0.1:2379,…`,
/// `kube:/etc/cni/net.d/calico-kubeconfig`.
[[nodiscard]] std::string url_of(const DatastoreChoice& choice);

/// The value of an environment variable; empty when it is not set.
using GetVariable = std::function<std::string(const char* name)>;

/// The members that say it, as they are written.
struct DatastoreMembers {
  std::string type, endpoints, discovery_srv, key_file, cert_file, ca_cert_file, scheme, authority;
  std::string kubeconfig, api_root, old_api_root, token, api_group;
};

/// Reads them from a configuration. `on_fault`: ObjectRules.
[[nodiscard]] MaybeFault read_datastore_members(const JsonAt& root, OnFault on_fault, DatastoreMembers& out);
/// Adds their names to those that are known.
void add_datastore_names(std::vector<std::string>& known);

/// Each member overrides its environment variable. Fault: a member or variable with a value that is not allowed; a
/// datastore that nothing leads to.
[[nodiscard]] MaybeFault choose_datastore(const DatastoreMembers& members, const GetVariable& variable,
                                          DatastoreChoice& out);

/// The same as far as the members say it: of what they lead to nothing has to be usable from here, so that endpoints,
/// kubeconfig and api_root may be missing. Fault: no such datastore.
[[nodiscard]] MaybeFault datastore_as_said(const DatastoreMembers& members, DatastoreChoice& out);

/// A member or an environment variable, under the name where it was found.
struct Setting {
  std::string name;
  std::string value;
};
/// Takes a variable, if it is set.
[[nodiscard]] MaybeFault take_variable(const GetVariable& variable, const char* name, Setting& out);

}  // namespace croft::wire::cni
