#include "store/kube/format/frame.h"

#include <chrono>

#include "base/net/echo.h"
#include "store/kube/format/json.h"
#include "store/kube/format/objects.h"

namespace croft::wire::kube {
namespace {

constexpr std::string_view kProtobufStart{"k8s\0", 4};
constexpr std::string_view kEncryptedStart = "k8s:enc:";

/// The seconds of a WallTime's range, which is 292 years to both sides.
constexpr std::int64_t kSecondsMax = std::int64_t{1} << 33;

/// Error: corrupt, where an object is another than the key says.
[[nodiscard]] Result<void> check_type(std::string_view place, std::string_view api_version, std::string_view kind,
                                      const ObjectType& type) {
  if (kind != type.kind) {
    return fail(damaged(place, fmt::format("kind: it is {}, not {}", net::echo(kind), type.kind)));
  }
  const bool is_right = type.group.empty() ? api_version == "v1"
                                           : api_version.starts_with(type.group) &&
                                                 api_version.substr(type.group.size()).starts_with('/');
  if (is_right) return {};
  return fail(damaged(place, fmt::format("apiVersion: {} is none of a {}", net::echo(api_version), type.kind)));
}

[[nodiscard]] Result<pb::Unknown> open_envelope(std::string_view place, std::string_view bytes,
                                                const ObjectType& type) {
  pb::Unknown envelope;
  if (!envelope.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return fail(damaged(place, "its envelope is no protobuf, or it is cut off"));
  }
  TRY_VOID(check_type(place, envelope.type_meta().api_version(), envelope.type_meta().kind(), type));
  if (!envelope.has_raw()) return fail(damaged(place, "raw: there is no object"));
  if (!envelope.content_encoding().empty()) {
    return fail(damaged(place, "contentEncoding: " + net::echo(envelope.content_encoding()) + " is not known"));
  }
  return envelope;
}

[[nodiscard]] Result<JsonDocument> open_json(std::string_view place, std::string_view bytes, const ObjectType& type) {
  auto document = parse_json(bytes, {kObjectBytesMax, kJsonDepthMaxOfObjects});
  if (!document) {
    return fail(damaged(place, "it is neither Kubernetes' protobuf nor JSON: " + document.error().message));
  }
  pb::TypeMeta meta;
  if (auto fault = read_type_meta({document->root(), nullptr, {}, {}}, meta)) {
    return fail(damaged(place, fault->to_string()));
  }
  TRY_VOID(check_type(place, meta.api_version(), meta.kind(), type));
  return *std::move(document);
}

}  // namespace

Error damaged(std::string_view place, std::string_view why) {
  return {ErrorCode::corrupt,
          fmt::format("Kubernetes' record {} is damaged: {}; it was left as it is", net::echo(place), why),
          {}};
}

Result<Opened> open(std::string_view place, std::string_view bytes, const ObjectType& type) {
  if (bytes.size() > kObjectBytesMax) {
    return fail(damaged(place, fmt::format("{} bytes are more than {}", bytes.size(), kObjectBytesMax)));
  }
  if (bytes.starts_with(kEncryptedStart)) {
    return fail(ErrorCode::refused_by_configuration,
                fmt::format("Kubernetes' record {} is encrypted at rest (the kube-apiserver has an "
                            "--encryption-provider-config that covers services): Croft can't read it; add the identity "
                            "provider in front for services and write them again",
                            net::echo(place)));
  }
  if (bytes.starts_with(kProtobufStart)) {
    TRY(pb::Unknown envelope, open_envelope(place, bytes.substr(kProtobufStart.size()), type));
    return Opened(std::move(envelope));
  }
  TRY(JsonDocument document, open_json(place, bytes, type));
  return Opened(std::move(document));
}

std::string print(const pb::Unknown& envelope) { return std::string(kProtobufStart) + envelope.SerializeAsString(); }

pb::Unknown new_envelope(std::string_view api_version, const ObjectType& type) {
  pb::Unknown envelope;
  envelope.mutable_type_meta()->set_api_version(std::string(api_version));
  envelope.mutable_type_meta()->set_kind(std::string(type.kind));
  envelope.set_content_encoding("");
  envelope.set_content_type("");
  return envelope;
}

pb::ObjectMeta new_metadata() {
  pb::ObjectMeta metadata;
  metadata.set_name("");
  metadata.set_generate_name("");
  metadata.set_namespace_("");
  metadata.set_self_link("");
  metadata.set_uid("");
  metadata.set_resource_version("");
  metadata.set_generation(0);
  metadata.mutable_creation_timestamp();
  return metadata;
}

WallTime time_of(const pb::Time& time) {
  if (!is_set(time) || time.seconds() < -kSecondsMax || time.seconds() > kSecondsMax) return {};
  return WallTime(std::chrono::seconds{time.seconds()});
}

void set_time(pb::Time& out, WallTime time) {
  out.set_seconds(std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count());
  out.set_nanos(0);
}

}  // namespace croft::wire::kube
