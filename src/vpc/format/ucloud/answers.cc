#include "vpc/format/ucloud/answers.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json/decode.h"
#include "base/net/echo.h"
#include "base/result.h"
#include "base/time_text.h"

namespace croft::wire::ucloud {

namespace {

// How this cloud's JSON is read: a number may be in quotes, a text may be a number, a list of one may be the one.

constexpr std::size_t kTextBytesMax = 512;

/// A plain text of at most 512 bytes: a string, or a number or boolean as it is written. Null leaves `out`.
MaybeFault read_word(const JsonAt& at, std::string& out) {
  switch (at.value.kind()) {
    case JsonKind::null:
      return {};
    case JsonKind::boolean:
      out = at.value.boolean() ? "true" : "false";
      return {};
    case JsonKind::integer:
    case JsonKind::number:
    case JsonKind::string:
      break;
    default:
      return at.wrong_type("a string");
  }
  const std::string_view text = at.value.text();
  if (text.size() > kTextBytesMax) return at.bad_value("more than 512 bytes");
  if (!is_plain_text(text)) return at.bad_value(net::echo(text) + " holds control characters");
  out = text;
  return {};
}

/// The same of keys and tokens: up to 4096 bytes, never in a fault.
MaybeFault read_secret(const JsonAt& at, std::string& out) {
  constexpr std::size_t kSecretBytesMax = 4096;
  if (at.value.is_null()) return {};
  if (at.value.kind() != JsonKind::string) return at.wrong_type("a string");
  if (at.value.text().size() > kSecretBytesMax) return at.bad_value("more than 4096 bytes");
  if (!is_plain_text(at.value.text())) return at.bad_value("it holds control characters");
  out = at.value.text();
  return {};
}

/// An integer, or one in quotes.
MaybeFault read_count(const JsonAt& at, std::int64_t& out) {
  if (at.value.is_null()) return {};
  if (const auto integer = at.value.integer()) {
    out = *integer;
    return {};
  }
  if (at.value.kind() != JsonKind::string) return at.wrong_type("an integer");
  const std::string_view text = at.value.text();
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) {
    return at.bad_value(net::echo(text) + " is no integer");
  }
  out = value;
  return {};
}

/// A boolean, or one in quotes in any case.
MaybeFault read_flag(const JsonAt& at, bool& out) {
  if (at.value.kind() != JsonKind::string) return read_boolean(at, out);
  std::string folded;
  for (const char c : at.value.text().substr(0, 8)) folded += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  if (folded != "true" && folded != "false") return at.bad_value(net::echo(at.value.text()) + " is no boolean");
  out = folded == "true";
  return {};
}

/// Each element of an array, or an object as the only one.
template <class Take>
MaybeFault each_or_one(const JsonAt& at, std::size_t count_max, Take take) {
  return at.value.kind() == JsonKind::object ? take(at) : each_element(at, count_max, take);
}
Error error_of(const JsonFault& fault) { return invalid_argument(fault.to_string()); }

}  // namespace

