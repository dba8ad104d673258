#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "calico/crd.h"
#include "store/kube/format/api.h"
#include "store/kube/format/croft_kinds.h"
#include "store/store.h"

// How records lie in a Kubernetes API (docs/formats/kubernetes-own.md, docs/formats/calico-crd.md): which resource,
// under which name, with what in it.
namespace croft::store::kube {

using wire::member_of;

/// The facts about one object that every write of it needs.
struct Basis {
  std::string uid;
  std::string resource_version;
};

/// An object as a record.
struct Stored {
  Record record;
  /// It is marked as deleted: nobody may take it for a record, and whoever meets it may delete it.
  bool is_deleted = false;
};

/// How URLs and objects name a kind.
struct MappedKind {
  wire::kube::ApiResource resource;
  std::string_view kind;                     ///< "CroftPoolSet", "IPAMBlock"
  bool is_namespaced = false;                ///< a record's name is NAMESPACE/NAME
  bool may_be_unknown = false;               ///< an API that does not know the kind has none of it
  std::span<const wire::kube::Kept> kept{};  ///< what is read of its objects; empty: all
};

/// Objects of some kinds. One of Croft's own kinds, one of Calico's; a store has both.
class ObjectMapping {
 public:
  ObjectMapping() = default;
  ObjectMapping(const ObjectMapping&) = delete;
  ObjectMapping& operator=(const ObjectMapping&) = delete;
  virtual ~ObjectMapping() = default;

  [[nodiscard]] virtual bool has(Kind kind) const = 0;
  /// For a kind that it has.
  [[nodiscard]] virtual MappedKind about(Kind kind) const = 0;
  [[nodiscard]] wire::kube::ApiResource resource_of(Kind kind) const { return about(kind).resource; }
  /// How lists of a kind name it, and which members of their objects are read.
  [[nodiscard]] wire::kube::ApiListOf list_of(Kind kind) const;
  /// The object's name. Error: invalid_argument for a key that can have none.
  [[nodiscard]] virtual Result<std::string> object_name(const Key& key) const = 0;
  /// Where the object of a key is. Error: as of object_name().
  [[nodiscard]] Result<std::string> path_of(const Key& key) const;
  /// The selections, in the order of asking, that together find every record whose name begins so, and maybe others. At
  /// least one; an empty one finds all. Unless the listing is `as_stored`, records may be missing that are not as this
  /// version of Calico writes them: a node's affinities without Calico's labels.
  [[nodiscard]] virtual std::vector<wire::kube::ApiSelection> selections(const core::Listing& /*listing*/) const {
    return {{}};
  }
  /// The selection that finds every object of a kind but those whose names end in this length, as far as they say so,
  /// and maybe others. Nothing where that can't be asked.
  [[nodiscard]] virtual std::optional<wire::kube::ApiSelection> but_length(Kind /*kind*/, int /*length*/) const {
    return {};
  }
  /// The record that an object of this name is, where names alone tell: lists of keys need no more. Nothing where they
  /// do not.
  [[nodiscard]] virtual std::optional<Key> key_of_name(Kind /*kind*/, const std::string& /*name*/) const { return {}; }
  /// Error: read_only for a write that must not be made; asked before anything is sent.
  [[nodiscard]] virtual Result<void> check_write(const Write& /*write*/) const { return {}; }

  /// An object of the kind's resource. A record that cannot be understood has the key that it has by its spec or else
  /// `key`, where that is given, or else by its own name. Error: corrupt when not even the frame is right: a
  /// resourceVersion that is no number.
  [[nodiscard]] virtual Result<Stored> decode(Kind kind, const Key* key, wire::JsonRef object,
                                              const wire::kube::ApiMeta& meta) const = 0;
  /// The object to send, with the token. Without `basis` it is made, else put in the place of that one.
  [[nodiscard]] virtual std::string encode(const Key& key, const Value& value, const WriteToken& token,
                                           const std::optional<Basis>& basis, WallTime now) const = 0;

 protected:
  /// The frame of an object: all but the value.
  [[nodiscard]] static Result<Stored> stored_as(Key key, wire::JsonRef object, const wire::kube::ApiMeta& meta);
};

/// A resourceVersion as the contract has it. Kubernetes calls it opaque, and promises since 1.35 what its storage has
/// always done: decimal numbers that grow. Error: corrupt for anything else.
[[nodiscard]] Result<Revision> revision_of(const std::string& resource_version);
[[nodiscard]] std::string resource_version_of(Revision revision);

/// Croft's own kinds.
[[nodiscard]] std::unique_ptr<ObjectMapping> make_croft_mapping(wire::kube::Digest sha256);
/// Calico's, in one of its two groups.
[[nodiscard]] std::unique_ptr<ObjectMapping> make_calico_mapping(wire::calico::ApiGroup group,
                                                                 wire::calico::Digests digests);

/// A kind of Kubernetes' own, which is only read.
struct KubernetesKind {
  Kind record;
  MappedKind about;
  Result<Value> (*decode)(wire::JsonRef object, const wire::kube::ApiMeta& meta);
};
[[nodiscard]] std::unique_ptr<ObjectMapping> make_kubernetes_mapping(const KubernetesKind& kind);
/// A list of nodes, with what Croft reads of each: nothing of what is said of images, volumes and conditions.
[[nodiscard]] wire::kube::ApiListOf list_of_nodes();
[[nodiscard]] std::unique_ptr<ObjectMapping> make_node_mapping();
[[nodiscard]] std::unique_ptr<ObjectMapping> make_namespace_mapping();
/// Services, and ServiceCIDRs (networking.k8s.io/v1: Kubernetes 1.33 and newer).
[[nodiscard]] std::vector<std::unique_ptr<ObjectMapping>> make_service_mappings();

}  // namespace croft::store::kube
