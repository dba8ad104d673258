#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "base/json/decode.h"
#include "base/json/writer.h"
#include "base/text/base64.h"
#include "services/format/kubernetes_frame.h"
#include "services/format/kubernetes_objects.h"

// Kubernetes writes these objects back whole, and so does Croft: everything but `range` and `data` as it was read.
namespace croft::wire::kube {
namespace {

/// What was read from protobuf: `raw` of the envelope and `data` of the object are empty.
struct ProtobufRest {
  pb::Unknown envelope;
  pb::RangeAllocation object;
};

/// What was read from JSON: the members in their order; behind them `range` and `data`, where they were missing.
struct JsonRest {
  struct Member {
    std::string name;
    std::string json;
  };
  std::vector<Member> members;
  bool has_data = false;  ///< not null, nor missing
  bool ends_with_newline = false;
};

class RangeRest final : public core::ForeignRest {
 public:
  explicit RangeRest(std::variant<ProtobufRest, JsonRest> held) : form(std::move(held)) {}
  const std::variant<ProtobufRest, JsonRest> form;
};

[[nodiscard]] Result<core::RangeAllocation> from_protobuf(std::string_view place, pb::Unknown envelope) {
  TRY(auto object, parse_message<pb::RangeAllocation>(place, envelope.raw(), kRangeAllocation));
  if (pb::ObjectMeta metadata; !metadata.ParseFromString(object.metadata())) {
    return fail(damaged(place, "metadata: no protobuf, or it is cut off"));
  }
  envelope.clear_raw();
  core::RangeAllocation range{object.range(), object.data(), nullptr};
  if (object.has_data()) object.set_data("");
  range.rest = std::make_shared<RangeRest>(ProtobufRest{std::move(envelope), std::move(object)});
  return range;
}

[[nodiscard]] Result<core::RangeAllocation> from_json(std::string_view place, const JsonDocument& document,
                                                      bool ends_with_newline) {
  TRY(const auto object, message_in<pb::RangeAllocation>(place, document.root(), kRangeAllocation));
  JsonRest rest{{}, object.has_data(), ends_with_newline};
  bool has_range = false, has_data = false;
  for (auto member = document.root().first_child(); member; member = member->next_sibling()) {
    has_range |= member->key() == "range";
    has_data |= member->key() == "data";
    JsonWriter out(JsonWriter::Layout::compact);
    copy_json(out, *member);
    rest.members.push_back({std::string(member->key()), std::move(out).take()});
  }
  if (!has_range) rest.members.push_back({"range", ""});
  if (!has_data) rest.members.push_back({"data", ""});
  return core::RangeAllocation{object.range(), object.data(), std::make_shared<RangeRest>(std::move(rest))};
}

std::string to_protobuf(const core::RangeAllocation& range, ProtobufRest rest) {
  if (!range.range.empty() || rest.object.has_range()) rest.object.set_range(range.range);
  if (!range.data.empty() || rest.object.has_data()) rest.object.set_data(range.data);
  rest.envelope.set_raw(rest.object.SerializeAsString());
  return print(rest.envelope);
}

std::string to_json(const core::RangeAllocation& range, const JsonRest& rest) {
  JsonWriter out(JsonWriter::Layout::compact, range.data.size() / 3 * 4 + 256);
  out.begin_object();
  for (const JsonRest::Member& member : rest.members) {
    const bool is_data = member.name == "data", is_new = is_data && (!range.data.empty() || rest.has_data);
    if (is_data && !is_new && member.json.empty()) continue;
    out.key(member.name);
    if (member.name == "range") {
      out.text(range.range);
    } else {
      out.raw(is_new ? "\"" + encode_base64(range.data) + "\"" : member.json);
    }
  }
  out.end_object();
  return std::move(out).take() + (rest.ends_with_newline ? "\n" : "");
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
