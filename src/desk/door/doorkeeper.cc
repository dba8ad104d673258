#include "desk/door/doorkeeper.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/letters.h"
#include "base/net/prefix.h"
#include "os/digest.h"
#include "os/files.h"

namespace croft::edge {
namespace {

using namespace net::literals;

constexpr std::string_view kBlanks = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  const std::size_t end = text.find_last_not_of(kBlanks);
  return end == text.npos ? std::string_view() : text.substr(begin, end + 1 - begin);
}

/// The token of `Bearer TOKEN`; empty where there is none, or what is none.
std::string_view bearer_of(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  if (!equals_ignoring_case(authorization.substr(0, kScheme.size()), kScheme)) return {};
  const std::string_view token = trimmed(authorization.substr(kScheme.size()));
  const bool is_printable = std::ranges::all_of(token, [](char c) { return c > ' ' && c < 0x7f; });
  return is_printable && token.size() <= Doorkeeper::kTokenBytesMax ? token : std::string_view();
}

/// Takes the same time wherever they differ.
bool are_same(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace

Verdict Doorkeeper::admit(std::string_view authorization) {
  const std::string_view token = bearer_of(authorization);
  if (token.empty()) return {Verdict::Kind::unknown, "a token is needed"};
  const std::string digest = os::sha256(token);
  const std::chrono::nanoseconds now = clock_.now().since_boot;
  const auto known = kept_.find(digest);
  if (known != kept_.end() && now < known->second.until) return known->second.verdict;
  if (!questions_.take(now)) return {Verdict::Kind::unsure, "too many tokens were tried; try again in a minute"};
  Verdict verdict = judge_(std::string(token));
  std::erase_if(kept_, [&](const auto& one) { return now >= one.second.until; });
  if (kept_.size() >= kVerdictsMax) kept_.clear();
  // That somebody was away is asked again.
  if (verdict.kind != Verdict::Kind::unsure) kept_[digest] = {verdict, now + kVerdictTime};
  return verdict;
}

Doorkeeper::Judge judge_by_file(std::string path) {
  return [path = std::move(path)](const std::string& token) -> Verdict {
    const auto read = os::read_secret_file(path, Doorkeeper::kTokenBytesMax);
    if (!read) return {Verdict::Kind::unsure, "the file of the token cannot be read"};
    const std::string_view wanted = trimmed(*read);
    if (wanted.empty()) return {Verdict::Kind::unsure, "the file of the token is empty"};
    // Digests have one length, so nothing tells that of the token.
    if (are_same(os::sha256(token), os::sha256(wanted))) return {Verdict::Kind::welcome, {}};
    return {Verdict::Kind::unknown, "this token is not known"};
  };
}

bool is_loopback_host(std::string_view host) {
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    return end != host.npos && host.substr(1, end - 1) == "::1" && (end + 1 == host.size() || host[end + 1] == ':');
  }
  const std::string_view name = host.substr(0, host.find(':'));
  if (name == "localhost") return true;
  const auto address = net::parse_address(name);
  return address && "127.0.0.0/8"_prefix.contains(*address);
}

}  // namespace croft::edge
