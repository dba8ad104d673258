#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/calico/codec.h"
#include "store/etcd/epoch.h"
#include "store/etcd/format/api.h"
#include "store/etcd/kv.h"
#include "store/etcd/place.h"
#include "store/store.h"

// The bytes of records in etcd: Calico's and Croft's own as store/calico has them, Kubernetes' as the registry does.
namespace croft::store::etcd {

/// As store/calico/codec.h, or the registry's.
[[nodiscard]] calico::StoredBytes encode(const Places& places, const Value& value, const WriteToken& token,
                                         WallTime now);

/// The record in a key's value and the one beside it, which are of `epoch`. When they cannot be understood, or a block
/// contradicts itself, the record's error names the key.
[[nodiscard]] Result<Record> decode(const Places& places, const Key& key, const wire::etcd::KeyValue& kv,
                                    const std::optional<std::string>& beside, EpochNumber epoch);

/// Whether the stored value was written by a commit with this value and token. The token tells where the format has it,
/// else the value is what that commit would have written.
[[nodiscard]] bool is_written_by(const Places& places, const Key& key, const Value& value, const WriteToken& token,
                                 std::string_view stored);

/// Whether what a put stores names its commit, so that is_written_by needs no luck: somebody else may have written the
/// same bytes.
[[nodiscard]] bool names_its_commit(const Places& places, const Write& write);

}  // namespace croft::store::etcd
