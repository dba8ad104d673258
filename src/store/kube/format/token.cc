#include "store/kube/format/token.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/json/document.h"
#include "base/json/writer.h"
#include "base/text/base64.h"
#include "store/kube/format/kube_server.h"
#include "store/kube/format/kubeconfig.h"

namespace croft::wire::kube {
namespace {

constexpr std::size_t kClaimsBytesMax = 64 * 1024;
constexpr std::size_t kTokenAnswerBytesMax = std::size_t{2} * kTokenBytesMax;
constexpr std::int64_t kSecondsMax = 9'223'372'036;  // as nanoseconds in 63 bits: the year 2262

/// base64url without padding (RFC 4648 section 5).
std::optional<std::string> decode_base64url(std::string_view text) {
  std::string standard(text);
  std::ranges::replace(standard, '-', '+');
  std::ranges::replace(standard, '_', '/');
  standard.append((4 - standard.size() % 4) % 4, '=');
  return decode_base64(standard);
}

std::optional<WallTime> time_in(JsonRef claims, std::string_view name) {
  std::optional<WallTime> time;
  for (auto member = claims.first_child(); member; member = member->next_sibling()) {
    if (member->key() != name) continue;
    const auto seconds = member->integer();
    if (!seconds || *seconds < 0) return std::nullopt;
    time = WallTime(std::chrono::seconds(std::min(*seconds, kSecondsMax)));
  }
  return time;
}

}  // namespace

std::optional<TokenLife> life_of_token(std::string_view token) {
  const std::size_t first = token.find('.');
  const std::size_t second = first == token.npos ? token.npos : token.find('.', first + 1);
  if (second == token.npos || second - first > kClaimsBytesMax) return std::nullopt;
  const auto claims = decode_base64url(token.substr(first + 1, second - first - 1));
  if (!claims) return std::nullopt;
  const auto document = parse_json(*claims, {.bytes_max = kClaimsBytesMax});
  if (!document || document->root().kind() != JsonKind::object) return std::nullopt;
  const auto end = time_in(document->root(), "exp");
  if (!end) return std::nullopt;
  return TokenLife{time_in(document->root(), "iat").value_or(WallTime{}), *end};
}

std::string encode_token_request(std::int64_t seconds) {
  JsonWriter out(JsonWriter::Layout::compact);
  out.begin_object();
  out.key("apiVersion");
  out.text("authentication.k8s.io/v1");
  out.key("kind");
  out.text("TokenRequest");
  out.key("spec");
  out.begin_object();
  out.key("expirationSeconds");
  out.integer(seconds);
  out.end_object();
  out.end_object();
  return std::move(out).take();
}

Result<std::string> decode_token_request(std::string_view json) {
  constexpr std::string_view kWhat = "the API server's answer to a TokenRequest";
  const auto document = parse_json(json, {.bytes_max = kTokenAnswerBytesMax, .is_secret = true});
  if (!document) return fail(ErrorCode::corrupt, fmt::format("{}: {}", kWhat, document.error().message));
  std::string token;
  for (auto member = document->root().first_child(); member; member = member->next_sibling()) {
    if (member->key() != "status") continue;
    for (auto one = member->first_child(); one; one = one->next_sibling()) {
      if (one->key() == "token" && one->kind() == JsonKind::string) token = one->text();
    }
  }
  if (token.size() > kTokenBytesMax) {  // no client would read it back out of a kubeconfig
    return fail(ErrorCode::corrupt, fmt::format("{}: a token of more than {} bytes", kWhat, kTokenBytesMax));
  }
  if (is_bearer_token(token)) return token;
  return fail(ErrorCode::corrupt, fmt::format("{} has no token", kWhat));
}

}  // namespace croft::wire::kube
