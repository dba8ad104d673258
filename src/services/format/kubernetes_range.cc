#include <memory>
#include <utility>
#include <variant>

#include "base/json/writer.h"
#include "base/text/base64.h"
#include "services/format/kubernetes_frame.h"
#include "services/format/kubernetes_objects.h"

// Kubernetes writes these objects back whole, and so does Croft: everything but `range` and `data` as it was read.
namespace croft::wire::kube {
namespace {

/// The value as it was read.
class RangeRest final : public core::ForeignRest {
 public:
  explicit RangeRest(std::string_view read) : bytes(read) {}
  const std::string bytes;
};

std::string to_json(const core::RangeAllocation& range, JsonRef object) {
  bool has_range = false, has_data = false;
  JsonWriter out(JsonWriter::Layout::compact, range.data.size() / 3 * 4 + 256);
  const auto write_data = [&] {
    out.key("data");
    out.raw("\"" + encode_base64(range.data) + "\"");
  };
  out.begin_object();
  for (auto member = object.first_child(); member; member = member->next_sibling()) {
    const bool is_range = member->key() == "range", is_data = member->key() == "data";
    has_range |= is_range;
    has_data |= is_data;
    if (is_data && !(member->is_null() && range.data.empty())) {
      write_data();
      continue;
    }
    out.key(member->key());
    is_range ? out.text(range.range) : copy_json(out, *member);
  }
  if (!has_range) {
    out.key("range");
    out.text(range.range);
  }
  if (!has_data && !range.data.empty()) write_data();
  out.end_object();
  return std::move(out).take();
}

/// A new value: what Kubernetes writes for one with nothing but a range and bits.
std::string new_value(const core::RangeAllocation& range) {
  pb::RangeAllocation object;
  object.set_metadata(new_metadata().SerializeAsString());
  object.set_range(range.range);
  object.set_data(range.data);
  pb::Unknown envelope = new_envelope("v1", kRangeAllocation);
  envelope.set_raw(object.SerializeAsString());
  return print(envelope);
}

}  // namespace

Result<core::RangeAllocation> decode_range_allocation(std::string_view place, std::string_view bytes) {
  TRY(const auto object, message_in<pb::RangeAllocation>(place, bytes, kRangeAllocation));
  if (pb::ObjectMeta metadata; !metadata.ParseFromString(object.metadata())) {
    return fail(damaged(place, "metadata: no protobuf, or it is cut off"));
  }
  return core::RangeAllocation{object.range(), object.data(), std::make_shared<RangeRest>(bytes)};
}

std::string encode_range_allocation(const core::RangeAllocation& range) {
  const auto* rest = dynamic_cast<const RangeRest*>(range.rest.get());
  if (rest == nullptr) return new_value(range);
  Opened opened = open({}, rest->bytes, kRangeAllocation).value();  // it was read
  if (const auto* json = std::get_if<JsonDocument>(&opened)) {
    return to_json(range, json->root()) + (rest->bytes.ends_with('\n') ? "\n" : "");
  }
  auto& envelope = std::get<pb::Unknown>(opened);
  auto object = parse_message<pb::RangeAllocation>({}, envelope.raw(), kRangeAllocation).value();
  if (!range.range.empty() || object.has_range()) object.set_range(range.range);
  if (!range.data.empty() || object.has_data()) object.set_data(range.data);
  envelope.set_raw(object.SerializeAsString());
  return print(envelope);
}

}  // namespace croft::wire::kube
