#include "store/kube/format/config_map.h"

#include "base/json/decode.h"
#include "store/kube/format/api.h"

namespace croft::wire::kube {

Result<std::string> text_in_config_map(std::string_view json, const std::string& name_space, const std::string& name,
                                       std::string_view key) {
  TRY(const ApiObject map, decode_object(json, {"v1", "ConfigMap", name_space, name}));
  std::string text;
  const JsonAt at{map.value, nullptr, {}, {}};
  const MaybeFault fault = each_member(at, [&](const JsonAt& data) -> MaybeFault {
    if (data.name != "data") return {};
    return each_member(data, [&](const JsonAt& member) -> MaybeFault {
      if (member.name != key) return {};
      return read_text(member, kApiAnswerBytesMax, text);
    });
  });
  if (fault) return fail(ErrorCode::corrupt, fault->to_string());
  return text;
}

}  // namespace croft::wire::kube
