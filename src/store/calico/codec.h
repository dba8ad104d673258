#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "store/store.h"

// The register in a datastore of Calico's: Calico's kinds as Calico has them, Croft's own under a root of its own. And
// the bytes of the records there: Calico's in Calico's form, with what Croft keeps beside them; Croft's own with their
// write token. Kubernetes' objects are not among them.
namespace croft::store::calico {

// ---------------------------------------------------------------- the places (docs/formats/calico.md)

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

// ---------------------------------------------------------------- the bytes

/// The stored bytes of a record: its value, and that of the place beside it (nothing: none).
struct StoredBytes {
  std::string value;
  std::optional<std::string> beside;
};

[[nodiscard]] StoredBytes encode(const Value& value, const WriteToken& token, WallTime now);

/// A record's value, and the token where the format has one.
struct Decoded {
  Value value;
  WriteToken token;
};

/// The record in the bytes at `place` and in those beside it. Errors, naming the place of the two: corrupt (also a
/// block that contradicts itself), newer_version.
[[nodiscard]] Result<Decoded> decode(const Key& key, const std::string& place, std::string_view bytes,
                                     const std::optional<std::string>& beside);

/// The record without what is beside it; null when that cannot be read either.
[[nodiscard]] std::shared_ptr<const Value> without_beside(const Key& key, const std::string& place,
                                                          std::string_view bytes);

/// Whether what is stored was written by a commit with this value and token: by the token where the format has it,
/// else because it is what that commit would have written.
[[nodiscard]] bool is_written_by(const Key& key, const Value& value, const WriteToken& token, std::string_view stored);

/// Whether what a put of one of these records stores names its commit, so that is_written_by needs no luck: somebody
/// else may have written the same bytes.
[[nodiscard]] bool names_its_commit(const Write& write);

}  // namespace croft::store::calico
