#include "store/store_url.h"

#include <array>
#include <set>
#include <utility>

namespace croft::store {
namespace {

constexpr std::array<std::pair<std::string_view, Scheme>, 3> kSchemes{{
    {"sqlite:", Scheme::sqlite},
    {"etcd:", Scheme::etcd},
    {"kube:", Scheme::kube},
}};

std::set<std::string_view> members_of(std::string_view url) {
  std::string_view list = behind_scheme(url);
  list = list.substr(0, list.find('?'));
  std::set<std::string_view> members;
  for (std::size_t at = 0; at != list.npos;) {
    const std::size_t comma = list.find(',', at);
    members.insert(list.substr(at, comma == list.npos ? list.npos : comma - at));
    at = comma == list.npos ? list.npos : comma + 1;
  }
  return members;
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
  const std::size_t at = slashes != url.npos ? url.rfind('@') : url.substr(0, url.find('?')).rfind('@');
  if (at == url.npos) return std::string(url);
  const std::size_t colon = url.find(':');
  std::size_t from = 0;
  if (slashes < at) {
    from = slashes + 2;
  } else if (colon < at) {
    from = colon + 1;
  }
  return std::string(url.substr(0, from)) + "..." + std::string(url.substr(at));
}

bool name_one_store(std::string_view a, std::string_view b) {
  if (a == b) return true;
  return scheme_of(a) == Scheme::etcd && scheme_of(b) == Scheme::etcd && members_of(a) == members_of(b);
}

}  // namespace croft::store
