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

bool name_one_store(std::string_view a, std::string_view b) {
  if (a == b) return true;
  return scheme_of(a) == Scheme::etcd && scheme_of(b) == Scheme::etcd && members_of(a) == members_of(b);
}

}  // namespace croft::store
