#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "base/json/writer.h"
#include "base/text/base64.h"
#include "store/kube/format/frame.h"
#include "store/kube/format/json.h"
#include "store/kube/format/objects.h"

// Kubernetes writes these objects back whole, and so does Croft: everything but `range` and `data` as it was read.
namespace croft::wire::kube {
namespace {

/// What was read from protobuf: `raw` of the envelope and `data` of the object are empty.
struct ProtobufRest {
  pb::Unknown envelope;
  pb::RangeAllocation object;
};

/// What was read from JSON: the members in their order, those of `range` and `data` without their values.
struct JsonRest {
  struct Member {
    std::string name;
    std::string json;
  };
  std::vector<Member> members;
  bool has_no_data = false;  ///< null, or no such member
  bool ends_with_newline = false;
};

class RangeRest final : public core::ForeignRest {
 public:
  explicit RangeRest(std::variant<ProtobufRest, JsonRest> held) : form(std::move(held)) {}
  const std::variant<ProtobufRest, JsonRest> form;
};

[[nodiscard]] Result<core::RangeAllocation> from_protobuf(std::string_view place, pb::Unknown envelope) {
  TRY(auto object, message_in<pb::RangeAllocation>(place, envelope, kRangeAllocation));
  if (pb::ObjectMeta metadata; !metadata.ParseFromString(object.metadata())) {
    return fail(damaged(place, "metadata: no protobuf, or it is cut off"));
  }
  envelope.clear_raw();
  core::RangeAllocation range;
  range.range = object.range();
  range.data = object.data();
  if (object.has_data()) object.set_data("");
  range.rest = std::make_shared<RangeRest>(ProtobufRest{std::move(envelope), std::move(object)});
  return range;
}

[[nodiscard]] Result<core::RangeAllocation> from_json(std::string_view place, const JsonDocument& document,
                                                      bool ends_with_newline) {
  pb::RangeAllocation object;
  if (auto fault = read_range_allocation({document.root(), nullptr, {}, {}}, object)) {
    return fail(damaged(place, fault->to_string()));
  }
  JsonRest rest;
  rest.has_no_data = !object.has_data();
  rest.ends_with_newline = ends_with_newline;
  static_cast<void>(each_member({document.root(), nullptr, {}, {}}, [&](const JsonAt& found) -> MaybeFault {
    JsonRest::Member& member = rest.members.emplace_back();
    member.name = found.name;
    if (member.name == "range" || member.name == "data") return {};
    JsonWriter out(JsonWriter::Layout::compact);
    copy_json(out, found.value);
    member.json = std::move(out).take();
    return {};
  }));
  core::RangeAllocation range;
  range.range = object.range();
  range.data = object.data();
  range.rest = std::make_shared<RangeRest>(std::move(rest));
  return range;
}

std::string to_protobuf(const core::RangeAllocation& range, ProtobufRest rest) {
  if (!range.range.empty() || rest.object.has_range()) rest.object.set_range(range.range);
  if (!range.data.empty() || rest.object.has_data()) rest.object.set_data(range.data);
  rest.envelope.set_raw(rest.object.SerializeAsString());
  return print(rest.envelope);
}

std::string to_json(const core::RangeAllocation& range, const JsonRest& rest) {
  JsonWriter out(JsonWriter::Layout::compact, range.data.size() / 3 * 4 + 256);
  const auto write_data = [&] {
    out.key("data");
    if (range.data.empty() && rest.has_no_data) {
      out.null();
    } else {
      out.raw("\"" + encode_base64(range.data) + "\"");
    }
  };
  bool has_range = false;
  bool has_data = false;
  out.begin_object();
  for (const JsonRest::Member& member : rest.members) {
    if (member.name == "data") {
      write_data();
      has_data = true;
      continue;
    }
    out.key(member.name);
    if (member.name == "range") {
      out.text(range.range);
      has_range = true;
    } else {
      out.raw(member.json);
    }
  }
  if (!has_range) {
    out.key("range");
    out.text(range.range);
  }
  if (!has_data && !range.data.empty()) write_data();
  out.end_object();
  std::string json = std::move(out).take();
  if (rest.ends_with_newline) json += '\n';
  return json;
}

/// A new object's rest: what Kubernetes writes for one with nothing but a range and bits.
ProtobufRest new_rest() {
  ProtobufRest rest{new_envelope("v1", kRangeAllocation), {}};
  rest.object.set_metadata(new_metadata().SerializeAsString());
  rest.object.set_range("");
  rest.object.set_data("");
  return rest;
}

}  // namespace

Result<core::RangeAllocation> decode_range_allocation(std::string_view place, std::string_view bytes) {
  TRY(Opened opened, open(place, bytes, kRangeAllocation));
  if (auto* envelope = std::get_if<pb::Unknown>(&opened)) return from_protobuf(place, std::move(*envelope));
  return from_json(place, std::get<JsonDocument>(opened), bytes.ends_with('\n'));
}

std::string encode_range_allocation(const core::RangeAllocation& range) {
  const auto* rest = dynamic_cast<const RangeRest*>(range.rest.get());
  if (rest == nullptr) return to_protobuf(range, new_rest());
  if (const auto* json = std::get_if<JsonRest>(&rest->form)) return to_json(range, *json);
  return to_protobuf(range, std::get<ProtobufRest>(rest->form));
}

}  // namespace croft::wire::kube
