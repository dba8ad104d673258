#pragma once

// Croft's own records as objects of the Kubernetes API (docs/formats/kubernetes-own.md): one kind of object for each
// kind of record, whose definitions are deploy/kubernetes/crds-croft.yaml. The members of a `spec` are those of the
// record (docs/formats/records.md) under their names, with two differences: integers that may not fit a signed 64-bit
// one, which is all that the API server carries, are strings; and `name` is the record's own name, which the object's
// name can be too narrow for.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/json/reader.h"
#include "base/result.h"
#include "register/records.h"
#include "store/kube/format/api.h"

namespace croft::wire::kube {

inline constexpr std::string_view kOwnGroup = "ipam.croft.dev";
inline constexpr std::string_view kOwnVersion = "v1alpha1";
inline constexpr std::string_view kOwnApiVersion = "ipam.croft.dev/v1alpha1";
/// The label of every own object: whose the record is, by the beginning of its name, so that a selector finds the
/// records of one node. See croft_owner_label().
inline constexpr std::string_view kOwnerLabel = "ipam.croft.dev/owner";
/// The write token of the commit that wrote an object, Croft's own or Calico's: 32 hex digits.
inline constexpr std::string_view kTokenAnnotation = "ipam.croft.dev/write-token";

/// A member of a `spec`.
struct OwnField {
  std::string_view name;
  /// Its integers, or those in its list or map, have 64 bits unsigned: texts of decimal digits in the object.
  bool is_big = false;
  std::span<const OwnField> parts{};  ///< of the objects in its list
};

/// A kind of own objects.
struct OwnKind {
  core::Kind record;
  std::string_view kind;    ///< "CroftPoolSet"
  std::string_view plural;  ///< "croftpoolsets"
  std::span<const OwnField> fields;

  [[nodiscard]] ApiResource resource() const { return {kOwnGroup, kOwnVersion, plural}; }
};

/// All kinds of records, by Kind.
[[nodiscard]] std::span<const OwnKind> croft_kinds();
/// Null for a kind of record that is Calico's or Kubernetes', or that Croft doesn't keep in a Kubernetes API.
[[nodiscard]] const OwnKind* croft_kind_of(core::Kind kind);

/// The view of a pool, under its name: the pool itself is Calico's object, in which nothing of Croft's is written. No
/// record: nobody reads it to decide.
[[nodiscard]] const OwnKind& croft_pool_kind();

/// A digest: any bytes to its 32 bytes. SHA-256 wherever this header asks for one (os/digest.h).
using Digest = std::function<std::string(std::string_view)>;

/// The object's name. It is the record's where that can be one (a DNS subdomain of at most 200 characters that does not
/// look like the other form); else its usable part, and 16 hex digits of its digest.
[[nodiscard]] std::string croft_object_name(std::string_view record_name, const Digest& sha256);
/// The value of kOwnerLabel for records whose names begin with `owner`, as "host/node-a" or "nobody": the first 40 hex
/// digits of its digest.
[[nodiscard]] std::string croft_owner_label(std::string_view owner, const Digest& sha256);
/// The owner at the beginning of a record's name, or of a prefix of names; nothing when the prefix is too short to
/// tell.
[[nodiscard]] std::optional<std::string_view> owner_in_name(std::string_view name);

/// A `spec` for a record in the canonical bytes of register/format. Asserts that they are such.
[[nodiscard]] std::string croft_spec(const OwnKind& kind, std::string_view record_name, std::string_view record);

/// The content of a `spec`.
struct OwnRecord {
  std::string name;
  std::string record;  ///< canonical bytes, as wire::decode_record reads them
};
/// Unknown members are passed over: the API server prunes them. Error: corrupt, naming the member: missing, of another
/// type, no number.
[[nodiscard]] Result<OwnRecord> read_croft_spec(const OwnKind& kind, JsonRef spec);

}  // namespace croft::wire::kube
