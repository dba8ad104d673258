#include "cli/stores/etcd_url.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/net/echo.h"
#include "base/without_user_info.h"
#include "cli/stores/environment.h"
#include "store/store_url.h"

namespace croft::app {
namespace {

constexpr std::string_view kKubernetes = "kubernetes";
constexpr std::size_t kEndpointsMax = 16;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

[[nodiscard]] Result<void> set(EtcdPlace& place, std::string_view name, std::string value) {
  const std::pair<std::string_view, std::string*> options[] = {
      {"ca", &place.ca_file},
      {"cert", &place.certificate_file},
      {"key", &place.key_file},
      {"name", &place.server_name},
      {"user", &place.user},
      {"password-file", &place.password_file},
      {kKubernetes, &place.kubernetes_prefix},
  };
  for (const auto& [option, target] : options) {
    if (option != name) continue;
    if (option == kKubernetes && value.empty()) {
      return fail(ErrorCode::invalid_argument, "store: kubernetes= names no prefix: give kubernetes=/registry");
    }
    *target = std::move(value);
    return {};
  }
  return fail(ErrorCode::invalid_argument, "store: etcd knows no option " + net::echo(std::string(name)) +
                                               "; it has ca, cert, key, name, user, password-file and kubernetes");
}

}  // namespace

Result<EtcdPlace> parse_etcd_url(const std::string& url) {
  EtcdPlace place;
  std::string_view rest = store::behind_scheme(url);
  const std::size_t question = rest.find('?');
  for (const std::string_view endpoint : split(rest.substr(0, question), ',')) {
    if (endpoint.empty()) {
      return fail(ErrorCode::invalid_argument, "store " + net::echo(store::without_user(url)) +
                                                   " names no endpoint: give etcd:https://10.0.0.1:2379,…");
    }
    if (last_at(endpoint) != endpoint.npos) {  // what stands before it may be a secret: it is not shown
      return fail(ErrorCode::invalid_argument,
                  "store: an etcd endpoint has no user and no password in it: give ?user=NAME&password-file=FILE");
    }
    place.endpoints.emplace_back(endpoint);
  }
  if (place.endpoints.size() > kEndpointsMax) {
    return fail(ErrorCode::invalid_argument,
                "store " + net::echo(store::without_user(url)) + " names more than 16 endpoints");
  }
  if (question != rest.npos) {
    for (const std::string_view option : split(rest.substr(question + 1), '&')) {
      const std::size_t equals = option.find('=');
      const std::string value(equals == option.npos ? "" : option.substr(equals + 1));
      TRY_VOID(set(place, option.substr(0, equals), value));
    }
  }
  const bool secure = std::any_of(place.endpoints.begin(), place.endpoints.end(),
                                  [](const std::string& endpoint) { return endpoint.starts_with("https:"); });
  if (!secure) return place;
  if (place.ca_file.empty()) place.ca_file = from_environment("ETCD_CA_CERT_FILE");
  if (place.certificate_file.empty() && place.key_file.empty()) {
    place.certificate_file = from_environment("ETCD_CERT_FILE");
    place.key_file = from_environment("ETCD_KEY_FILE");
  }
  if (place.ca_file.empty()) {
    return fail(ErrorCode::invalid_argument,
                "store " + net::echo(store::without_user(url)) +
                    " needs the file of the authority: add ?ca=FILE or set ETCD_CA_CERT_FILE");
  }
  return place;
}

Result<void> check_secrecy(const EtcdPlace& place) {
  const auto is_open = [](const std::string& endpoint) {
    return !endpoint.starts_with("https:") && !endpoint.starts_with("unix:");
  };
  const auto open = std::find_if(place.endpoints.begin(), place.endpoints.end(), is_open);
  if (open == place.endpoints.end()) return {};
  if (!place.user.empty()) {
    return fail(ErrorCode::invalid_argument, "store: etcd endpoint " + net::echo(*open) +
                                                 " is not encrypted, and user " + net::echo(place.user) +
                                                 " has a password: give https:// for every endpoint");
  }
  const bool mixed = std::any_of(place.endpoints.begin(), place.endpoints.end(),
                                 [](const std::string& endpoint) { return endpoint.starts_with("https:"); });
  if (!mixed) return {};
  return fail(ErrorCode::invalid_argument, "store: etcd endpoint " + net::echo(*open) +
                                               " is not encrypted and others are: give https:// for every endpoint");
}

}  // namespace croft::app
