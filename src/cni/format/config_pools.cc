#include "cni/format/config_pools.h"

#include <array>
#include <string>

#include <fmt/format.h>

#include "base/net/address_with_length.h"
#include "base/net/echo.h"
#include "register/names.h"

namespace croft::wire::cni {
namespace {

using core::GatewayChoice;
using core::PoolSpec;

MaybeFault read_name(const JsonAt& at, PoolSpec& out) { return read_text(at, kPathBytesMax, out.name); }

MaybeFault read_cidr(const JsonAt& at, PoolSpec& out) {
  std::string text;
  if (auto fault = read_text(at, kPathBytesMax, text)) return fault;
  if (at.value.is_null()) return {};
  const auto prefix = net::Prefix::parse(text);
  if (!prefix) return at.bad_value(prefix.error().message);
  out.cidr = *prefix;
  return {};
}

MaybeFault read_block_size(const JsonAt& at, PoolSpec& out) {
  if (at.value.is_null()) return {};
  std::int64_t length = 0;
  if (auto fault = read_integer(at, 0, net::bit_length(net::Family::v6), length)) return fault;
  out.block_length = static_cast<int>(length);
  return {};
}

MaybeFault read_gateway(const JsonAt& at, PoolSpec& out) {
  std::string text;
  if (auto fault = read_text(at, kPathBytesMax, text)) return fault;
  if (at.value.is_null()) return {};
  if (text == "none") {
    out.gateway = GatewayChoice{GatewayChoice::Kind::none, {}};
    return {};
  }
  const auto address = net::Address::parse(text);
  if (!address) return at.bad_value(address.error().message + "; give an address of the pool, or \"none\"");
  out.gateway = GatewayChoice{GatewayChoice::Kind::given, *address};
  return {};
}

MaybeFault read_cooldown(const JsonAt& at, PoolSpec& out) {
  if (at.value.is_null()) return {};
  std::int64_t seconds = 0;
  if (auto fault = read_integer(at, 0, core::kCooldownMax.count(), seconds)) return fault;
  out.cooldown = std::chrono::seconds(seconds);
  return {};
}

MaybeFault read_disabled(const JsonAt& at, PoolSpec& out) {
  if (at.value.is_null()) return {};
  bool disabled = false;
  if (auto fault = read_boolean(at, disabled)) return fault;
  out.disabled = disabled;
  return {};
}

constexpr std::array<JsonMember<PoolSpec>, 6> kMembers = {{{"name", read_name},
                                                           {"cidr", read_cidr},
                                                           {"blockSize", read_block_size},
                                                           {"gateway", read_gateway},
                                                           {"cooldownSeconds", read_cooldown},
                                                           {"disabled", read_disabled}}};

MaybeFault read_pool_spec(const JsonAt& at, PoolSpec& out) {
  if (at.value.is_null()) return at.wrong_type("an object");
  if (auto fault = read_object<PoolSpec>(at, kMembers, out, {.unknown = ObjectRules::Unknown::refused})) return fault;
  if (out.name.empty()) return at.bad_value("name is missing");
  if (!out.cidr.is_valid()) return at.bad_value("cidr is missing");
  if (const auto pool = core::make_pool(out); !pool) return at.bad_value(pool.error().message);
  return {};
}

MaybeFault check_apart(const JsonAt& at, const std::vector<PoolSpec>& pools) {
  for (std::size_t i = 0; i < pools.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (pools[i].name == pools[j].name) return at.bad_value(fmt::format("two pools have the name {}", pools[i].name));
      if (pools[i].cidr.overlaps(pools[j].cidr)) {
        return at.bad_value(fmt::format("cidr {} of pool {} overlaps cidr {} of pool {}", pools[i].cidr.to_string(),
                                        pools[i].name, pools[j].cidr.to_string(), pools[j].name));
      }
    }
  }
  return {};
}

MaybeFault read_cidr_choice(const JsonAt& at, net::Family family, core::AskedPool& out) {
  const auto cidr = net::AddressWithLength::parse(at.value.text());
  if (!cidr) return at.bad_value(cidr.error().message);
  if (cidr->address.family() != family) {
    return at.bad_value(fmt::format("{} is not {}", net::echo(at.value.text()), net::name_of(family)));
  }
  out = cidr->network();
  return {};
}

template <net::Family kFamily>
MaybeFault read_choice(const JsonAt& at, core::AskedPool& out) {
  if (at.value.kind() != JsonKind::string) return at.wrong_type("a string");
  const std::string text(at.value.text());
  if (text.find('/') != text.npos) return read_cidr_choice(at, kFamily, out);
  if (const auto checked = core::check_pool_name(text); !checked) return at.bad_value(checked.error().message);
  out = text;
  return {};
}

}  // namespace

MaybeFault read_pool_specs(const JsonAt& at, std::size_t count_max, std::vector<PoolSpec>& out) {
  if (auto fault = read_list<PoolSpec>(at, count_max, read_pool_spec, out)) return fault;
  return check_apart(at, out);
}

MaybeFault read_asked_pools(const JsonAt& at, net::Family family, std::size_t count_max,
                            std::vector<core::AskedPool>& out) {
  return family == net::Family::v4 ? read_list<core::AskedPool>(at, count_max, read_choice<net::Family::v4>, out)
                                   : read_list<core::AskedPool>(at, count_max, read_choice<net::Family::v6>, out);
}

}  // namespace croft::wire::cni
