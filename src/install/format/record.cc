#include "install/format/record.h"

#include <algorithm>
#include <array>
#include <utility>

#include <nlohmann/json.hpp>

namespace croft::wire {
namespace {

using Json = nlohmann::json;

constexpr int kVersion = 1;
constexpr std::size_t kNameBytesMax = 200;
constexpr const char* kKubeconfigKind = "kubeconfig";
constexpr std::array<std::pair<const char*, std::set<std::string> InstallRecord::*>, 2> kKinds = {
    {{"program", &InstallRecord::programs}, {"network", &InstallRecord::networks}}};

}  // namespace

bool is_install_name(std::string_view name) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_';
  };
  return !name.empty() && name.size() <= kNameBytesMax && name.front() != '.' && std::ranges::all_of(name, is_plain);
}

std::string encode(const InstallRecord& record) {
  Json files = Json::array();
  for (const auto& [kind, names] : kKinds) {
    for (const std::string& name : record.*names) files.push_back({{"kind", kind}, {"name", name}});
  }
  if (record.kubeconfig) files.push_back({{"kind", kKubeconfigKind}, {"name", kKubeconfigName}});
  const Json json{{"version", kVersion}, {"files", files}, {"network", record.network}, {"mainPlugin", record.main}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<InstallRecord> decode_install_record(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("version") || !json["version"].is_number_integer()) {
    return fail(ErrorCode::corrupt, "it is no record of an installation");
  }
  if (json["version"] > kVersion) return fail(ErrorCode::newer_version, "version: a newer Croft wrote it");
  InstallRecord record;
  const auto text_of = [](const Json& object, const char* name) {
    const bool is_text = object.is_object() && object.contains(name) && object[name].is_string();
    return is_text ? object[name].get<std::string>() : std::string();
  };
  record.network = text_of(json, "network");
  record.main = text_of(json, "mainPlugin");
  for (const Json& file : json.value("files", Json::array())) {
    const std::string kind = text_of(file, "kind"), name = text_of(file, "name");
    if (kind == kKubeconfigKind) {
      record.kubeconfig = true;
      continue;
    }
    const auto known = std::ranges::find_if(kKinds, [&](const auto& one) { return one.first == kind; });
    if (known == kKinds.end() || !is_install_name(name)) {
      return fail(ErrorCode::corrupt, "files: one has no plain name, or an unknown kind");
    }
    (record.*(known->second)).insert(name);
  }
  return record;
}

}  // namespace croft::wire
