#include "cni/format/network.h"

#include <array>
#include <utility>

#include "base/json/reader.h"
#include "base/json/writer.h"
#include "base/text/go_text.h"

namespace croft::wire::cni {
namespace {

MaybeFault take(const JsonAt& at, std::string& out) { return read_text(at, kStdinBytesMax, out); }

MaybeFault read_top_level_text(const JsonDocument& config, std::string_view name, std::string& out) {
  const std::array<JsonMember<std::string>, 1> members = {{{name, take}}};
  return read_object<std::string>(JsonAt{config.root(), nullptr, {}, {}}, members, out);
}

}  // namespace

Checked<JsonDocument> parse_network_config(std::string_view stdin_bytes, const JsonLimits& limits) {
  auto document = parse_json(stdin_bytes, limits);
  if (document) return *std::move(document);
  return Error{Code::decoding_failure, "error unmarshall network config: " + document.error().message, {}};
}

Checked<std::string> read_network_name(const JsonDocument& config) {
  std::string name;
  if (const auto fault = read_top_level_text(config, "name", name)) {
    return Error{Code::decoding_failure, "error unmarshall network config: " + fault->to_string(), {}};
  }
  if (auto error = check_network_name(name)) return *std::move(error);
  return name;
}

Checked<std::string> read_cni_version(const JsonDocument& config) {
  std::string version;
  if (const auto fault = read_top_level_text(config, "cniVersion", version)) {
    return Error{Code::decoding_failure, "decoding version from network config: " + fault->to_string(), {}};
  }
  return version.empty() ? std::string(kDefaultVersion) : version;
}

Checked<Network> read_network(JsonDocument config) {
  auto name = read_network_name(config);
  if (!name) return name.error();
  auto version = read_cni_version(config);
  if (!version) return version.error();
  return Network{std::move(config), *std::move(name), *std::move(version)};
}

std::string as_called(JsonRef list, JsonRef plugin, std::string_view runtime_config) {
  const auto is_of_list = [](JsonRef member) {
    return same_member_name(member.key(), "name") || same_member_name(member.key(), "cniVersion");
  };
  JsonWriter out(JsonWriter::Layout::compact);
  out.begin_object();
  for (auto member = list.first_child(); member; member = member->next_sibling()) {
    if (is_of_list(*member)) copy_json(out, member->key(), *member);
  }
  for (auto member = plugin.first_child(); member; member = member->next_sibling()) {
    if (!is_of_list(*member)) copy_json(out, member->key(), *member);
  }
  if (!runtime_config.empty()) out.raw("runtimeConfig", runtime_config);
  out.end_object();
  return std::move(out).take();
}

bool has_previous_result(const Network& network) {
  for (auto member = network.document.root().first_child(); member; member = member->next_sibling()) {
    if (member->key() == "prevResult") return member->kind() == JsonKind::object;
  }
  return false;
}

}  // namespace croft::wire::cni
