#pragma once

// Calico's records as objects of the Kubernetes API (docs/formats/calico-crd.md): names, and the way between an object
// and the bytes of the same record in etcd. These have readers and writers already (calico/etcd_records.h). The
// rest of an object travels through those bytes as one more unknown member, and so through core::ForeignRest. An object
// that was read is written again with its labels, annotations, finalizers and owners.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/json/reader.h"
#include "base/result.h"
#include "register/records.h"

namespace croft::wire::calico {

/// Where a cluster has Calico's objects.
enum class ApiGroup : std::uint8_t {
  crd_v1,  ///< crd.projectcalico.org/v1
  v3,      ///< projectcalico.org/v3 as native CRDs: a tech preview in Calico 3.32
};

/// A kind of objects, as URLs and the objects themselves name it.
struct CrdKind {
  std::string_view group, version, plural, kind;
};
/// For pools, reservations, the configuration, blocks, affinities and handles. Asserts that it is one of these.
[[nodiscard]] bool has_crd(core::Kind kind);
[[nodiscard]] CrdKind crd_kind_of(core::Kind kind, ApiGroup group);
/// Whether objects of the kind have a mark of deletion in their spec.
[[nodiscard]] bool has_deletion_mark(core::Kind kind);

/// Any bytes to the bytes of their digest.
struct Digests {
  std::function<std::string(std::string_view)> sha256;
  std::function<std::string(std::string_view)> sha3_256;
};

/// The object's name, as Calico makes it. A block has its CIDR, `10-0-0-64-26`; an affinity the owner in front of that,
/// cut and with a digest from 253 bytes on; a handle its own in lower case. Errors: invalid_argument for a key that has
/// none, and for a name that the API refuses: not of a–z, 0–9, `-` and `.`, or longer than 253 bytes.
[[nodiscard]] Result<std::string> crd_name(const core::Key& key, const Digests& digests);
/// The record that an object of this name may be, where its spec does not tell.
[[nodiscard]] core::Key key_of_crd_name(core::Kind kind, const std::string& name);

/// The labels by which Calico lists the affinities of a node, v3.31 and newer.
[[nodiscard]] std::map<std::string, std::string> affinity_labels(const core::AffinityOwner& owner, net::Family family,
                                                                 const Digests& digests);

/// An object, read.
struct FromCrd {
  std::optional<core::Key> key;  ///< by the spec; nothing where that is damaged
  std::string bytes;             ///< as decode_value reads them
  bool is_deleted = false;       ///< its spec has the mark
};
/// Annotations and labels that begin with `own_prefix` are Croft's, and not kept with the value. Error: corrupt: no
/// spec, a mark that is none.
[[nodiscard]] Result<FromCrd> from_crd(core::Kind kind, ApiGroup group, JsonRef object, std::string_view own_prefix);

/// The rest of an object to write besides its record.
struct CrdFrame {
  ApiGroup group = ApiGroup::crd_v1;
  std::string name;
  std::string uid;               ///< empty: not said
  std::string resource_version;  ///< empty: a new object
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
};
/// The object for bytes of encode_value. Members kept by from_crd come first; the frame's labels and annotations
/// replace those of the same names.
[[nodiscard]] std::string to_crd(const core::Key& key, std::string_view bytes, const CrdFrame& frame);

}  // namespace croft::wire::calico
