#include "vpc/format/ucloud/signing.h"

#include <algorithm>
#include <set>

#include "base/hex.h"

namespace croft::wire::ucloud {
namespace {

constexpr std::size_t kFormBytesMax = std::size_t{64} << 10;
constexpr std::size_t kParametersMax = 512;

void append_escaped(std::string& out, std::string_view text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~";
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  for (const char c : text) {
    if (kPlain.find(c) != kPlain.npos) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kDigits[byte >> 4];
    out += kDigits[byte & 0xf];
  }
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

[[nodiscard]] Result<std::string> unescaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      const int high = i + 2 < text.size() ? digit_of(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? digit_of(text[i + 2]) : -1;
      if (high < 0 || low < 0) return fail(invalid_argument("a form has a % without two hexadecimal digits behind it"));
      out += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return out;
}

}  // namespace

const std::string* find(const Parameters& parameters, std::string_view name) {
  const auto found = std::ranges::find(parameters, name, [](const auto& one) { return std::string_view(one.first); });
  return found == parameters.end() ? nullptr : &found->second;
}

std::string signature_of(const Parameters& parameters, std::string_view private_key, const Sha1& sha1) {
  Parameters sorted = parameters;
  std::ranges::stable_sort(sorted, {}, [](const auto& one) { return std::string_view(one.first); });
  std::string text;
  for (const auto& [name, value] : sorted) {
    if (name == "Signature") continue;
    text += name;
    text += value;
  }
  text += private_key;
  std::string hex;
  for (const char c : sha1(text)) {
    const auto byte = static_cast<unsigned char>(c);
    hex += kHexDigits[byte >> 4];
    hex += kHexDigits[byte & 0xf];
  }
  return hex;
}

Parameters signed_by(Parameters parameters, const Keys& keys, const Sha1& sha1) {
  parameters.emplace_back("PublicKey", keys.public_key);
  parameters.emplace_back("SecurityToken", keys.security_token);
  std::erase_if(parameters, [](const auto& one) { return one.second.empty(); });
  std::string signature = signature_of(parameters, keys.private_key, sha1);
  parameters.emplace_back("Signature", std::move(signature));
  return parameters;
}

std::string form_of(const Parameters& parameters) {
  std::string form;
  for (const auto& [name, value] : parameters) {
    if (!form.empty()) form += '&';
    append_escaped(form, name);
    form += '=';
    append_escaped(form, value);
  }
  return form;
}

Result<Parameters> parse_form(std::string_view form) {
  if (form.size() > kFormBytesMax) return fail(invalid_argument("a form of more than 64 KiB"));
  Parameters parameters;
  std::set<std::string> names;
  while (!form.empty()) {
    const std::size_t end = form.find('&');
    const std::string_view one = form.substr(0, end);
    form.remove_prefix(end == form.npos ? form.size() : end + 1);
    if (one.empty()) continue;
    if (parameters.size() == kParametersMax) return fail(invalid_argument("a form of more than 512 parameters"));
    const std::size_t equals = one.find('=');
    TRY(std::string name, unescaped(one.substr(0, equals)));
    TRY(std::string value, unescaped(equals == one.npos ? std::string_view() : one.substr(equals + 1)));
    if (!names.insert(name).second) return fail(invalid_argument("a form has a parameter twice"));
    parameters.emplace_back(std::move(name), std::move(value));
  }
  return parameters;
}

}  // namespace croft::wire::ucloud
