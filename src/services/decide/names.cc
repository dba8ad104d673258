#include "services/decide/names.h"

#include <algorithm>

#include <fmt/format.h>

#include "register/names.h"

namespace croft::core::service_names {
namespace {

constexpr std::size_t kLabelBytesMax = 63;
constexpr std::size_t kDomainBytesMax = 253;
constexpr std::size_t kPortNameBytesMax = 15;

[[nodiscard]] bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
[[nodiscard]] bool is_lower_or_digit(char c) { return is_lower(c) || (c >= '0' && c <= '9'); }

[[nodiscard]] bool is_label(std::string_view text) {
  return !text.empty() && is_lower_or_digit(text.front()) && is_lower_or_digit(text.back()) &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_lower_or_digit(c) || c == '-'; });
}

[[nodiscard]] bool is_domain(std::string_view text) {
  for (;;) {
    const std::size_t dot = text.find('.');
    if (!is_label(text.substr(0, dot))) return false;
    if (dot == text.npos) return true;
    text.remove_prefix(dot + 1);
  }
}

[[nodiscard]] bool is_label_key(std::string_view text) {
  return !text.empty() && is_alphanumeric(text.front()) && is_alphanumeric(text.back()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_alphanumeric(c) || c == '-' || c == '_' || c == '.'; });
}

void check_length(std::string_view text, std::size_t max, Messages& messages) {
  if (text.size() > max) messages.push_back(fmt::format("must be no more than {} characters", max));
}

constexpr auto kKeyForm =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

}  // namespace

Messages problems_of_service_name(std::string_view text) {
  Messages messages;
  check_length(text, kLabelBytesMax, messages);
  if (!is_label(text) || !is_lower(text.front())) {
    messages.emplace_back(
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
        "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation "
        "is '[a-z]([-a-z0-9]*[a-z0-9])?')");
  }
  return messages;
}

Messages problems_of_label(std::string_view text) {
  Messages messages;
  check_length(text, kLabelBytesMax, messages);
  if (is_label(text)) return messages;
  messages.emplace_back(
      is_domain(text)
          ? "must not contain dots"
          : "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and "
            "end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
            "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')");
  return messages;
}

Messages problems_of_domain(std::string_view text) {
  Messages messages;
  check_length(text, kDomainBytesMax, messages);
  if (!is_domain(text)) {
    messages.emplace_back(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
        "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')");
  }
  return messages;
}

Messages problems_of_qualified_name(std::string_view text) {
  const auto slashes = std::count(text.begin(), text.end(), '/');
  if (slashes > 1) {
    return {
        fmt::format("a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. "
                    "'example.com/MyName')",
                    kKeyForm)};
  }
  Messages messages;
  std::string_view name = text;
  if (slashes == 1) {
    const std::string_view prefix = text.substr(0, text.find('/'));
    name = text.substr(prefix.size() + 1);
    if (prefix.empty()) {
      messages.emplace_back("prefix part must be non-empty");
    } else {
      for (const std::string& message : problems_of_domain(prefix)) messages.push_back("prefix part " + message);
    }
  }
  if (name.empty()) {
    messages.emplace_back("name part must be non-empty");
  } else if (name.size() > kLabelBytesMax) {
    messages.push_back(fmt::format("name part must be no more than {} characters", kLabelBytesMax));
  }
  if (!is_label_key(name)) messages.push_back(fmt::format("name part {}", kKeyForm));
  return messages;
}

Messages problems_of_label_value(std::string_view text) {
  Messages messages;
  check_length(text, kLabelBytesMax, messages);
  if (!text.empty() && !is_label_key(text)) {
    messages.emplace_back(
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
        "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
        "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')");
  }
  return messages;
}

Messages problems_of_port_name(std::string_view text) {
  Messages messages;
  check_length(text, kPortNameBytesMax, messages);
  if (text.empty() || !std::all_of(text.begin(), text.end(), [](char c) { return is_lower_or_digit(c) || c == '-'; })) {
    messages.emplace_back("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  }
  if (std::none_of(text.begin(), text.end(), is_lower)) {
    messages.emplace_back("must contain at least one letter (a-z)");
  }
  if (text.find("--") != text.npos) messages.emplace_back("must not contain consecutive hyphens");
  if (!text.empty() && (text.front() == '-' || text.back() == '-')) {
    messages.emplace_back("must not begin or end with a hyphen");
  }
  return messages;
}

}  // namespace croft::core::service_names
