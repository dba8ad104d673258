#include "calico/etcd_records.h"

#include <variant>

#include "base/assert.h"
#include "base/printable.h"
#include "base/texts.h"
#include "calico/json.h"
#include "register/format/canonical_json.h"
#include "register/format/field_table.h"
#include "register/format/records.h"

namespace croft::wire::calico {

Result<core::Value> decode_value(const core::Key& key, std::string_view bytes) {
  return is_resource(key.kind) ? decode_resource(key, bytes) : decode_other(key, bytes);
}

std::string encode_value(const core::Value& value, const Birth& birth) {
  return std::visit(
      [&](const auto& record) -> std::string {
        if constexpr (requires { encode(record, birth); }) return encode(record, birth);
        CROFT_ASSERT(false);
      },
      value);
}

std::optional<std::string> uid_in(const core::Key& key, std::string_view bytes) {
  if (!is_resource(key.kind)) return std::nullopt;
  const auto value = decode_resource(key, bytes);
  if (!value) return std::nullopt;
  const std::string uid = std::visit(
      [](const auto& record) {
        if constexpr (requires { record.rest->identity(); }) return std::string(record.rest->identity());
        return std::string();
      },
      *value);
  return uid.empty() ? std::nullopt : std::optional(uid);
}

}  // namespace croft::wire::calico

namespace croft::wire {
namespace {

Error damaged(std::string_view key, std::string_view why) {
  return make_error(ErrorCode::corrupt, "{} is damaged: {}", echo(key), why);
}

/// Reads `{"v":1,`, what `read` reads, and `}`.
template <class Read>
[[nodiscard]] Result<void> decode(std::string_view key, std::string_view bytes, Read read) {
  if (bytes.size() > kRecordBytesMax) return fail(damaged(key, "it is too long"));
  CanonicalReader in(bytes);
  in.expect("{\"v\":");
  const std::uint32_t version = in.small_number();
  constexpr std::uint32_t kKnown = 1;
  if (in.ok() && version > kKnown) {
    return fail(ErrorCode::newer_version, "{} has format {}, this program reads up to {}; upgrade Croft here",
                echo(key), version, kKnown);
  }
  if (version == 0) in.reject("format version 0");
  in.expect(",");
  read(in);
  in.expect("}");
  if (const auto finished = in.finish(); !finished) return fail(damaged(key, finished.error().message));
  return {};
}

/// An address in any spelling.
struct AnyAddress {
  static void write(CanonicalWriter& out, const net::Address& address) { out.text(address.to_string()); }
  static void read(CanonicalReader& in, net::Address& value) {
    if (const auto address = net::Address::parse(in.text())) {
      value = *address;
    } else {
      in.reject("gateway is no IP address");
    }
  }
};

bool fits_cooldown(const PoolBeside& beside) { return core::is_cooldown(beside.cooldown); }

// clang-format off: a member a line
constexpr auto kPoolBeside =
    fields(field("cidr", &PoolBeside::cidr), maybe("gateway", &PoolBeside::gateway, AnyAddress{}),
           checked(field("cooldownSeconds", &PoolBeside::cooldown), fits_cooldown, "cooldownSeconds is out of range"),
           maybe("beingMade", &PoolBeside::being_made), maybe("beingDeleted", &PoolBeside::being_deleted),
           maybe("priority", &PoolBeside::priority, UpTo{core::kPoolPriorityMax}));
// clang-format on

}  // namespace

std::string encode_pool_beside(const PoolBeside& beside) {
  CanonicalWriter out(128);
  out.raw("{\"v\":1,");
  kPoolBeside.write(out, beside);
  out.raw("}");
  return out.take();
}

Result<PoolBeside> decode_pool_beside(std::string_view key, std::string_view bytes) {
  PoolBeside beside;
  TRY_VOID(decode(key, bytes, [&](CanonicalReader& in) { kPoolBeside.read(in, beside); }));
  return beside;
}

std::string encode_cooling_beside(const std::vector<core::CoolingBeside>& beside) {
  CanonicalWriter out(64 + 256 * beside.size());
  out.raw("{\"v\":1,");
  write_cooling_beside(out, beside);
  out.raw("}");
  return out.take();
}

Result<std::vector<core::CoolingBeside>> decode_cooling_beside(std::string_view key, std::string_view bytes) {
  std::vector<core::CoolingBeside> beside;
  TRY_VOID(decode(key, bytes, [&](CanonicalReader& in) { read_cooling_beside(in, beside); }));
  return beside;
}

}  // namespace croft::wire
