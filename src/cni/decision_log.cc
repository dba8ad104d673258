#include "cni/decision_log.h"

#include <chrono>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/printable.h"
#include "base/texts.h"
#include "base/time_text.h"

namespace croft::edge {

std::string DecisionLine::ended(const char* outcome, const std::string& what) const {
  const Instant now = clock_.now();
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(now.since_boot - started_.since_boot);
  return fmt::format("{} {} {} us={} {}", go_utc_text(now.wall), subject_, outcome, us.count(), what);
}

std::string pod_text(const core::PodIdentity& pod) {
  std::string text;
  if (!pod.name.empty()) {
    text += fmt::format(" pod={}/{}", in_quotes_if_needed(pod.namespace_name), in_quotes_if_needed(pod.name));
  }
  if (!pod.uid.empty()) text += " uid=" + in_quotes_if_needed(pod.uid);
  return text;
}

std::string text_of(const Error& error) {
  return fmt::format("code={} error={}", name_of(error.code),
                     in_quotes(error.details.empty() ? error.message : error.message + ": " + error.details));
}

std::string text_of(const core::Assigned& assigned) {
  std::string text;
  for (const core::AssignedAddress& a : assigned.addresses) {
    text += fmt::format("{}address={} pool={} block={}{}", text.empty() ? "" : " ", a.address.to_string(), a.pool,
                        a.block.to_string(), a.held_before ? " again" : "");
  }
  return text;
}

std::string list_of(const std::vector<net::Address>& addresses) {
  return addresses.empty() ? "none" : fmt::format("{}", fmt::join(addresses, ","));
}

}  // namespace croft::edge