namespace {

constexpr std::size_t kDepthMax = 32;
constexpr std::size_t kValuesMax = 1'000'000;
constexpr std::size_t kMessageBytesMax = 256;
constexpr std::size_t kStatusesMax = 16;

template <class T, std::size_t N>
using Members = std::array<JsonMember<T>, N>;

struct RawAnswer {
  std::optional<std::int64_t> ret_code;
  std::string message;
};

MaybeFault read_ret_code(const JsonAt& at, RawAnswer& out) {
  std::int64_t code = 0;
  if (at.value.is_null()) return at.wrong_type("an integer");
  if (auto fault = read_count(at, code)) return fault;
  out.ret_code = code;
  return {};
}

MaybeFault read_message(const JsonAt& at, RawAnswer& out) {
  if (at.value.kind() == JsonKind::string) out.message = at.value.text().substr(0, kMessageBytesMax);
  return {};
}

constexpr Members<RawAnswer, 2> kAnswerMembers{{{"RetCode", read_ret_code}, {"Message", read_message}}};

struct Status {
  std::string code;
  std::string message;
};

constexpr Members<Status, 2> kStatusMembers{{
    {"StatusCode", [](const JsonAt& at, Status& out) { return read_word(at, out.code); }},
    {"Message", [](const JsonAt& at, Status& out) { return read_word(at, out.message); }},
}};

/// An address as it stands there.
struct RawIp {
  std::string ip, mask, gateway, mac, subnet, vpc, object;
  std::vector<Status> statuses;
};

MaybeFault read_status(const JsonAt& at, RawIp& out) {
  if (at.value.kind() == JsonKind::string) return read_word(at, out.statuses.emplace_back().code);
  return each_or_one(at, kStatusesMax, [&](const JsonAt& one) {
    Status& status = out.statuses.emplace_back();
    if (one.value.kind() == JsonKind::string) return read_word(one, status.code);
    return read_object<Status>(one, kStatusMembers, status);
  });
}

constexpr Members<RawIp, 9> kIpMembers{{
    {"Ip", [](const JsonAt& at, RawIp& out) { return read_word(at, out.ip); }},
    {"Mask", [](const JsonAt& at, RawIp& out) { return read_word(at, out.mask); }},
    {"Gateway", [](const JsonAt& at, RawIp& out) { return read_word(at, out.gateway); }},
    {"Mac", [](const JsonAt& at, RawIp& out) { return read_word(at, out.mac); }},
    {"SubnetId", [](const JsonAt& at, RawIp& out) { return read_word(at, out.subnet); }},
    {"SubnetworkId", [](const JsonAt& at, RawIp& out) { return read_word(at, out.subnet); }},
    {"VPCId", [](const JsonAt& at, RawIp& out) { return read_word(at, out.vpc); }},
    {"ObjectId", [](const JsonAt& at, RawIp& out) { return read_word(at, out.object); }},
    {"Status", read_status},
}};

bool is_of_a_host(const net::Address& address) {
  using namespace net::literals;
  if (address.value() == net::U128{}) return false;
  if (address.is_v4()) {
    return !"127.0.0.0/8"_prefix.contains(address) && !"224.0.0.0/3"_prefix.contains(address) &&
           !"0.0.0.0/8"_prefix.contains(address);
  }
  return address != "::1"_ip && !"ff00::/8"_prefix.contains(address) && !address.is_v4_mapped();
}

[[nodiscard]] Result<net::Address> address_of(std::string_view member, std::string_view text) {
  const auto address = net::Address::parse(text);
  if (!address) return fail(address.error().in(member));
  if (!is_of_a_host(*address)) {
    return fail(invalid_argument(std::string(member) + ": " + net::echo(text) + " is no address of a host"));
  }
  return *address;
}

[[nodiscard]] Result<IpInfo> ip_info_of(RawIp raw) {
  IpInfo info;
  TRY(info.address, address_of("Ip", raw.ip));
  const net::Family family = info.address.family();
  if (!raw.mask.empty()) {
    TRY(info.prefix_length, parse_mask(raw.mask, family));
  }
  if (!raw.gateway.empty()) {
    TRY(const net::Address gateway, address_of("Gateway", raw.gateway));
    if (gateway.family() != family) return fail(invalid_argument("Gateway: it is of the other family than Ip"));
    info.gateway = gateway;
  }
  if (!raw.mac.empty()) {
    const auto mac = net::Mac::parse(raw.mac);
    if (!mac) return fail(mac.error().in("Mac"));
    info.mac = *mac;
  }
  info.vpc = std::move(raw.vpc);
  info.subnet = std::move(raw.subnet);
  info.object = std::move(raw.object);
  return info;
}

[[nodiscard]] std::optional<net::Family> family_of(std::string_view ip) {
  const auto address = net::Address::parse(ip);
  return address ? std::optional(address->family()) : std::nullopt;
}

/// As `0.0.0.0` for a gateway that is not there. A MAC that is none is not left out: it would be whoever's asks.
void leave_out_what_is_none(RawIp& raw, net::Family family) {
  const auto gateway = address_of("Gateway", raw.gateway);
  if (!gateway || gateway->family() != family) raw.gateway.clear();
  if (!parse_mask(raw.mask, family)) raw.mask.clear();
}

/// Calls `take` for each element of the first of these members that is there.
template <class Take>
[[nodiscard]] Result<bool> each_of_first(const Answer& answer, std::initializer_list<std::string_view> names,
                                         Take take) {
  const JsonAt root{answer.document.root(), nullptr, {}, {}};
  for (const std::string_view name : names) {
    bool is_there = false;
    const MaybeFault fault = each_member(root, [&](const JsonAt& member) -> MaybeFault {
      if (member.name != name || member.value.is_null()) return {};
      is_there = true;
      return each_or_one(member, kListMax, take);
    });
    if (fault) return fail(error_of(*fault));
    if (is_there) return true;
  }
  return false;
}

MaybeFault read_raw(const JsonAt& at, std::vector<RawIp>& out) {
  if (at.value.kind() != JsonKind::object) return at.wrong_type("an object");
  if (out.size() == kListMax) return at.bad_value("too many elements");
  return read_object<RawIp>(at, kIpMembers, out.emplace_back());
}

}  // namespace

