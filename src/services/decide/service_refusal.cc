#include "services/decide/service_refusal.h"

#include <fmt/format.h>

#include "base/net/echo.h"

namespace croft::core {

std::string ServiceRefusal::to_string() const {
  return reason == "Invalid" ? message : fmt::format("Error from server ({}): {}", reason, message);
}

ServiceRefusal refuse_value(const Service& service, std::string_view field, std::string_view value,
                            std::string_view why) {
  return refuse_field(service, field, fmt::format("Invalid value: {}: {}", value, why));
}
ServiceRefusal refuse_field(const Service& service, std::string_view field, std::string_view what) {
  return {"Invalid", fmt::format("The Service {} is invalid: {}: {}", net::echo(service.name.name), field, what)};
}
ServiceRefusal refuse_internal(std::string_view message) {
  return {"InternalError", fmt::format("Internal error occurred: {}", message)};
}
ServiceRefusal refuse_not_found(const ServiceName& name) {
  return {"NotFound", fmt::format("services {} not found", net::echo(name.name))};
}
ServiceRefusal refuse_existing(const ServiceName& name) {
  return {"AlreadyExists", fmt::format("services {} already exists", net::echo(name.name))};
}
ServiceRefusal refuse_stale(const ServiceName& name) {
  return {"Conflict",
          fmt::format("Operation cannot be fulfilled on services {}: the object has been modified; please apply your "
                      "changes to the latest version and try again",
                      net::echo(name.name))};
}

std::string printed(const std::vector<std::string>& texts) {
  std::string result;
  for (const std::string& text : texts) result += (result.empty() ? "[" : ",") + net::echo(text);
  return result.empty() ? "null" : result + "]";
}

}  // namespace croft::core
