#pragma once

// All of Kubernetes' objects in etcd have two forms, an envelope and metadata. Private to kubernetes_*.cc.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include <fmt/format.h>
#include <kube/kube.pb.h>

#include "base/json/document.h"
#include "base/result.h"
#include "services/format/kubernetes_objects.h"

namespace croft::wire::kube {

namespace pb = croft::kube;

/// A member of the JSON form, and where it stands in the protobuf form. Others are passed over.
struct Field {
  enum class Type : std::uint8_t { text, int32, boolean, base64, time, int_or_text, texts, map, object, objects };
  std::string_view name;
  int number;
  Type type = Type::text;
  std::span<const Field> parts{};  ///< of an object
};

/// A kind, as its objects tell it. An API group has several versions with the same members.
struct ObjectType {
  std::string_view kind;
  std::string_view group;  ///< "": the core group, whose only version is v1
  std::span<const Field> fields;
};
extern const ObjectType kRangeAllocation, kService, kIpAddress, kServiceCidr;

[[nodiscard]] Error damaged(std::string_view place, std::string_view why);

/// A value in its form: the protobuf's envelope or the JSON's members.
using Opened = std::variant<pb::Unknown, JsonDocument>;

/// Errors as those of kubernetes_objects.h, also for another kind of object.
[[nodiscard]] Result<Opened> open(std::string_view place, std::string_view bytes, const ObjectType& type);

/// An object of the JSON form in the protobuf form, without envelope. Error: invalid_argument, naming the member.
[[nodiscard]] Result<std::string> protobuf_of(JsonRef object, const ObjectType& type);

template <class Message>
[[nodiscard]] Result<Message> parse_message(std::string_view place, const std::string& bytes, const ObjectType& type) {
  Message message;
  if (message.ParseFromString(bytes)) return message;
  return fail(damaged(place, fmt::format("raw: it is no {} in protobuf, or it is cut off", type.kind)));
}
/// The object of a source in any form.
template <class Message>
[[nodiscard]] Result<Message> message_in(std::string_view place, const KubernetesSource& source,
                                         const ObjectType& type) {
  if (const auto* object = std::get_if<JsonRef>(&source)) {
    const auto bytes = protobuf_of(*object, type);
    if (!bytes) return fail(damaged(place, bytes.error().message));
    return parse_message<Message>(place, *bytes, type);
  }
  TRY(const Opened opened, open(place, std::get<std::string_view>(source), type));
  if (const auto* json = std::get_if<JsonDocument>(&opened)) return message_in<Message>(place, json->root(), type);
  return parse_message<Message>(place, std::get<pb::Unknown>(opened).raw(), type);
}

/// The bytes of a value in protobuf.
[[nodiscard]] std::string print(const pb::Unknown& envelope);

/// A new envelope: with the fields that Kubernetes writes though they are empty.
[[nodiscard]] pb::Unknown new_envelope(std::string_view api_version, const ObjectType& type);
/// New metadata, empty in the same way.
[[nodiscard]] pb::ObjectMeta new_metadata();

}  // namespace croft::wire::kube