Result<std::uint32_t> parse_mask(std::string_view text, net::Family family) {
  const int bits = net::bit_length(family);
  const auto wrong = [&] { return fail(invalid_argument("Mask: " + net::echo(text) + " is no mask")); };
  if (const auto length = net::parse_prefix_length(text)) {
    if (*length > bits || *length == 0) return wrong();
    return static_cast<std::uint32_t>(*length);
  }
  const auto address = net::Address::parse(text);
  if (!address || address->family() != family) return wrong();
  for (int length = 1; length <= bits; ++length) {
    if (address->value() == (net::U128::low_bits(bits) & ~net::U128::low_bits(bits - length))) {
      return static_cast<std::uint32_t>(length);
    }
  }
  return wrong();
}

Result<Answer> decode_answer(std::string_view bytes) {
  Answer answer;
  TRY(answer.document, parse_json(bytes, {kAnswerBytesMax, kDepthMax, kValuesMax}));
  const JsonAt root{answer.document.root(), nullptr, {}, {}};
  if (root.value.kind() != JsonKind::object) return fail(invalid_argument("the answer is no JSON object"));
  RawAnswer raw;
  if (auto fault = read_object<RawAnswer>(root, kAnswerMembers, raw)) return fail(error_of(*fault));
  if (!raw.ret_code) return fail(invalid_argument("the answer has no RetCode"));
  answer.ret_code = *raw.ret_code;
  answer.message = std::move(raw.message);
  return answer;
}

Result<IpInfo> decode_allocated(const Answer& answer) {
  std::vector<RawIp> raw;
  TRY_VOID(each_of_first(answer, {"IpInfo", "IpsInfo"}, [&](const JsonAt& at) { return read_raw(at, raw); }));
  if (raw.size() != 1) {
    return fail(invalid_argument("IpInfo: one address was asked for, " + std::to_string(raw.size()) + " came"));
  }
  return ip_info_of(std::move(raw.front()));
}

Result<std::vector<BatchItem>> decode_batch(const Answer& answer) {
  std::vector<RawIp> raw;
  TRY_VOID(each_of_first(answer, {"IpsInfo", "IpInfo"}, [&](const JsonAt& at) { return read_raw(at, raw); }));
  std::vector<BatchItem> items;
  items.reserve(raw.size());
  for (RawIp& one : raw) {
    BatchItem& item = items.emplace_back();
    bool succeeded = !one.statuses.empty() || !one.ip.empty();
    for (const Status& status : one.statuses) {
      if (status.code != "Succeeded") succeeded = false;
      if (item.message.empty()) item.message = status.message;
    }
    if (!succeeded) continue;
    TRY(item.given, ip_info_of(std::move(one)));
  }
  return items;
}

Result<AddressList> decode_addresses(const Answer& answer) {
  std::vector<RawIp> raw;
  AddressList list;
  TRY_VOID(each_of_first(answer, {"DataSet"}, [&](const JsonAt& at) { return read_raw(at, raw); }));
  list.addresses.reserve(raw.size());
  for (RawIp& one : raw) {
    if (const auto family = family_of(one.ip)) leave_out_what_is_none(one, *family);
    auto info = ip_info_of(std::move(one));
    if (info) {
      list.addresses.push_back(*std::move(info));
    } else {
      list.odd.push_back(std::move(info).error().message);
    }
  }
  return list;
}

