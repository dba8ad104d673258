#include "store/kube/format/token.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "base/json/document.h"
#include "base/text/base64.h"

namespace croft::wire::kube {
namespace {

/// base64url without padding (RFC 4648 section 5).
std::optional<std::string> decode_base64url(std::string_view text) {
  std::string standard(text);
  std::ranges::replace(standard, '-', '+');
  std::ranges::replace(standard, '_', '/');
  standard.append((4 - standard.size() % 4) % 4, '=');
  return decode_base64(standard);
}

std::optional<WallTime> time_in(JsonRef claims, std::string_view name) {
  constexpr std::int64_t kSecondsMax = 9'223'372'036;  // as nanoseconds in 63 bits: the year 2262
  const auto member = member_of(claims, name);
  const auto seconds = member ? member->integer() : std::nullopt;
  if (!seconds || *seconds < 0) return std::nullopt;
  return WallTime(std::chrono::seconds(std::min(*seconds, kSecondsMax)));
}

}  // namespace

bool is_bearer_token(std::string_view text) {
  return !text.empty() && text.size() <= kTokenBytesMax &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7F'; });
}

std::string_view trimmed_token(std::string_view content) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const std::size_t begin = content.find_first_not_of(kSpace);
  if (begin == content.npos) return {};
  return content.substr(begin, content.find_last_not_of(kSpace) - begin + 1);
}

std::optional<TokenLife> life_of_token(std::string_view token) {
  const std::size_t first = token.find('.');
  const std::size_t second = first == token.npos ? token.npos : token.find('.', first + 1);
  if (second == token.npos) return std::nullopt;
  const auto claims = decode_base64url(token.substr(first + 1, second - first - 1));
  const auto document = parse_json(claims.value_or(""), {.bytes_max = kTokenBytesMax});
  const auto end = document ? time_in(document->root(), "exp") : std::nullopt;
  if (!end) return std::nullopt;
  return TokenLife{time_in(document->root(), "iat").value_or(WallTime{}), *end};
}

std::string encode_token_request(std::chrono::seconds life) {
  return fmt::format(
      R"({{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{{"expirationSeconds":{}}}}})",
      life.count());
}

Result<std::string> decode_token_request(std::string_view json) {
  constexpr std::string_view kWhat = "the API server's answer to a TokenRequest";
  const auto document = parse_json(json, {.is_secret = true});
  if (!document) return fail(ErrorCode::corrupt, fmt::format("{}: {}", kWhat, document.error().message));
  const auto token = member_of(member_of(document->root(), "status"), "token");
  if (token && token->kind() == JsonKind::string && is_bearer_token(token->text())) return std::string(token->text());
  return fail(ErrorCode::corrupt, fmt::format("{} has no token, or one of more than {} bytes", kWhat, kTokenBytesMax));
}

}  // namespace croft::wire::kube
