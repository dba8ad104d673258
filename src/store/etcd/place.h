#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "register/records.h"
#include "register/snapshot.h"
#include "store/etcd/registry.h"

// Where records are in etcd: Calico's under Calico's keys, Croft's own under /croft/v1/ (docs/formats/calico.md),
// Kubernetes' where the registry says (docs/formats/kubernetes.md).
namespace croft::store::etcd {

/// Keys in [from, to).
struct PlaceRange {
  std::string from;
  std::string to;
};

/// The way between records and keys. The registry, if there is one, must outlive it.
class Places {
 public:
  explicit Places(const Registry* registry) : registry_(registry) {}

  /// Error: invalid_argument for a kind that only a registry has, where there is none.
  [[nodiscard]] Result<void> check_kind(core::Kind kind) const;
  /// Nothing where the kind is not the registry's.
  [[nodiscard]] const Registry* registry_of(core::Kind kind) const {
    return registry_ != nullptr && registry_->has(kind) ? registry_ : nullptr;
  }

  /// For who may not read what is Croft's own: there is none of it, and nothing beside Calico's records. Not meant for
  /// writers.
  void leave_out_own() { has_own_ = false; }
  [[nodiscard]] bool has_own() const { return has_own_; }
  [[nodiscard]] bool leaves_out(core::Kind kind) const;
  /// calico::place_beside() and places_beside(), where that is not left out.
  [[nodiscard]] std::optional<std::string> place_beside(const core::Key& key) const;
  [[nodiscard]] std::optional<std::string> places_beside(core::Kind kind) const;

  /// The key of a record. Error: invalid_argument for a name that can have none, and as check_kind.
  [[nodiscard]] Result<std::string> place_of(const core::Key& key) const;
  /// The record of a key of this kind; nothing for a key that belongs to none. A block whose key has host bits or
  /// another spelling keeps it in its name (core::block_cidr_of).
  [[nodiscard]] std::optional<core::Key> record_at(core::Kind kind, std::string_view place) const;
  /// The same for a list of keys alone, which is a hint and may be long. A block's CIDR is not parsed, so that a name
  /// may come out that no record can have.
  [[nodiscard]] std::optional<core::Key> listed_at(core::Kind kind, std::string_view place) const;
  /// The ranges, ascending, that hold every key of a listing, and maybe others: whoever lists filters by name. The
  /// order of keys in them is the order of names. Error: as check_kind.
  [[nodiscard]] Result<std::vector<PlaceRange>> ranges_of(const core::Listing& listing) const;

 private:
  [[nodiscard]] std::string root_of(core::Kind kind) const;
  [[nodiscard]] std::vector<std::string> prefixes_of(const core::Listing& listing) const;

  const Registry* registry_;
  bool has_own_ = true;
};

}  // namespace croft::store::etcd
