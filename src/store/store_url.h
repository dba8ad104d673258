#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace croft::store {

// The parts of a store's URL for code that opens none (docs/configuration.md). cli/stores reads the part behind the
// scheme and opens the store.

enum class Scheme {
  sqlite,  ///< `sqlite:/absolute/path.db`: a file of this machine
  etcd,    ///< `etcd:https://10.0.0.1:2379,…?option=…`: a cluster
  kube,    ///< `kube:` or `kube:/path/kubeconfig?option=…`: a Kubernetes API
};

/// The scheme of a URL; absent where it is none of these.
[[nodiscard]] std::optional<Scheme> scheme_of(std::string_view url);

/// The part behind the scheme; all of a URL without one.
[[nodiscard]] std::string_view behind_scheme(std::string_view url);

/// The path of a store that is a file; absent for any other. It may be relative: only who opens refuses that.
[[nodiscard]] std::optional<std::string> file_of_store(std::string_view url);

/// The URL for messages: without what stands before an "@", which may be a user and a password. No store's URL has
/// them; who gives one all the same, or gives something else for a URL, finds them in no log.
[[nodiscard]] std::string without_user(std::string_view url);

/// Whether two URLs mean one store. In a path "//", "/./" and a "/" at its end say nothing. For etcd the members count,
/// in any order, and not the files of a client: plugin and agent may have certificates of their own.
[[nodiscard]] bool are_same_store(std::string_view a, std::string_view b);

/// Whether two URLs can mean one register. Members of an etcd are replaced, and a kubeconfig is written anew elsewhere:
/// of two of these URLs nobody can tell.
enum class OneRegister { yes, no, not_said };
[[nodiscard]] OneRegister compare_registers(std::string_view a, std::string_view b);

/// How a call needs its store.
enum class OpenMode : std::uint8_t {
  existing,  ///< an absent store is not_found, and nothing is made but lock files
  create,    ///< an absent store is made, durably
};

}  // namespace croft::store
