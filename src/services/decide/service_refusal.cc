#include "services/decide/service_refusal.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/net/echo.h"

namespace croft::core {
namespace {

[[nodiscard]] std::string_view body_of(FieldError::Type type) {
  switch (type) {
    case FieldError::Type::invalid:
      return "Invalid value";
    case FieldError::Type::required:
      return "Required value";
    case FieldError::Type::forbidden:
      return "Forbidden";
    case FieldError::Type::duplicate:
      return "Duplicate value";
  }
  return "";
}

template <class List, class Print>
[[nodiscard]] std::string printed_list(const List& list, Print print) {
  if (list.empty()) return "null";
  std::string result;
  for (const auto& item : list) result += (result.empty() ? "[" : ",") + print(item);
  return result + "]";
}

}  // namespace

std::string FieldError::body() const {
  std::string result(body_of(type));
  if (type == Type::invalid || type == Type::duplicate) result += ": " + value;
  if (!detail.empty()) result += ": " + detail;
  return result;
}

FieldError invalid(std::string field, std::string value, std::string detail) {
  return {FieldError::Type::invalid, std::move(field), std::move(value), std::move(detail)};
}
FieldError required(std::string field, std::string detail) {
  return {FieldError::Type::required, std::move(field), {}, std::move(detail)};
}
FieldError forbidden(std::string field, std::string detail) {
  return {FieldError::Type::forbidden, std::move(field), {}, std::move(detail)};
}
FieldError duplicate(std::string field, std::string value) {
  return {FieldError::Type::duplicate, std::move(field), std::move(value), {}};
}

std::string printed(std::string_view text) { return net::echo(text); }
std::string printed(const std::vector<std::string>& texts) {
  return printed_list(texts, [](const std::string& text) { return net::echo(text); });
}
std::string printed(net::Family family) { return net::echo(word_of(family)); }
std::string printed(const std::vector<net::Family>& families) {
  return printed_list(families, [](net::Family family) { return printed(family); });
}
std::string printed(const std::optional<IpFamilyPolicy>& policy) {
  return policy ? net::echo(word_of(*policy)) : "null";
}

std::string_view word_of(ServiceType type) {
  switch (type) {
    case ServiceType::cluster_ip:
      return "ClusterIP";
    case ServiceType::node_port:
      return "NodePort";
    case ServiceType::load_balancer:
      return "LoadBalancer";
    case ServiceType::external_name:
      return "ExternalName";
  }
  return "";
}

std::string_view word_of(IpFamilyPolicy policy) {
  switch (policy) {
    case IpFamilyPolicy::single_stack:
      return "SingleStack";
    case IpFamilyPolicy::prefer_dual_stack:
      return "PreferDualStack";
    case IpFamilyPolicy::require_dual_stack:
      return "RequireDualStack";
  }
  return "";
}

std::string_view word_of(ServiceProtocol protocol) {
  switch (protocol) {
    case ServiceProtocol::tcp:
      return "TCP";
    case ServiceProtocol::udp:
      return "UDP";
    case ServiceProtocol::sctp:
      return "SCTP";
  }
  return "";
}

std::string_view word_of(TrafficPolicy policy) { return policy == TrafficPolicy::local ? "Local" : "Cluster"; }
std::string_view word_of(net::Family family) { return family == net::Family::v4 ? "IPv4" : "IPv6"; }

std::string ServiceRefusal::to_string() const {
  if (status != 422) {
    return reason.empty() ? "Error from server: " + message
                          : fmt::format("Error from server ({}): {}", reason, message);
  }
  const std::string start = fmt::format("The Service {} is invalid: ", net::echo(name));
  std::vector<std::string> lines;
  for (const FieldError& cause : causes) {
    std::string line = cause.to_string();
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
  }
  if (lines.size() == 1) return start + lines.front();
  std::string result = start;
  for (const std::string& line : lines) result += "\n* " + line;
  return result;
}

ServiceRefusal refuse_invalid(const Service& service, FieldErrors causes) {
  return {422, "Invalid", service.name.name, std::move(causes), {}};
}
ServiceRefusal refuse_internal(const Service& service, std::string message) {
  return {500, "InternalError", service.name.name, {}, "Internal error occurred: " + std::move(message)};
}
ServiceRefusal refuse_not_found(const ServiceName& name) {
  return {404, "NotFound", name.name, {}, fmt::format("services {} not found", net::echo(name.name))};
}
ServiceRefusal refuse_existing(const ServiceName& name) {
  return {409, "AlreadyExists", name.name, {}, fmt::format("services {} already exists", net::echo(name.name))};
}
ServiceRefusal refuse_stale(const ServiceName& name) {
  return {409,
          "Conflict",
          name.name,
          {},
          fmt::format("Operation cannot be fulfilled on services {}: the object has been modified; please apply your "
                      "changes to the latest version and try again",
                      net::echo(name.name))};
}

}  // namespace croft::core
