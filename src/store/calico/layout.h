#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "register/records.h"

// How the register lies in a datastore of Calico's: Calico's kinds as Calico has them, Croft's own under a root of its
// own (docs/formats/calico.md).
namespace croft::store::calico {

/// Everything of Croft's is below this.
[[nodiscard]] std::string_view own_root();
/// True for the kinds that Calico has.
[[nodiscard]] bool is_calicos(core::Kind kind);

/// The prefix of the name of an own record; also for a kind that is Calico's or Kubernetes' elsewhere.
[[nodiscard]] std::string own_root_of(core::Kind kind);

/// Where Croft keeps what Calico's record has no place for: beside pools and blocks; nothing for others.
[[nodiscard]] std::optional<std::string> place_beside(const core::Key& key);
/// The same for all records of a kind.
[[nodiscard]] std::optional<std::string> places_beside(core::Kind kind);
/// The record beside which a place is.
[[nodiscard]] std::optional<core::Key> record_beside(core::Kind kind, std::string_view place);

}  // namespace croft::store::calico
