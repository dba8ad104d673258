#include "vpc/format/ucloud/metadata.h"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/net/echo.h"
#include "base/time_text.h"
#include "vpc/format/ucloud/members.h"

namespace croft::wire::ucloud {
namespace {

constexpr std::size_t kMetadataBytesMax = std::size_t{1} << 20;
constexpr std::size_t kMetadataDepthMax = 32;
constexpr std::size_t kMetadataValuesMax = 100'000;
constexpr std::size_t kInterfacesMax = 256;

struct Nic {
  bool is_default = false;
  std::string id, mac, subnet, vpc;
};

constexpr std::array<JsonMember<Nic>, 5> kMetadataNicMembers{{
    {"default", [](const JsonAt& at, Nic& out) { return read_flag(at, out.is_default); }},
    {"id", [](const JsonAt& at, Nic& out) { return read_word(at, out.id); }},
    {"mac", [](const JsonAt& at, Nic& out) { return read_word(at, out.mac); }},
    {"subnet-id", [](const JsonAt& at, Nic& out) { return read_word(at, out.subnet); }},
    {"vpc-id", [](const JsonAt& at, Nic& out) { return read_word(at, out.vpc); }},
}};

struct Host {
  std::string project;
  std::vector<Nic> nics;
};

constexpr std::array<JsonMember<Host>, 2> kMetadataHostMembers{{
    {"project-id", [](const JsonAt& at, Host& out) { return read_word(at, out.project); }},
    {"network-interfaces",
     [](const JsonAt& at, Host& out) {
       out.nics.clear();
       return each_or_one(at, kInterfacesMax, [&](const JsonAt& one) {
         return read_object<Nic>(one, kMetadataNicMembers, out.nics.emplace_back());
       });
     }},
}};

struct Raw {
  std::string zone, region, instance;
  Host virtual_machine, bare_metal;
};

constexpr std::array<JsonMember<Raw>, 5> kMetadataMembers{{
    {"availability-zone", [](const JsonAt& at, Raw& out) { return read_word(at, out.zone); }},
    {"region", [](const JsonAt& at, Raw& out) { return read_word(at, out.region); }},
    {"instance-id", [](const JsonAt& at, Raw& out) { return read_word(at, out.instance); }},
    {"uhost",
     [](const JsonAt& at, Raw& out) { return read_object<Host>(at, kMetadataHostMembers, out.virtual_machine); }},
    {"uphost", [](const JsonAt& at, Raw& out) { return read_object<Host>(at, kMetadataHostMembers, out.bare_metal); }},
}};

[[nodiscard]] Result<JsonDocument> document_of(std::string_view bytes) {
  TRY(JsonDocument document,
      parse_json(bytes, {kMetadataBytesMax, kMetadataDepthMax, kMetadataValuesMax, /*is_secret=*/true}));
  if (document.root().kind() != JsonKind::object) return fail(invalid_argument("it is no JSON object"));
  return document;
}

[[nodiscard]] Result<Nic> default_of(const std::vector<Nic>& nics) {
  if (nics.size() == 1) return nics.front();
  const Nic* found = nullptr;
  for (const Nic& nic : nics) {
    if (!nic.is_default) continue;
    if (found != nullptr) return fail(invalid_argument("network-interfaces: several have \"default\": true"));
    found = &nic;
  }
  if (found == nullptr) {
    return fail(invalid_argument(nics.empty() ? "network-interfaces: there is none, neither in uhost nor in uphost"
                                              : "network-interfaces: none has \"default\": true"));
  }
  return *found;
}

}  // namespace

Result<Metadata> decode_metadata(std::string_view bytes) {
  TRY(const JsonDocument document, document_of(bytes));
  Raw raw;
  if (auto fault = read_object<Raw>(JsonAt{document.root(), nullptr, {}, {}}, kMetadataMembers, raw)) {
    return fail(error_of(*fault));
  }
  Metadata metadata;
  metadata.is_bare_metal = raw.virtual_machine.nics.empty() && !raw.bare_metal.nics.empty();
  const Host& host = metadata.is_bare_metal ? raw.bare_metal : raw.virtual_machine;
  TRY(const Nic nic, default_of(host.nics));
  const auto mac = net::Mac::parse(nic.mac);
  if (!mac) return fail(mac.error().in("network-interfaces.mac"));
  metadata.zone = raw.zone;
  metadata.region = raw.region;
  metadata.instance = raw.instance;
  metadata.project = host.project;
  metadata.interface_id = nic.id;
  metadata.mac = *mac;
  metadata.vpc = nic.vpc;
  metadata.subnet = nic.subnet;
  return metadata;
}

namespace {

struct RawCredentials {
  std::int64_t ret_code = 0;
  Keys keys;
  std::optional<std::int64_t> seconds;
  std::string time;
};

MaybeFault read_expiration(const JsonAt& at, RawCredentials& out) {
  std::int64_t seconds = 0;
  if (at.value.is_null()) return {};
  if (!read_count(at, seconds)) {
    out.seconds = seconds;
    return {};
  }
  return read_word(at, out.time);
}

constexpr std::array<JsonMember<RawCredentials>, 7> kCredentialsMembers{{
    {"RetCode", [](const JsonAt& at, RawCredentials& out) { return read_count(at, out.ret_code); }},
    {"PublicKey", [](const JsonAt& at, RawCredentials& out) { return read_secret(at, out.keys.public_key); }},
    {"PrivateKey", [](const JsonAt& at, RawCredentials& out) { return read_secret(at, out.keys.private_key); }},
    {"AccessKeyId", [](const JsonAt& at, RawCredentials& out) { return read_secret(at, out.keys.public_key); }},
    {"AccessKeySecret", [](const JsonAt& at, RawCredentials& out) { return read_secret(at, out.keys.private_key); }},
    {"SecurityToken", [](const JsonAt& at, RawCredentials& out) { return read_secret(at, out.keys.security_token); }},
    {"Expiration", read_expiration},
}};

constexpr std::array<JsonMember<RawCredentials>, 1> kDataMembers{{
    {"Data",
     [](const JsonAt& at, RawCredentials& out) { return read_object<RawCredentials>(at, kCredentialsMembers, out); }},
}};

}  // namespace

Result<Credentials> decode_credentials(std::string_view bytes) {
  const auto document = document_of(bytes);
  if (!document) return fail(invalid_argument("it is no JSON object"));  // the reader's message may repeat a key
  const JsonAt root{document->root(), nullptr, {}, {}};
  RawCredentials raw;
  if (auto fault = read_object<RawCredentials>(root, kCredentialsMembers, raw)) return fail(error_of(*fault));
  if (auto fault = read_object<RawCredentials>(root, kDataMembers, raw)) return fail(error_of(*fault));
  if (raw.ret_code != 0) {
    return fail(ErrorCode::refused_by_configuration,
                "the machine's metadata give no credentials: RetCode " + std::to_string(raw.ret_code));
  }
  if (raw.keys.public_key.empty() || raw.keys.private_key.empty() || raw.keys.security_token.empty()) {
    return fail(invalid_argument("a public key, a private key and a security token are needed, not all are there"));
  }
  Credentials credentials{std::move(raw.keys), {}};
  if (raw.seconds) {
    constexpr std::int64_t kSecondsMax = 9'000'000'000;  // year 2255; beyond, nanoseconds do not fit
    if (*raw.seconds <= 0 || *raw.seconds > kSecondsMax) {
      return fail(invalid_argument("Expiration: " + std::to_string(*raw.seconds) + " is no time"));
    }
    credentials.expires = WallTime(std::chrono::seconds(*raw.seconds));
  } else {
    TRY(credentials.expires, parse_rfc3339(raw.time));
  }
  return credentials;
}

}  // namespace croft::wire::ucloud
