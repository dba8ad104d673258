#include "store/kube/format/message_fields.h"

#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <kube/kube.pb.h>

#include "base/net/echo.h"

namespace croft::wire::kube {
namespace {

namespace pb = croft::kube;

constexpr std::uint32_t kMetadata = 1;  ///< of every object and list
constexpr std::uint32_t kItems = 2;     ///< of every list

/// By bound, which are in tables that stay.
using Counts = std::map<const FieldBound*, std::size_t>;

[[nodiscard]] bool count(std::string_view message, std::span<const FieldBound> bounds, Counts& counts) {
  MessageFields fields(message);
  while (const auto field = fields.next()) {
    for (const FieldBound& bound : bounds) {
      if (bound.number != field->number) continue;
      ++counts[&bound];
      if (!bound.inside.empty() && !count(field->bytes, bound.inside, counts)) return false;
    }
  }
  return fields.is_sound();
}

/// For a message; empty where there is none.
std::string name_in(std::string_view object) {
  std::string_view found;
  MessageFields fields(object);
  while (const auto field = fields.next()) {
    if (field->number != kMetadata || !field->has_bytes) continue;
    MessageFields of_metadata(field->bytes);
    while (const auto one = of_metadata.next()) {
      if (one->number == 1 && one->has_bytes) found = one->bytes;
    }
  }
  return std::string(found);
}

[[nodiscard]] Result<void> check(std::string_view kind, std::string_view object, const Counts& counts) {
  for (const auto& [bound, many] : counts) {
    if (bound->count_max == 0 || many <= bound->count_max) continue;
    return fail(
        ErrorCode::corrupt,
        fmt::format("{} of {} {} has {} entries, and at most {} are read: no API server admits so many; look at "
                    "what answers as one",
                    bound->name, kind, net::echo(name_in(object)), many, bound->count_max));
  }
  return {};
}

Error no_list(std::string_view what, std::string_view kind) {
  return {ErrorCode::corrupt,
          fmt::format("what the API answered as {}, {}, is no such list in protobuf, or it is cut off", what,
                      kind.empty() ? "of no kind" : net::echo(kind)),
          {}};
}

template <class Message>
[[nodiscard]] bool merge(Message& message, std::string_view bytes) {
  Message more;
  if (bytes.size() > kApiListBytesMax || !more.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return false;
  }
  message.MergeFrom(more);
  return true;
}

struct Envelope {
  pb::TypeMeta type;
  std::string_view raw;
};

[[nodiscard]] bool open_envelope(std::string_view body, Envelope& envelope) {
  constexpr std::uint32_t kTypeMeta = 1, kRaw = 2;
  MessageFields fields(body);
  while (const auto field = fields.next()) {
    if (field->number == kTypeMeta && !merge(envelope.type, field->bytes)) return false;
    if (field->number == kRaw) envelope.raw = field->bytes;
  }
  return fields.is_sound();
}

}  // namespace

bool MessageFields::take_number(std::uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) return false;
    const auto byte = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if ((byte & 0x80U) == 0) return true;
  }
  return false;
}

bool MessageFields::take_bytes(std::uint64_t size, std::string_view& bytes) {
  if (size > rest_.size()) return false;
  bytes = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return true;
}

std::optional<MessageFields::Field> MessageFields::next() {
  if (rest_.empty() || !is_sound_) return std::nullopt;
  enum : std::uint8_t { kNumber = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
  std::uint64_t tag = 0, number = 0;
  Field field;
  is_sound_ = take_number(tag) && tag >> 3 != 0 && tag <= std::numeric_limits<std::uint32_t>::max();
  if (!is_sound_) return std::nullopt;
  field.number = static_cast<std::uint32_t>(tag >> 3);
  std::string_view fixed;
  switch (tag & 7U) {
    case kNumber:
      is_sound_ = take_number(number);
      break;
    case kFixed64:
      is_sound_ = take_bytes(8, fixed);
      break;
    case kBytes:
      field.has_bytes = true;
      is_sound_ = take_number(number) && take_bytes(number, field.bytes);
      break;
    case kFixed32:
      is_sound_ = take_bytes(4, fixed);
      break;
    default:
      is_sound_ = false;  // groups, which Kubernetes has none of
  }
  return is_sound_ ? std::optional(field) : std::nullopt;
}

Result<void> check_counts(std::string_view kind, std::string_view object, std::span<const FieldBound> bounds) {
  Counts counts;
  if (!count(object, bounds, counts)) {
    return fail(ErrorCode::corrupt, fmt::format("a {} of the API server is no protobuf, or it is cut off", kind));
  }
  return check(kind, object, counts);
}

Result<ProtobufList> open_protobuf_list(std::string_view what, std::string_view body, std::int64_t limit) {
  if (body.size() > kApiListBytesMax) return fail(kTooLarge, "a list of the API server is too long");
  body.remove_prefix(kProtobufMark.size());
  Envelope envelope;
  const bool is_open = open_envelope(body, envelope);
  ProtobufList list;
  list.kind = envelope.type.kind();
  list.api_version = envelope.type.api_version();
  if (!is_open) return fail(no_list(what, list.kind));

  const std::size_t items_max = page_items_max(limit);
  std::size_t items = 0;
  pb::ListMeta meta;
  MessageFields fields(envelope.raw);
  while (const auto field = fields.next()) {
    if (field->number == kMetadata && !merge(meta, field->bytes)) return fail(no_list(what, list.kind));
    if (field->number != kItems) continue;
    if (!field->has_bytes) return fail(no_list(what, list.kind));
    if (field->bytes.size() > kApiObjectBytesMax) {
      return fail(ErrorCode::corrupt, fmt::format("an object in {} of the API server has {} bytes, and at most {} are "
                                                  "read",
                                                  what, field->bytes.size(), kApiObjectBytesMax));
    }
    // Counted to the end: the error says how many there are.
    if (++items <= items_max) list.items.push_back(field->bytes);
  }
  if (!fields.is_sound() || meta.resource_version().empty()) return fail(no_list(what, list.kind));
  TRY_VOID(check_page_items(items, limit));
  if (meta.continue_().size() > kContinueBytesMax) {
    return fail(ErrorCode::corrupt,
                fmt::format("metadata.continue of {} of the API server has {} bytes, and at most {} are read", what,
                            meta.continue_().size(), kContinueBytesMax));
  }
  list.resource_version = meta.resource_version();
  list.continue_token = meta.continue_();
  if (meta.has_remaining_item_count()) list.remaining = meta.remaining_item_count();
  return list;
}

}  // namespace croft::wire::kube
