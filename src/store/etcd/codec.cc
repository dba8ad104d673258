#include <utility>
#include <variant>

#include "store/etcd/parts.h"

namespace croft::store::etcd {
namespace {

[[nodiscard]] Result<calico::Decoded> decode_sound(const Places& places, const Key& key, const wire::etcd::KeyValue& kv,
                                                   const std::optional<std::string>& beside) {
  const Registry* registry = places.registry_of(key.kind);
  if (registry == nullptr) return calico::decode(key, kv.key, kv.value, beside);
  TRY(Value value, registry->decode(key, kv.key, kv.value));
  return calico::Decoded{std::move(value), {}};
}

}  // namespace

calico::StoredBytes encode(const Places& places, const Value& value, const WriteToken& token, WallTime now) {
  const Registry* registry = places.registry_of(core::kind_of(value));
  if (registry == nullptr) return calico::encode(value, token, now);
  return {registry->encode(value, calico::uid_of(token), now), {}};
}

Result<Record> decode(const Places& places, const Key& key, const wire::etcd::KeyValue& kv,
                      const std::optional<std::string>& beside, EpochNumber epoch) {
  auto decoded = decode_sound(places, key, kv, beside);
  Record record;
  if (decoded) {
    record.value = std::move(decoded->value);
    record.token = decoded->token;
  } else {
    Error error = std::move(decoded).error();
    // A record of a newer version, or encrypted at rest by Kubernetes, is sound, but not for Croft to read as it is.
    const bool is_sound = error.code == ErrorCode::newer_version || error.code == ErrorCode::refused_by_configuration;
    if (!is_sound) error.code = ErrorCode::corrupt;
    record.value = fail(std::move(error));
    if (beside) record.calicos = calico::without_beside(key, kv.key, kv.value);
  }
  record.key = key;
  record.revision = in_epoch(epoch, kv.mod_revision);
  return record;
}

bool is_written_by(const Places& places, const Key& key, const Value& value, const WriteToken& token,
                   std::string_view stored) {
  const Registry* registry = places.registry_of(key.kind);
  if (registry == nullptr) return calico::is_written_by(key, value, token, stored);
  return registry->uid_in(key, stored) == calico::uid_of(token) ||
         encode(places, value, token, WallTime{}).value == stored;
}

bool names_its_commit(const Places& places, const Write& write) {
  if (places.registry_of(write.key.kind) == nullptr) return calico::names_its_commit(write);
  // Writes only one kind of Kubernetes' objects, and only a new one with a UID of its own.
  return write.value && write.key.kind == Kind::ip_address && std::get<core::IpAddressObject>(*write.value).uid.empty();
}

}  // namespace croft::store::etcd
