#include <utility>

#include <nlohmann/json.hpp>

#include "base/json/document.h"
#include "cni/format/environment.h"
#include "hostlocal/format/config.h"

namespace croft::wire::cni {
namespace {

using Json = nlohmann::json;

/// No configuration is deeper; printing one goes as deep as it is.
constexpr std::size_t kConfigDepthMax = 200;

std::string text_of(const Json& object, const char* name) {
  const auto member = object.find(name);
  return member != object.end() && member->is_string() ? member->get<std::string>() : std::string();
}

bool calls_host_local(const Json& plugin) {
  const auto ipam = plugin.is_object() ? plugin.find("ipam") : plugin.end();
  return plugin.is_object() && ipam != plugin.end() && ipam->is_object() && text_of(*ipam, "type") == "host-local";
}

const Json* find_plugin(const Json& config) {
  if (calls_host_local(config)) return &config;
  const auto plugins = config.is_object() ? config.find("plugins") : config.end();
  if (!config.is_object() || plugins == config.end() || !plugins->is_array()) return nullptr;
  for (const Json& plugin : *plugins) {
    if (calls_host_local(plugin)) return &plugin;
  }
  return nullptr;
}

/// The members that libcni adds before it calls a plugin.
Json as_called(const Json& plugin, const Json& config, const Json& capability_args) {
  Json called = plugin;
  for (const char* name : {"name", "cniVersion"}) {
    if (config.contains(name)) called[name] = config[name];
  }
  if (text_of(called, "name").empty()) called["name"] = "unnamed";
  const auto capabilities = plugin.find("capabilities");
  if (capabilities == plugin.end() || !capabilities->is_object() || !capability_args.is_object()) return called;
  Json given = Json::object();
  for (const auto& [name, wanted] : capabilities->items()) {
    if (wanted == true && capability_args.contains(name)) given[name] = capability_args[name];
  }
  if (!given.empty()) called["runtimeConfig"] = std::move(given);
  return called;
}

}  // namespace

Result<std::optional<HostLocalConfig>> find_host_local_config(std::string_view bytes, const std::string& network,
                                                              std::string_view capability_args) {
  TRY_VOID(parse_json(bytes, {.depth_max = kConfigDepthMax}));
  const Json config = Json::parse(bytes, nullptr, false);
  const Json* plugin = find_plugin(config);
  if (plugin == nullptr) return std::optional<HostLocalConfig>();
  if (!network.empty() && text_of(config, "name") != network) return std::optional<HostLocalConfig>();
  const bool with_args = parse_json(capability_args, {.depth_max = kConfigDepthMax}).has_value();
  const Json args = with_args ? Json::parse(capability_args, nullptr, false) : Json();
  TRY(JsonDocument called, parse_json(as_called(*plugin, config, args).dump()));
  const auto named = read_network(std::move(called));
  if (!named) return fail(ErrorCode::invalid_argument, named.error().msg);
  auto decoded = decode_host_local_config(*named, "", Command::add);
  if (decoded) return std::optional(*std::move(decoded));
  return fail(ErrorCode::invalid_argument, decoded.error().msg);
}

}  // namespace croft::wire::cni
