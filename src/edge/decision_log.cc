#include "edge/decision_log.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/quoted.h"
#include "base/time_text.h"
#include "net/echo.h"

namespace croft::edge {

std::string DecisionLine::ended(const char* outcome, const std::string& what) const {
  const Instant now = clock_.now();
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(now.since_boot - started_.since_boot);
  return fmt::format("{} {} {} us={} {}", go_utc_text(now.wall), subject_, outcome, us.count(), what);
}

std::string log_word(const std::string& text) {
  const bool is_plain = std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f && c != '"'; });
  return is_plain ? text : net::echo(text);
}

std::string pod_text(const core::PodIdentity& pod) {
  std::string text;
  if (!pod.name.empty()) text += fmt::format(" pod={}/{}", log_word(pod.namespace_name), log_word(pod.name));
  if (!pod.uid.empty()) text += " uid=" + log_word(pod.uid);
  return text;
}

std::string text_of(const Error& error) {
  return fmt::format("code={} error={}", name_of(error.code),
                     in_quotes(error.details.empty() ? error.message : error.message + ": " + error.details));
}

std::string list_of(const std::vector<net::Address>& addresses) {
  std::string text;
  for (const net::Address& address : addresses) text += (text.empty() ? "" : ",") + address.to_string();
  return text.empty() ? "none" : text;
}

}  // namespace croft::edge
