#include "services/format/service_manifest.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/net/echo.h"
#include "store/kube/format/yaml_documents.h"

namespace croft::wire {
namespace {

using Json = nlohmann::json;

template <class T, std::size_t N>
using Words = std::array<std::pair<std::string_view, T>, N>;

constexpr Words<core::ServiceType, 4> kTypes{{{"ClusterIP", core::ServiceType::cluster_ip},
                                              {"NodePort", core::ServiceType::node_port},
                                              {"LoadBalancer", core::ServiceType::load_balancer},
                                              {"ExternalName", core::ServiceType::external_name}}};
constexpr Words<core::IpFamilyPolicy, 3> kPolicies{{{"SingleStack", core::IpFamilyPolicy::single_stack},
                                                    {"PreferDualStack", core::IpFamilyPolicy::prefer_dual_stack},
                                                    {"RequireDualStack", core::IpFamilyPolicy::require_dual_stack}}};
constexpr Words<net::Family, 2> kFamilies{{{"IPv4", net::Family::v4}, {"IPv6", net::Family::v6}}};
constexpr Words<core::TrafficPolicy, 2> kTrafficPolicies{
    {{"Cluster", core::TrafficPolicy::cluster}, {"Local", core::TrafficPolicy::local}}};
constexpr Words<core::ServiceProtocol, 3> kProtocols{
    {{"TCP", core::ServiceProtocol::tcp}, {"UDP", core::ServiceProtocol::udp}, {"SCTP", core::ServiceProtocol::sctp}}};

template <class T, std::size_t N>
[[nodiscard]] Result<T> parse_word(const Words<T, N>& words, std::string_view text) {
  std::string possible;
  for (const auto& [word, value] : words) {
    if (word == text) return value;
    possible += (possible.empty() ? "" : ", ") + std::string(word);
  }
  return fail(ErrorCode::invalid_argument, fmt::format("{} is none of {}", net::echo(text), possible));
}

[[nodiscard]] Error wrong(const std::string& path, const std::string& what) {
  return {ErrorCode::invalid_argument, fmt::format("{} {}", path, what), {}};
}

/// What a message may repeat without quotes.
[[nodiscard]] bool is_word(const std::string& name) {
  return !name.empty() && name.size() <= net::kEchoBytesMax &&
         std::ranges::all_of(name, [](unsigned char c) { return c > 0x20 && c < 0x7f && c != '"'; });
}

/// Reads members of one object, notes the first that is wrong, and those that nobody asked for.
class Object {
 public:
  /// What many objects of one document share.
  struct Notes {
    std::vector<std::string> unknown;
    std::optional<Error> error;
    void fail(Error wrong) {
      if (!error) error = std::move(wrong);
    }
  };

  Object(const Json& json, std::string path, Notes& notes) : json_(json), path_(std::move(path)), notes_(notes) {
    if (!json_.is_object()) notes_.fail(wrong(path_, "must be an object"));
  }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  ~Object() {
    if (!json_.is_object()) return;
    for (const auto& [name, value] : json_.items()) {
      if (known_.contains(name) || value.is_null()) continue;
      notes_.unknown.push_back(path_of(is_word(name) ? name : net::echo(name)));
    }
  }

  [[nodiscard]] std::string path_of(const std::string& name) const { return path_.empty() ? name : path_ + "." + name; }
  [[nodiscard]] Notes& notes() const { return notes_; }

  /// Null when it is absent or null.
  [[nodiscard]] const Json* find(const char* name) {
    if (!json_.is_object()) return nullptr;
    known_.insert(name);
    const auto it = json_.find(name);
    return it == json_.end() || it->is_null() ? nullptr : &*it;
  }
  void pass_over(std::initializer_list<const char*> names) {
    for (const char* name : names) known_.insert(name);
  }

