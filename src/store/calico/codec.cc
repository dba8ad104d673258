#include "store/calico/codec.h"

#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/hex.h"
#include "calico/etcd_records.h"
#include "register/block.h"
#include "register/format/records.h"
#include "register/owner.h"
#include "register/records.h"

namespace croft::store::calico {
namespace {

using core::Kind;

constexpr std::string_view kOwnRoot = "/croft/v1/";

std::string_view beside_name_of(Kind kind) {
  switch (kind) {
    case Kind::pool:
      return "beside/pool/";
    case Kind::block:
      return "beside/block/";
    default:
      return {};
  }
}

constexpr std::string_view kTokenStart = "{\"token\":\"";
constexpr std::string_view kRecordStart = "\",\"record\":";
constexpr std::size_t kTokenDigits = 32;

/// An own record's token and the bytes of its value.
struct OwnBytes {
  WriteToken token;
  std::string_view record;
};

std::optional<OwnBytes> token_and_record_of(std::string_view stored) {
  const std::size_t record_at = kTokenStart.size() + kTokenDigits + kRecordStart.size();
  if (stored.size() <= record_at || !stored.starts_with(kTokenStart) || stored.back() != '}' ||
      stored.substr(kTokenStart.size() + kTokenDigits, kRecordStart.size()) != kRecordStart) {
    return std::nullopt;
  }
  const auto token = bytes_of_hex<kTokenDigits / 2>(stored.substr(kTokenStart.size(), kTokenDigits));
  if (!token) return std::nullopt;
  OwnBytes own;
  own.token.bytes = *token;
  own.record = stored.substr(record_at, stored.size() - record_at - 1);
  return own;
}

[[nodiscard]] Result<Decoded> decode_own(const Key& key, const std::string& place, std::string_view bytes) {
  const auto own = token_and_record_of(bytes);
  if (!own) return fail(ErrorCode::corrupt, fmt::format("{} is no record of Croft's; restore it", place));
  if (key.kind == Kind::foreign_service) {
    TRY(Value service, wire::decode_record({Kind::service, key.name}, own->record));
    return Decoded{core::ForeignService{std::get<core::Service>(std::move(service))}, own->token};
  }
  TRY(Value value, wire::decode_record(key, own->record));
  return Decoded{std::move(value), own->token};
}

/// Without gateway, cooldown and what rests nobody may give or release by the record.
tl::unexpected<Error> damaged_beside(const Key& key, Error error) {
  error.message += fmt::format("; Calico's own record of {} {} is whole", core::name_of(key.kind), key.name);
  return fail(std::move(error));
}

[[nodiscard]] Result<Value> with_beside(const Key& key, Value value, const std::optional<std::string>& beside) {
  if (!beside) return value;
  if (auto* block = std::get_if<core::Block>(&value)) {
    auto cooling = wire::decode_cooling_beside(*place_beside(key), *beside);
    if (!cooling) return damaged_beside(key, std::move(cooling).error());
    return core::with_cooling(std::move(*block), *cooling);
  }
  if (auto* pool = std::get_if<core::Pool>(&value)) {
    auto known = wire::decode_pool_beside(*place_beside(key), *beside);
    if (!known) return damaged_beside(key, std::move(known).error());
    if (known->cidr == pool->cidr) {
      pool->gateway = known->gateway;
      pool->cooldown = known->cooldown;
      pool->priority = known->priority;
      // Another program that has enabled it leaves the marks.
      pool->being_made = pool->disabled && known->being_made;
      pool->being_deleted = pool->disabled && known->being_deleted;
    }
  }
  return value;
}

/// The UID of a resource that a commit makes: the commit's own token, as a random UUID, so that it is recognised.
std::string uid_of(const WriteToken& token) {
  WriteToken marked = token;
  marked.bytes[6] = static_cast<std::uint8_t>((marked.bytes[6] & 0x0f) | 0x40);
  marked.bytes[8] = static_cast<std::uint8_t>((marked.bytes[8] & 0x3f) | 0x80);
  const std::string hex = hex_of(marked.bytes);
  return fmt::format("{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4), hex.substr(16, 4),
                     hex.substr(20));
}

}  // namespace

std::string_view own_root() { return kOwnRoot; }

bool is_calicos(Kind kind) { return core::traits_of(kind).system == core::System::calico; }

std::string own_root_of(Kind kind) { return fmt::format("{}{}/", kOwnRoot, core::name_of(kind)); }

std::optional<std::string> place_beside(const core::Key& key) {
  if (beside_name_of(key.kind).empty()) return std::nullopt;
  return fmt::format("{}{}{}", kOwnRoot, beside_name_of(key.kind), key.name);
}

std::optional<std::string> places_beside(Kind kind) {
  if (beside_name_of(kind).empty()) return std::nullopt;
  return fmt::format("{}{}", kOwnRoot, beside_name_of(kind));
}

std::optional<core::Key> record_beside(Kind kind, std::string_view place) {
  const auto root = places_beside(kind);
  if (!root || !place.starts_with(*root)) return std::nullopt;
  return core::Key{kind, std::string(place.substr(root->size()))};
}

StoredBytes encode(const Value& value, const WriteToken& token, WallTime now) {
  if (!is_calicos(core::kind_of(value))) {
    return {fmt::format("{}{}{}{}}}", kTokenStart, hex_of(token.bytes), kRecordStart, wire::encode_record(value)), {}};
  }
  const wire::calico::Birth birth{uid_of(token), now};
  if (const auto* block = std::get_if<core::Block>(&value)) {
    auto [seen, beside] = core::without_cooling(*block);
    StoredBytes bytes{wire::calico::encode_value(seen, birth), {}};
    if (!beside.empty()) bytes.beside = wire::encode_cooling_beside(beside);
    return bytes;
  }
  StoredBytes bytes{wire::calico::encode_value(value, birth), {}};
  if (const auto* pool = std::get_if<core::Pool>(&value)) {
    const wire::PoolBeside own{pool->cidr,       pool->gateway,       pool->cooldown,
                               pool->being_made, pool->being_deleted, pool->priority};
    if (own != wire::PoolBeside{.cidr = pool->cidr, .gateway = {}}) bytes.beside = wire::encode_pool_beside(own);
  }
  return bytes;
}

Result<Decoded> decode(const Key& key, const std::string& place, std::string_view bytes,
                       const std::optional<std::string>& beside) {
  Decoded decoded;
  if (is_calicos(key.kind)) {
    auto value = wire::calico::decode_value(key, bytes);
    if (!value) return fail(value.error().in(place));
    TRY(decoded.value, with_beside(key, *std::move(value), beside));
  } else {
    TRY(decoded, decode_own(key, place, bytes));
  }
  if (const auto* block = std::get_if<core::Block>(&decoded.value)) {
    if (const auto valid = core::check_block(*block); !valid) return fail(valid.error().in(place));
  }
  if (const auto* handle = std::get_if<core::Handle>(&decoded.value)) {
    if (const auto valid = core::check_block_names(*handle); !valid) return fail(valid.error().in(place));
  }
  return decoded;
}

std::shared_ptr<const Value> without_beside(const Key& key, const std::string& place, std::string_view bytes) {
  auto alone = decode(key, place, bytes, std::nullopt);
  return alone ? std::make_shared<const Value>(std::move(alone->value)) : nullptr;
}

bool is_written_by(const Key& key, const Value& value, const WriteToken& token, std::string_view stored) {
  if (!is_calicos(key.kind)) {
    const auto own = token_and_record_of(stored);
    return own && own->token == token;
  }
  const auto uid = wire::calico::uid_in(key, stored);
  if (uid && *uid == uid_of(token)) return true;
  return encode(value, token, WallTime{}).value == stored;
}

bool names_its_commit(const Write& write) {
  if (!write.value) return false;
  switch (write.key.kind) {
    case Kind::range_allocation:
    case Kind::ipam_config:
    case Kind::block:
    case Kind::affinity:
    case Kind::handle:
      return false;
    case Kind::pool:
    case Kind::reservation:
    case Kind::node:
      return write.condition.kind == Condition::Kind::absent;  // its UID
    default:
      return true;
  }
}

}  // namespace croft::store::calico
