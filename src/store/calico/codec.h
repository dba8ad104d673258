#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "store/store.h"

// The bytes of the records that lie in a datastore of Calico's: Calico's in Calico's form, with what Croft keeps beside
// them; Croft's own with their write token. Kubernetes' objects are not among them.
namespace croft::store::calico {

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

/// The UID of a resource that a commit makes: the commit's own token, as a random UUID, so that it is recognised.
[[nodiscard]] std::string uid_of(const WriteToken& token);

}  // namespace croft::store::calico