  void read(const char* name, std::string& text) {
    const Json* value = find(name);
    if (value == nullptr) return;
    if (!value->is_string()) return notes_.fail(wrong(path_of(name), "must be a text; put it in quotes"));
    text = value->get<std::string>();
  }
  void read(const char* name, std::uint16_t& port) {
    const Json* value = find(name);
    if (value == nullptr) return;
    const bool fits = value->is_number_integer() && *value >= 0 && *value <= std::numeric_limits<std::uint16_t>::max();
    if (!fits) return notes_.fail(wrong(path_of(name), "must be a number from 0 to 65535"));
    port = value->get<std::uint16_t>();
  }
  void read(const char* name, std::map<std::string, std::string>& map) {
    const Json* value = find(name);
    if (value == nullptr) return;
    if (!value->is_object()) return notes_.fail(wrong(path_of(name), "must be an object"));
    for (const auto& [key, item] : value->items()) {
      if (!item.is_string()) {
        return notes_.fail(wrong(path_of(name) + "[" + net::echo(key) + "]", "must be a text; put it in quotes"));
      }
      map[key] = item.get<std::string>();
    }
  }
  template <class Parse, class Take>
  void read_word(const char* name, Parse parse, Take take) {
    std::string text;
    read(name, text);
    if (!text.empty()) take_word(path_of(name), text, parse, take);
  }
  template <class Parse, class Take>
  void read_words(const char* name, Parse parse, Take take) {
    const Json* list = find(name);
    if (list == nullptr) return;
    if (!list->is_array()) return notes_.fail(wrong(path_of(name), "must be a list"));
    for (std::size_t i = 0; i < list->size(); ++i) {
      const std::string path = fmt::format("{}[{}]", path_of(name), i);
      if (!(*list)[i].is_string()) return notes_.fail(wrong(path, "must be a text; put it in quotes"));
      take_word(path, (*list)[i].get<std::string>(), parse, take);
    }
  }

 private:
  template <class Parse, class Take>
  void take_word(const std::string& path, const std::string& text, Parse parse, Take take) {
    auto value = parse(text);
    if (!value) return notes_.fail(wrong(path, value.error().message));
    take(*std::move(value));
  }

