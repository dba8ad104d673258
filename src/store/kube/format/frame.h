#pragma once

// What all of Kubernetes' objects in etcd share: the two forms, the envelope, metadata. Private to store/kube/format.

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include <fmt/format.h>
#include <kube/kube.pb.h>

#include "base/clock.h"
#include "base/json/document.h"
#include "base/result.h"

namespace croft::wire::kube {

namespace pb = croft::kube;

/// What an object says of its kind. An API group has several versions with the same members.
struct ObjectType {
  std::string_view kind;
  std::string_view group;  ///< "": the core group, whose only version is v1
};
inline constexpr ObjectType kRangeAllocation{"RangeAllocation", ""};
inline constexpr ObjectType kService{"Service", ""};
inline constexpr ObjectType kIpAddress{"IPAddress", "networking.k8s.io"};
inline constexpr ObjectType kServiceCidr{"ServiceCIDR", "networking.k8s.io"};

[[nodiscard]] Error damaged(std::string_view place, std::string_view why);

/// A value in its form: the protobuf's envelope or the JSON's members.
using Opened = std::variant<pb::Unknown, JsonDocument>;

/// Errors as those of kube_objects.h, also for another kind of object.
[[nodiscard]] Result<Opened> open(std::string_view place, std::string_view bytes, const ObjectType& type);

/// The object in an envelope. Error: corrupt.
template <class Message>
[[nodiscard]] Result<Message> message_in(std::string_view place, const pb::Unknown& envelope, const ObjectType& type) {
  Message message;
  if (message.ParseFromString(envelope.raw())) return message;
  return fail(damaged(place, fmt::format("raw: it is no {} in protobuf, or it is cut off", type.kind)));
}

/// The bytes of a value in protobuf.
[[nodiscard]] std::string print(const pb::Unknown& envelope);

/// A new envelope: with the fields that Kubernetes writes though they are empty.
[[nodiscard]] pb::Unknown new_envelope(std::string_view api_version, const ObjectType& type);
/// New metadata, empty in the same way.
[[nodiscard]] pb::ObjectMeta new_metadata();

[[nodiscard]] WallTime time_of(const pb::Time& time);
void set_time(pb::Time& out, WallTime time);

/// Kubernetes writes an absent time as null or empty; both are absent.
[[nodiscard]] inline bool is_set(const pb::Time& time) { return time.has_seconds() && time.seconds() != 0; }

}  // namespace croft::wire::kube