namespace {

struct RawSubnet {
  std::string subnet, vpc, network, mask, gateway;
  std::optional<std::int64_t> available;
};

constexpr Members<RawSubnet, 6> kSubnetMembers{{
    {"SubnetId", [](const JsonAt& at, RawSubnet& out) { return read_word(at, out.subnet); }},
    {"VPCId", [](const JsonAt& at, RawSubnet& out) { return read_word(at, out.vpc); }},
    {"Subnet", [](const JsonAt& at, RawSubnet& out) { return read_word(at, out.network); }},
    {"Netmask", [](const JsonAt& at, RawSubnet& out) { return read_word(at, out.mask); }},
    {"Gateway", [](const JsonAt& at, RawSubnet& out) { return read_word(at, out.gateway); }},
    {"AvailableIPs",
     [](const JsonAt& at, RawSubnet& out) -> MaybeFault {
       if (at.value.is_null()) return {};
       std::int64_t count = 0;
       if (auto fault = read_count(at, count)) return fault;
       out.available = count;
       return {};
     }},
}};

[[nodiscard]] Result<SubnetInfo> subnet_of(RawSubnet raw) {
  SubnetInfo info{std::move(raw.subnet), std::move(raw.vpc), {}, {}, {}};
  if (info.subnet.empty()) return fail(invalid_argument("SubnetId: it is missing"));
  if (!raw.network.empty() && !raw.mask.empty()) {
    const auto network = net::Address::parse(raw.network);
    if (!network) return fail(network.error().in("Subnet"));
    TRY(const std::uint32_t length, parse_mask(raw.mask, network->family()));
    info.range = net::Prefix::containing(*network, static_cast<int>(length));
  }
  if (!raw.gateway.empty()) {
    TRY(info.gateway, address_of("Gateway", raw.gateway));
  }
  if (raw.available) info.available = static_cast<std::uint64_t>(std::max<std::int64_t>(*raw.available, 0));
  return info;
}

struct RawNic {
  std::string id, mac;
  bool is_default = false;
};

constexpr Members<RawNic, 3> kNicMembers{{
    {"NetworkInterfaceId", [](const JsonAt& at, RawNic& out) { return read_word(at, out.id); }},
    {"Mac", [](const JsonAt& at, RawNic& out) { return read_word(at, out.mac); }},
    {"Default", [](const JsonAt& at, RawNic& out) { return read_flag(at, out.is_default); }},
}};

constexpr Members<std::vector<RawNic>, 1> kHostMembers{{
    {"IPSet",
     [](const JsonAt& at, std::vector<RawNic>& out) {
       return each_or_one(at, kListMax, [&](const JsonAt& one) -> MaybeFault {
         if (out.size() == kListMax) return one.bad_value("too many interfaces");
         return read_object<RawNic>(one, kNicMembers, out.emplace_back());
       });
     }},
}};

}  // namespace

Result<std::vector<SubnetInfo>> decode_subnets(const Answer& answer) {
  std::vector<RawSubnet> raw;
  TRY_VOID(each_of_first(answer, {"DataSet"}, [&](const JsonAt& at) -> MaybeFault {
    if (raw.size() == kListMax) return at.bad_value("too many elements");
    return read_object<RawSubnet>(at, kSubnetMembers, raw.emplace_back());
  }));
  std::vector<SubnetInfo> subnets;
  for (RawSubnet& one : raw) {
    TRY(SubnetInfo info, subnet_of(std::move(one)));
    subnets.push_back(std::move(info));
  }
  return subnets;
}

Result<std::vector<HostInterface>> decode_host_interfaces(const Answer& answer) {
  std::vector<RawNic> raw;
  TRY_VOID(each_of_first(answer, {"UHostSet"},
                         [&](const JsonAt& at) { return read_object<std::vector<RawNic>>(at, kHostMembers, raw); }));
  std::vector<HostInterface> interfaces;
  for (RawNic& one : raw) {
    HostInterface& interface = interfaces.emplace_back();
    interface.id = std::move(one.id);
    interface.is_default = one.is_default;
    if (one.mac.empty()) continue;  // an address from outside, which IPSet lists too, has none
    const auto mac = net::Mac::parse(one.mac);
    if (!mac) return fail(mac.error().in("UHostSet.IPSet.Mac"));
    interface.mac = *mac;
  }
  return interfaces;
}

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
