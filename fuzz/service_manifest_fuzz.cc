// Manifests of Services, as people write them: YAML, JSON, several documents, lists.
//
// Input: the text of a file.
//
// Checked: nothing crashes; errors are of the codes they may be of and have one line of printable text; what is JSON
// too is read as JSON is; a Service that was read, printed as `croft service show` prints it, in JSON or in YAML, and
// read again is the same.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/assert.h"
#include "cli/croft/json_output.h"
#include "services/commands/service_views.h"
#include "services/format/service_manifest.h"
#include "store/kube/format/yaml.h"

namespace {

using croft::ErrorCode;
using Json = nlohmann::json;
namespace app = croft::app;
namespace wire = croft::wire;

bool is_printable_line(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) { return c >= 0x20 && c < 0x7f; });
}

template <class T>
bool is_read(const croft::Result<T>& result) {
  if (result) return true;
  CROFT_ASSERT(result.error().code == ErrorCode::invalid_argument);
  CROFT_ASSERT(!result.error().message.empty() && is_printable_line(result.error().message));
  return false;
}

/// Whether YAML takes the characters for what JSON does: it folds lines at some above ASCII, and has no U+007F.
bool is_plain(std::string_view text) {
  return std::ranges::none_of(text, [](unsigned char c) { return c >= 0x7f; });
}

bool agree(const Json& yaml, const Json& json) {
  // A number that is no integer of 64 bits stays a text.
  if (yaml.is_string() && json.is_number()) return !json.is_number_integer() || json.is_number_unsigned();
  if (yaml.is_number() && json.is_number()) return yaml.get<double>() == json.get<double>();
  if (yaml.is_array() && json.is_array()) {
    return std::equal(yaml.begin(), yaml.end(), json.begin(), json.end(), agree);
  }
  if (yaml.is_object() && json.is_object()) {
    return std::ranges::equal(yaml.items(), json.items(), [](const auto& a, const auto& b) {
      return a.key() == b.key() && agree(a.value(), b.value());
    });
  }
  return yaml == json;
}

void check_json(std::string_view text) {
  const auto documents = wire::parse_yaml_documents(text);
  if (!is_read(documents) || !is_plain(text)) return;
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return;
  if (json.is_null()) {
    CROFT_ASSERT(documents->empty());
  } else {
    CROFT_ASSERT(documents->size() == 1 && agree(documents->front(), json));
  }
}

/// A target port of digits is a number, whatever quotes and zeros it came with.
void count_target_ports(croft::core::Service& service) {
  for (auto& port : service.ports) {
    const bool is_number = !port.target_port.empty() && port.target_port.size() <= 5 &&
                           port.target_port.find_first_not_of("0123456789") == std::string::npos;
    if (is_number) port.target_port = std::to_string(std::stoi(port.target_port));
  }
}

/// YAML has keys of up to 1024 characters, Kubernetes of 317; an escaped one is up to six times as long.
bool has_long_keys(const croft::core::Service& service) {
  const auto is_long = [](const auto& pair) { return pair.first.size() > 160; };
  return std::ranges::any_of(service.labels, is_long) || std::ranges::any_of(service.selector, is_long);
}

void check_again(const croft::core::Service& service, const std::string& text) {
  const auto again = wire::parse_service_manifests(text);
  CROFT_ASSERT(again && again->size() == 1);
  CROFT_ASSERT(again->front().service == service);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_json(text);
  auto manifests = wire::parse_service_manifests(text);
  if (!is_read(manifests)) return 0;
  CROFT_ASSERT(!manifests->empty());
  for (wire::ServiceManifest& manifest : *manifests) {
    count_target_ports(manifest.service);
    if (has_long_keys(manifest.service)) continue;
    const app::Data printed = app::json_of({manifest.service, {}});
    const std::string json = printed.json();
    check_again(manifest.service, printed.yaml());
    if (is_plain(json)) check_again(manifest.service, json);
  }
  return 0;
}
