#include "store/calico/layout.h"

#include <fmt/format.h>

#include "register/kinds.h"

namespace croft::store::calico {
namespace {

using core::Kind;

constexpr std::string_view kOwnRoot = "/croft/v1/";

std::string_view beside_name_of(Kind kind) {
  switch (kind) {
    case Kind::pool:
      return "beside/pool/";
    case Kind::block:
      return "beside/block/";
    default:
      return {};
  }
}

}  // namespace

std::string_view own_root() { return kOwnRoot; }

bool is_calicos(Kind kind) { return core::traits_of(kind).system == core::System::calico; }

std::string own_root_of(Kind kind) {
  if (kind == Kind::block_beside) return *places_beside(Kind::block);
  return fmt::format("{}{}/", kOwnRoot, core::name_of(kind));
}

std::optional<std::string> place_beside(const core::Key& key) {
  if (beside_name_of(key.kind).empty()) return std::nullopt;
  return fmt::format("{}{}{}", kOwnRoot, beside_name_of(key.kind), key.name);
}

std::optional<std::string> places_beside(Kind kind) {
  if (beside_name_of(kind).empty()) return std::nullopt;
  return fmt::format("{}{}", kOwnRoot, beside_name_of(kind));
}

std::optional<core::Key> record_beside(Kind kind, std::string_view place) {
  const auto root = places_beside(kind);
  if (!root || !place.starts_with(*root)) return std::nullopt;
  return core::Key{kind, std::string(place.substr(root->size()))};
}

}  // namespace croft::store::calico
