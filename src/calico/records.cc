#include "calico/records.h"

#include <memory>
#include <type_traits>
#include <utility>

#include "base/assert.h"

namespace croft::wire::calico {
namespace {

/// The record as it was read, or what of it core does not have.
template <class Record>
class Box final : public core::ForeignRest {
 public:
  explicit Box(Record boxed) : record(std::move(boxed)) {}
  [[nodiscard]] std::string_view identity() const override {
    if constexpr (std::is_same_v<Record, PoolRecord>) return record.metadata.uid;
    return {};
  }
  [[nodiscard]] std::string_view cidr_as_found() const override {
    if constexpr (std::is_same_v<Record, PoolRecord>) return record.rest.cidr_as_found;
    return {};
  }
  const Record record;
};

template <class Record>
core::ForeignRestPtr box(Record record) {
  return std::make_shared<Box<Record>>(std::move(record));
}

/// The content of `rest`; the default when it holds nothing of this format.
template <class Record>
Record unbox(const core::ForeignRestPtr& rest) {
  const auto* held = dynamic_cast<const Box<Record>*>(rest.get());
  return held != nullptr ? held->record : Record();
}

core::Value value_of(BlockRecord record) {
  for (core::Attribute& attribute : record.block.attributes) {
    if (attribute.cooling) attribute.cooling->in_calicos_way = true;
  }
  if (record.rest != BlockRest()) record.block.rest = box(std::move(record.rest));
  return std::move(record.block);
}

core::Value value_of(AffinityRecord record) {
  core::Affinity affinity = record.affinity;
  if (record.state_empty || !record.rest.empty()) affinity.rest = box(std::move(record));
  return affinity;
}

core::Value value_of(HandleRecord record) {
  core::Handle handle = record.handle;
  if (record.blocks_null || !record.rest.empty()) handle.rest = box(std::move(record));
  return handle;
}

core::Value value_of(IpamConfigRecord record) {
  core::IpamConfig config = record.config;
  if (record.persistence_empty || !record.rest.empty()) config.rest = box(std::move(record));
  return config;
}

core::Value value_of(PoolRecord record) {
  core::Pool pool = record.pool;
  pool.unallocatable = record.unallocatable();
  pool.rest = box(std::move(record));
  return pool;
}

core::Value value_of(ReservationRecord record) {
  core::Reservation reservation = record.reservation;
  reservation.rest = box(std::move(record));
  return reservation;
}

core::Value value_of(NodeRecord record) {
  core::Node node = record.node;
  node.rest = box(std::move(record));
  return node;
}

/// A record to write: what was read with the value in its place.
template <class Record, class Value>
Record rewritten(const Value& value, Value Record::*place) {
  Record record = unbox<Record>(value.rest);
  record.*place = value;
  (record.*place).rest = nullptr;
  return record;
}

template <class Record, class Value>
Record rewritten(const Value& value, Value Record::*place, const Birth& birth) {
  Record record = rewritten(value, place);
  if (value.rest == nullptr) {
    record.metadata.uid = birth.uid;
    record.metadata.created = birth.at;
  }
  return record;
}

struct Encoder {
  const Birth& birth;

  std::string operator()(const core::Pool& pool) const { return encode(rewritten(pool, &PoolRecord::pool, birth)); }
  std::string operator()(const core::Reservation& reservation) const {
    return encode(rewritten(reservation, &ReservationRecord::reservation, birth));
  }
  std::string operator()(const core::Node& node) const { return encode(rewritten(node, &NodeRecord::node, birth)); }
  std::string operator()(const core::IpamConfig& config) const {
    return encode(rewritten(config, &IpamConfigRecord::config));
  }
  std::string operator()(const core::Affinity& affinity) const {
    return encode(rewritten(affinity, &AffinityRecord::affinity));
  }
  std::string operator()(const core::Handle& handle) const { return encode(rewritten(handle, &HandleRecord::handle)); }
  std::string operator()(const core::Block& block) const {
    BlockRecord record{block, unbox<BlockRest>(block.rest)};
    record.block.rest = nullptr;
    return encode(record);
  }
  template <class Other>
  std::string operator()(const Other&) const {
    CROFT_ASSERT(false);
  }
};

}  // namespace

Result<core::Value> decode_value(const core::Key& key, std::string_view bytes) {
  TRY(const Key place, key_of(key));
  switch (key.kind) {
    case core::Kind::pool: {
      TRY(PoolRecord record, decode_pool(key.name, bytes));
      return value_of(std::move(record));
    }
    case core::Kind::reservation: {
      TRY(ReservationRecord record, decode_reservation(key.name, bytes));
      return value_of(std::move(record));
    }
    case core::Kind::node: {
      TRY(NodeRecord record, decode_node(key.name, bytes));
      return value_of(std::move(record));
    }
    case core::Kind::ipam_config: {
      TRY(IpamConfigRecord record, decode_ipam_config(bytes));
      return value_of(std::move(record));
    }
    case core::Kind::block: {
      TRY(BlockRecord record, decode_block(std::get<BlockKey>(place), bytes));
      return value_of(std::move(record));
    }
    case core::Kind::affinity: {
      TRY(AffinityRecord record, decode_affinity(std::get<AffinityKey>(place), bytes));
      return value_of(std::move(record));
    }
    case core::Kind::handle: {
      TRY(HandleRecord record, decode_handle(std::get<HandleKey>(place), bytes));
      return value_of(std::move(record));
    }
    default:
      break;
  }
  CROFT_ASSERT(false);
}

std::string encode_value(const core::Value& value, const Birth& birth) { return std::visit(Encoder{birth}, value); }

std::optional<std::string> uid_in(const core::Key& key, std::string_view bytes) {
  const auto metadata = [&]() -> std::optional<Metadata> {
    switch (key.kind) {
      case core::Kind::pool:
        if (auto record = decode_pool(key.name, bytes)) return record->metadata;
        break;
      case core::Kind::reservation:
        if (auto record = decode_reservation(key.name, bytes)) return record->metadata;
        break;
      case core::Kind::node:
        if (auto record = decode_node(key.name, bytes)) return record->metadata;
        break;
      default:
        break;
    }
    return std::nullopt;
  }();
  if (!metadata || metadata->uid.empty()) return std::nullopt;
  return metadata->uid;
}

}  // namespace croft::wire::calico