  const Json& json_;
  const std::string path_;
  Notes& notes_;
  std::set<std::string> known_;
};

[[nodiscard]] Result<std::string> any_text(const std::string& text) { return text; }

[[nodiscard]] core::ServicePort read_port(const Json& json, const std::string& path, Object::Notes& notes) {
  core::ServicePort port;
  Object object(json, path, notes);
  object.read("name", port.name);
  object.read_word("protocol", parse_service_protocol, [&](core::ServiceProtocol p) { port.protocol = p; });
  object.read("port", port.port);
  object.read("nodePort", port.node_port);
  object.read("appProtocol", port.app_protocol);
  if (const Json* target = object.find("targetPort")) {
    if (target->is_string()) {
      port.target_port = target->get<std::string>();
    } else if (target->is_number_integer()) {
      port.target_port = target->dump();
    } else {
      notes.fail(wrong(object.path_of("targetPort"), "must be a number or a text"));
    }
  }
  return port;
}

void read_spec(const Json& json, core::Service& service, Object::Notes& notes) {
  Object spec(json, "spec", notes);
  spec.read_word("type", parse_service_type, [&](core::ServiceType type) { service.type = type; });
  spec.read("clusterIP", service.cluster_ip);
  spec.read_words("clusterIPs", any_text, [&](std::string ip) { service.cluster_ips.push_back(std::move(ip)); });
  spec.read_words("ipFamilies", parse_ip_family, [&](net::Family family) { service.ip_families.push_back(family); });
  spec.read_word("ipFamilyPolicy", parse_ip_family_policy,
                 [&](core::IpFamilyPolicy policy) { service.ip_family_policy = policy; });
  spec.read("selector", service.selector);
  spec.read("externalName", service.external_name);
  spec.read_word("externalTrafficPolicy", parse_traffic_policy, [&](core::TrafficPolicy policy) {
    service.external_traffic_policy = policy;
    service.external_traffic_policy_given = true;
  });
  spec.read("healthCheckNodePort", service.health_check_node_port);
  if (const Json* allocate = spec.find("allocateLoadBalancerNodePorts")) {
    if (allocate->is_boolean()) {
      service.allocate_load_balancer_node_ports = allocate->get<bool>();
    } else {
      notes.fail(wrong(spec.path_of("allocateLoadBalancerNodePorts"), "must be true or false"));
    }
  }
  std::string load_balancer_class;
  spec.read("loadBalancerClass", load_balancer_class);
  if (!load_balancer_class.empty()) service.load_balancer_class = load_balancer_class;
  if (const Json* ports = spec.find("ports")) {
    if (!ports->is_array()) return notes.fail(wrong(spec.path_of("ports"), "must be a list"));
    for (std::size_t i = 0; i < ports->size(); ++i) {
      service.ports.push_back(read_port((*ports)[i], fmt::format("spec.ports[{}]", i), notes));
    }
  }
}

[[nodiscard]] Result<ServiceManifest> read_service(const Json& json) {
  ServiceManifest manifest;
  Object::Notes notes;
  {
    Object object(json, "", notes);
    object.pass_over({"apiVersion", "kind", "status"});
    const Json nothing = Json::object();
    const Json* metadata = object.find("metadata");
    Object meta(metadata != nullptr ? *metadata : nothing, "metadata", notes);
    meta.pass_over({"uid", "creationTimestamp", "generation", "selfLink", "managedFields"});
    meta.read("name", manifest.service.name.name);
    meta.read("namespace", manifest.service.name.name_space);
    meta.read("resourceVersion", manifest.resource_version);
    meta.read("labels", manifest.service.labels);
    if (const Json* spec = object.find("spec")) read_spec(*spec, manifest.service, notes);
  }
  if (notes.error) return fail(*std::move(notes.error));
  manifest.unknown = std::move(notes.unknown);
  return manifest;
}

[[nodiscard]] std::string text_at(const Json& object, const char* name) {
  const auto it = object.find(name);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

[[nodiscard]] Result<void> read_object(const Json& object, const std::string& place, bool in_list,
                                       std::vector<ServiceManifest>& manifests) {
  if (!object.is_object()) return fail(ErrorCode::invalid_argument, place + " is no object");
  const std::string kind = text_at(object, "kind");
  const std::string version = text_at(object, "apiVersion");
  const bool is_list = !in_list && (kind == "List" || kind == "ServiceList");
  if (is_list && version == "v1") {
    const auto items = object.find("items");
    if (items == object.end() || items->is_null()) return {};
    if (!items->is_array()) return fail(ErrorCode::invalid_argument, place + ": items must be a list");
    for (std::size_t i = 0; i < items->size(); ++i) {
      TRY_VOID(read_object((*items)[i], fmt::format("{}, items[{}]", place, i), true, manifests));
    }
    return {};
  }
  // Items of a ServiceList need not say what they are.
  const bool is_service = (kind == "Service" && version == "v1") || (in_list && kind.empty() && version.empty());
  if (!is_service) {
    return fail(ErrorCode::invalid_argument, fmt::format("{} is a {} of apiVersion {}, not a Service of v1", place,
                                                         net::echo(kind), net::echo(version)));
  }
  auto manifest = read_service(object);
  if (!manifest) return fail(manifest.error().in(place));
  manifests.push_back(*std::move(manifest));
  return {};
}

}  // namespace

Result<core::ServiceType> parse_service_type(std::string_view text) { return parse_word(kTypes, text); }
Result<core::IpFamilyPolicy> parse_ip_family_policy(std::string_view text) { return parse_word(kPolicies, text); }
Result<net::Family> parse_ip_family(std::string_view text) { return parse_word(kFamilies, text); }
Result<core::TrafficPolicy> parse_traffic_policy(std::string_view text) { return parse_word(kTrafficPolicies, text); }
Result<core::ServiceProtocol> parse_service_protocol(std::string_view text) { return parse_word(kProtocols, text); }

Result<std::vector<ServiceManifest>> parse_service_manifests(std::string_view text) {
  TRY(const auto documents, parse_yaml(text));
  std::vector<ServiceManifest> manifests;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    TRY_VOID(read_object(documents[i], fmt::format("document {}", i + 1), false, manifests));
  }
  if (manifests.empty()) return fail(ErrorCode::invalid_argument, "there is no Service in it");
  return manifests;
}

}  // namespace croft::wire
