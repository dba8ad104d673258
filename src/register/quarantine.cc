#include "register/quarantine.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/time_text.h"
#include "register/owner.h"

namespace croft::core {
namespace {

std::string text_of(const Attribute& attribute, const char* key) {
  const auto it = attribute.secondary.find(key);
  return it == attribute.secondary.end() ? std::string() : it->second;
}

}  // namespace

std::string quarantine_handle_of(const net::Address& address) {
  std::string name = address.to_string();
  std::ranges::replace(name, '.', '-');
  if (address.is_v6()) name = fmt::format("{:016x}{:016x}", address.value().hi, address.value().lo);
  return "croft-quarantine-" + name;
}

Attribute in_quarantine(const net::Address& address, const std::string& node, const std::string& device,
                        WallTime since) {
  Attribute attribute;
  attribute.handle_id = quarantine_handle_of(address);
  attribute.secondary[kTypeKey] = kQuarantineType;
  attribute.secondary[kNodeKey] = node;
  attribute.secondary[kDeviceKey] = device;
  attribute.secondary[kTimestampKey] = go_utc_text(since);
  return attribute;
}

bool is_in_quarantine(const Attribute& attribute) {
  return !attribute.cooling && attribute.handle_id && text_of(attribute, kTypeKey) == kQuarantineType;
}

std::string quarantine_text(const Attribute& attribute) {
  const auto since = parse_go_utc_text(text_of(attribute, kTimestampKey));
  return fmt::format("in quarantine since {}, when an ADD on node {} found it alive over device {}",
                     since ? rfc3339_rounded_up(*since) : "an unknown time", text_of(attribute, kNodeKey),
                     text_of(attribute, kDeviceKey));
}

}  // namespace croft::core
