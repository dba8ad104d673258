#pragma once

// The requests to a Kubernetes API server: paths with their queries, and bodies that are not objects
// (docs/notes/kubernetes-client.md).

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace croft::wire::kube {

/// A kind of object as URLs name it.
struct ApiResource {
  std::string_view group;     ///< "crd.projectcalico.org"; empty: the core group
  std::string_view version;   ///< "v1"
  std::string_view resource;  ///< the plural, lower case: "ipamblocks"
};

/// Whether a text can be an object's name in a path: not empty, not `.` or `..`, without `/` and `%`, at most 253
/// bytes. Most kinds take less; that is theirs to refuse.
[[nodiscard]] bool is_path_segment(std::string_view name);

/// The path of all objects of a kind, for POST and lists; `name_space` empty: of none, or of all namespaces.
/// Error: invalid_argument for a namespace that can be none.
[[nodiscard]] Result<std::string> collection_path(const ApiResource& resource, std::string_view name_space = {});

/// The path of one object, for GET, PUT and DELETE. Error: invalid_argument for a name that can be none.
[[nodiscard]] Result<std::string> object_path(const ApiResource& resource, std::string_view name_space,
                                              std::string_view name);

/// Which objects, of a list or a watch. Empty: all.
struct ApiSelection {
  std::string label_selector;
  std::string field_selector;
};

struct ApiListQuery {
  ApiSelection select;
  std::int64_t limit = 0;      ///< objects a page; 0: all at once
  std::string continue_token;  ///< of the page before; then `resource_version` is not sent: the token has it
  /// How new the answer is: empty: as new as can be (read from etcd's quorum); "0": whatever the server has.
  std::string resource_version;
};
/// `collection` with the query of a list.
[[nodiscard]] std::string list_path(std::string_view collection, const ApiListQuery& query);

struct ApiWatchQuery {
  ApiSelection select;
  /// Changes after this one are told. Empty: what is there first, as `added`, and the changes of then on.
  std::string resource_version;
};
/// `collection` with the query of a watch, which the server ends when it likes, after 30 to 60 minutes; bookmarks are
/// always asked for.
[[nodiscard]] std::string watch_path(std::string_view collection, const ApiWatchQuery& query);

/// The body of a DELETE: only if the object is still that. Empty: any.
struct ApiPreconditions {
  std::string uid;
  std::string resource_version;
};
[[nodiscard]] std::string encode_delete_options(const ApiPreconditions& only_if);

}  // namespace croft::wire::kube
