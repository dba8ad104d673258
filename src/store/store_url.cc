#include "store/store_url.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/printable.h"
#include "base/texts.h"

namespace croft::store {
namespace {

constexpr std::array<std::pair<std::string_view, Scheme>, 3> kSchemes{{
    {"sqlite:", Scheme::sqlite},
    {"etcd:", Scheme::etcd},
    {"kube:", Scheme::kube},
}};

std::set<std::string_view> members_of(std::string_view url) {
  const std::string_view list = behind_scheme(url);
  const auto members = split(list.substr(0, list.find('?')), ',');
  return {members.begin(), members.end()};
}

/// `/a//b/./c/` as `/a/b/c`, and no `..`, which may lead out of a link. An option's text stays.
std::string plain(std::string_view url) {
  std::string_view path = behind_scheme(url);
  const std::string_view scheme = url.substr(0, url.size() - path.size());
  const std::string_view options = path.substr(std::min(path.find('?'), path.size()));
  path.remove_suffix(options.size());
  std::string out(scheme);
  bool is_first = !path.starts_with('/');
  for (const std::string_view part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (!std::exchange(is_first, false)) out += '/';
    out += part;
  }
  return out.append(options);
}

}  // namespace

std::optional<Scheme> scheme_of(std::string_view url) {
  for (const auto& [text, scheme] : kSchemes) {
    if (url.starts_with(text)) return scheme;
  }
  return std::nullopt;
}

std::string_view behind_scheme(std::string_view url) {
  for (const auto& [text, scheme] : kSchemes) {
    if (url.starts_with(text)) return url.substr(text.size());
  }
  return url;
}

std::optional<std::string> file_of_store(std::string_view url) {
  if (scheme_of(url) != Scheme::sqlite) return std::nullopt;
  return std::string(behind_scheme(url));
}

std::string without_user(std::string_view url) {
  // A password may have any of the characters that end it elsewhere, so the last one counts. Without "//" what is
  // behind "?" is an option, as a context that has one by right.
  const std::size_t slashes = url.find("//");
  const std::size_t at = slashes != url.npos ? last_at_sign(url) : url.substr(0, url.find('?')).rfind('@');
  if (at == url.npos) return std::string(url);
  const std::size_t colon = url.find(':');
  std::size_t from = 0;
  if (slashes < at) {
    from = slashes + 2;
  } else if (colon < at) {
    from = colon + 1;
  }
  return std::string(url.substr(0, from)) + "(hidden)" + std::string(url.substr(at));
}

bool are_same_store(std::string_view a, std::string_view b) {
  if (a == b) return true;
  const auto scheme = scheme_of(a);
  if (!scheme || scheme != scheme_of(b)) return false;
  return *scheme == Scheme::etcd ? members_of(a) == members_of(b) : plain(a) == plain(b);
}

OneRegister compare_registers(std::string_view a, std::string_view b) {
  if (are_same_store(a, b)) return OneRegister::yes;
  const auto scheme = scheme_of(a);
  const bool may_be = scheme && scheme == scheme_of(b) && *scheme != Scheme::sqlite;
  return may_be ? OneRegister::not_said : OneRegister::no;
}

}  // namespace croft::store
