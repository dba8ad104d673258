#include "vpc/format/ucloud.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/hex.h"
#include "base/json/reader.h"
#include "base/printable.h"

namespace croft::wire::ucloud {

// ---------------------------------------------------------------- requests

Parameters request(std::string_view action, const cloud::Interface& own,
                   std::initializer_list<std::pair<std::string_view, std::string>> parameters) {
  Parameters all{{"Action", std::string(action)}, {"Region", own.region}, {"ProjectId", own.project}};
  for (const auto& [name, value] : parameters) all.emplace_back(name, value);
  return all;
}

Parameters request_at(std::string_view action, const cloud::Interface& own, const cloud::CloudAddress& at,
                      std::string_view name, std::string value) {
  return request(action, own,
                 {{"Zone", own.zone},
                  {"VPCId", at.vpc},
                  {"SubnetId", at.subnet},
                  {"Mac", cloud::capital_text(at.mac)},
                  {"ObjectId", at.object},
                  {name, std::move(value)}});
}

std::string signature_of(const Parameters& parameters, std::string_view private_key, const Sha1& sha1) {
  Parameters sorted = parameters;
  std::ranges::stable_sort(sorted, {}, [](const auto& one) { return std::string_view(one.first); });
  std::string text;
  for (const auto& [name, value] : sorted) {
    if (name == "Signature") continue;
    text += name;
    text += value;
  }
  text += private_key;
  return hex_of(sha1(text));
}

Parameters signed_by(Parameters parameters, const Keys& keys, const Sha1& sha1) {
  parameters.emplace_back("PublicKey", keys.public_key);
  parameters.emplace_back("SecurityToken", keys.security_token);
  std::erase_if(parameters, [](const auto& one) { return one.second.empty(); });
  std::string signature = signature_of(parameters, keys.private_key, sha1);
  parameters.emplace_back("Signature", std::move(signature));
  return parameters;
}

std::string form_of(const Parameters& parameters) {
  std::string form;
  for (const auto& [name, value] : parameters) {
    if (!form.empty()) form += '&';
    form += percent_encoded(name) + "=" + percent_encoded(value);
  }
  return form;
}

// ---------------------------------------------------------------- codes

namespace {

constexpr auto kMeanings = std::to_array<Meaning>({
    {0, Verdict::ok, {}},
    {110, Verdict::fault, {}},
    {130, Verdict::fault, {}},
    {150, Verdict::fault, {}},
    {153, Verdict::throttled, "too many calls"},
    {160, Verdict::refused, "the request names no action: is the endpoint the API's?"},
    {161, Verdict::refused, "the endpoint does not know the action: is it the API of this region?"},
    {170, Verdict::refused, "the request came without signature: does a proxy change it?"},
    {171, Verdict::refused, "the private key does not belong to the public key"},
    {172, Verdict::refused, "nobody has this public key: look at UCLOUD_API_PUBKEY"},
    {174, Verdict::stale_token, "the security token is not known: look at the role of this machine"},
    {292, Verdict::refused, "there is no such project: look at UCLOUD_PROJECT_ID"},
    {293, Verdict::refused, "the zone is not allowed to this account"},
    {294, Verdict::refused, "the account does not accept requests from this address"},
    {295, Verdict::refused, "the account is locked for security"},
    {299, Verdict::refused, "the role or user may not do this: give it the right"},
    {57000, Verdict::exhausted, {}},
    {58221, Verdict::no_address, {}},
});

}  // namespace

Meaning meaning_of(std::int64_t ret_code) {
  const auto found = std::ranges::find(kMeanings, ret_code, &Meaning::ret_code);
  return found != kMeanings.end() ? *found : Meaning{ret_code, Verdict::other, {}};
}

ErrorCode error_code_of(Verdict verdict, bool is_write) {
  switch (verdict) {
    case Verdict::ok:
      break;
    case Verdict::exhausted:
      return ErrorCode::exhausted;
    case Verdict::no_address:
      return ErrorCode::not_found;
    case Verdict::throttled:
      return ErrorCode::unavailable;
    case Verdict::fault:
    case Verdict::other:
      return is_write ? ErrorCode::unknown_outcome : ErrorCode::unavailable;
    case Verdict::stale_token:
    case Verdict::refused:
      return ErrorCode::refused_by_configuration;
  }
  return ErrorCode::internal;
}

// ---------------------------------------------------------------- answers

namespace {

constexpr std::size_t kTextBytesMax = 512;
constexpr std::size_t kSecretBytesMax = 4096;
constexpr std::size_t kMessageBytesMax = 256;
constexpr std::size_t kDepthMax = 32;
constexpr std::size_t kValuesMax = 1'000'000;

// How this cloud's JSON is read: a number may be in quotes, a text may be a number, a list of one may be the one.

/// A plain text of at most 512 bytes: a string, or a number or boolean as it is written. Null leaves `out`.
MaybeFault read_word(const JsonAt& at, std::string& out) {
  const JsonKind kind = at.value.kind();
  if (kind == JsonKind::null) return {};
  if (kind == JsonKind::array || kind == JsonKind::object) return at.wrong_type("a string");
  const std::string_view text =
      kind != JsonKind::boolean ? at.value.text() : std::string_view(at.value.boolean() ? "true" : "false");
  if (text.size() > kTextBytesMax) return at.bad_value("more than 512 bytes");
  if (!is_plain_text(text)) return at.bad_value(echo(text) + " holds control characters");
  out = text;
  return {};
}

/// An integer, or one in quotes.
MaybeFault read_count(const JsonAt& at, std::optional<std::int64_t>& out) {
  if (at.value.is_null()) return {};
  out = at.value.integer();
  if (out) return {};
  if (at.value.kind() != JsonKind::string) return at.wrong_type("an integer");
  const std::string_view text = at.value.text();
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) {
    return at.bad_value(echo(text) + " is no integer");
  }
  out = value;
  return {};
}

// Rows of the tables below.

template <auto Member, class T>
MaybeFault word(const JsonAt& at, T& out) {
  return read_word(at, out.*Member);
}

template <auto Member, class T>
MaybeFault count(const JsonAt& at, T& out) {
  return read_count(at, out.*Member);
}

/// Each element of an array, or an object as the only one.
template <class Take>
MaybeFault each_or_one(const JsonAt& at, Take take) {
  return at.value.kind() == JsonKind::object ? take(at) : each_element(at, kListMax, take);
}

template <class T, std::size_t N>
using Members = std::array<JsonMember<T>, N>;

Error error_of(const JsonFault& fault) { return invalid_argument(fault.to_string()); }

JsonAt root_of(const JsonDocument& document) { return {document.root(), nullptr, {}, {}}; }

[[nodiscard]] Result<JsonDocument> document_of(std::string_view bytes, bool is_secret) {
  TRY(JsonDocument document, parse_json(bytes, {kAnswerBytesMax, kDepthMax, kValuesMax, is_secret}));
  if (document.root().kind() != JsonKind::object) return fail(invalid_argument("it is no JSON object"));
  return document;
}

/// Calls `take` for each element of the members of these names.
template <class Take>
[[nodiscard]] Result<void> each_of(const Answer& answer, std::initializer_list<std::string_view> names, Take take) {
  const MaybeFault fault = each_member(root_of(answer.document), [&](const JsonAt& member) -> MaybeFault {
    if (std::ranges::find(names, member.name) == names.end()) return {};
    return each_or_one(member, [&](const JsonAt& one) {
      return one.value.kind() == JsonKind::object ? take(one) : one.wrong_type("an object");
    });
  });
  if (fault) return fail(error_of(*fault));
  return {};
}

struct RawAnswer {
  std::optional<std::int64_t> ret_code;
  std::string message;
};

MaybeFault read_message(const JsonAt& at, RawAnswer& out) {
  if (at.value.kind() == JsonKind::string) out.message = at.value.text().substr(0, kMessageBytesMax);
  return {};
}

constexpr Members<RawAnswer, 2> kAnswerMembers{{{"RetCode", count<&RawAnswer::ret_code>}, {"Message", read_message}}};

/// An address as it stands there.
struct RawIp {
  std::string ip, mask, gateway, mac, subnet, vpc, object;
  std::string status, message;  ///< of several statuses the one that is no success
};

constexpr const char* kSucceeded = "Succeeded";

constexpr Members<RawIp, 2> kStatusMembers{{
    {"StatusCode", word<&RawIp::status>},
    {"Message", word<&RawIp::message>},
}};

/// A code alone, an object, or a list of either.
MaybeFault read_status(const JsonAt& at, RawIp& out) {
  const auto take = [&](const JsonAt& one) -> MaybeFault {
    if (!out.status.empty() && out.status != kSucceeded) return {};
    if (one.value.kind() == JsonKind::string) return read_word(one, out.status);
    out.status = "none";
    return read_object<RawIp>(one, kStatusMembers, out);
  };
  return at.value.kind() == JsonKind::string ? take(at) : each_or_one(at, take);
}

constexpr Members<RawIp, 9> kIpMembers{{
    {"Ip", word<&RawIp::ip>},
    {"Mask", word<&RawIp::mask>},
    {"Gateway", word<&RawIp::gateway>},
    {"Mac", word<&RawIp::mac>},
    {"SubnetId", word<&RawIp::subnet>},
    {"SubnetworkId", word<&RawIp::subnet>},
    {"VPCId", word<&RawIp::vpc>},
    {"ObjectId", word<&RawIp::object>},
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
    return fail(invalid_argument(std::string(member) + ": " + echo(text) + " is no address of a host"));
  }
  return *address;
}

[[nodiscard]] Result<cloud::CloudAddress> cloud_address_of(RawIp raw) {
  cloud::CloudAddress one;
  TRY(one.address, address_of("Ip", raw.ip));
  const net::Family family = one.address.family();
  // As `0.0.0.0` for a gateway that is not there.
  one.prefix_length = static_cast<std::uint32_t>(cloud::parse_mask(raw.mask, family).value_or(0));
  const auto gateway = address_of("Gateway", raw.gateway);
  if (gateway && gateway->family() == family) one.gateway = *gateway;
  // A MAC that is none is not left out: it would be whoever's asks.
  if (!raw.mac.empty()) {
    const auto mac = net::Mac::parse(raw.mac);
    if (!mac) return fail(mac.error().in("Mac"));
    one.mac = *mac;
  }
  one.vpc = std::move(raw.vpc);
  one.subnet = std::move(raw.subnet);
  one.object = std::move(raw.object);
  return one;
}

}  // namespace

Result<Answer> decode_answer(std::string_view bytes) {
  Answer answer;
  TRY(answer.document, document_of(bytes, false));
  RawAnswer raw;
  if (auto fault = read_object<RawAnswer>(root_of(answer.document), kAnswerMembers, raw)) return fail(error_of(*fault));
  if (!raw.ret_code) return fail(invalid_argument("the answer has no RetCode"));
  answer.ret_code = *raw.ret_code;
  answer.message = std::move(raw.message);
  return answer;
}

Result<Addresses> decode_given(const Answer& answer) {
  std::vector<RawIp> raw;
  TRY_VOID(each_of(answer, {"IpInfo", "IpsInfo"},
                   [&](const JsonAt& at) { return read_object<RawIp>(at, kIpMembers, raw.emplace_back()); }));
  Addresses given;
  for (RawIp& one : raw) {
    const bool succeeded = one.status.empty() ? !one.ip.empty() : one.status == kSucceeded;
    if (!succeeded) {
      if (!one.message.empty()) given.why_not = std::move(one.message);
      continue;
    }
    TRY(cloud::CloudAddress address, cloud_address_of(std::move(one)));
    given.addresses.push_back(std::move(address));
  }
  return given;
}

Result<Addresses> decode_addresses(const Answer& answer) {
  Addresses list;
  TRY_VOID(each_of(answer, {"DataSet"}, [&](const JsonAt& at) -> MaybeFault {
    RawIp raw;
    if (auto fault = read_object<RawIp>(at, kIpMembers, raw)) return fault;
    auto address = cloud_address_of(std::move(raw));
    if (address) {
      list.addresses.push_back(*std::move(address));
    } else if (list.odd.empty()) {
      list.odd = std::move(address).error().message;
    }
    return {};
  }));
  return list;
}

namespace {

struct RawSubnet {
  std::string subnet, network, mask, gateway;
  std::optional<std::int64_t> available;
};

constexpr Members<RawSubnet, 5> kSubnetMembers{{
    {"SubnetId", word<&RawSubnet::subnet>},
    {"Subnet", word<&RawSubnet::network>},
    {"Netmask", word<&RawSubnet::mask>},
    {"Gateway", word<&RawSubnet::gateway>},
    {"AvailableIPs", count<&RawSubnet::available>},
}};

[[nodiscard]] Result<cloud::SubnetState> subnet_of(RawSubnet raw) {
  cloud::SubnetState state{std::move(raw.subnet), {}};
  if (state.subnet.empty()) return fail(invalid_argument("SubnetId: it is missing"));
  if (!raw.network.empty() && !raw.mask.empty()) {
    const auto network = net::Address::parse(raw.network);
    if (!network) return fail(network.error().in("Subnet"));
    const auto length = cloud::parse_mask(raw.mask, network->family());
    if (length.value_or(0) == 0) return fail(invalid_argument("Netmask: " + echo(raw.mask) + " is no mask"));
    state.range = net::Prefix::containing(*network, *length);
  }
  if (!raw.gateway.empty()) {
    TRY(state.gateway, address_of("Gateway", raw.gateway));
  }
  if (raw.available) state.available = static_cast<std::uint64_t>(std::max<std::int64_t>(*raw.available, 0));
  return state;
}

}  // namespace

Result<std::vector<cloud::SubnetState>> decode_subnets(const Answer& answer) {
  std::vector<RawSubnet> raw;
  TRY_VOID(each_of(answer, {"DataSet"},
                   [&](const JsonAt& at) { return read_object<RawSubnet>(at, kSubnetMembers, raw.emplace_back()); }));
  std::vector<cloud::SubnetState> subnets;
  for (RawSubnet& one : raw) {
    TRY(cloud::SubnetState state, subnet_of(std::move(one)));
    subnets.push_back(std::move(state));
  }
  return subnets;
}

// ---------------------------------------------------------------- interfaces and metadata

namespace {

struct Nic {
  std::string is_default, id, mac, subnet, vpc;
};

constexpr Members<Nic, 2> kNicMembers{{{"NetworkInterfaceId", word<&Nic::id>}, {"Mac", word<&Nic::mac>}}};

constexpr Members<Nic, 4> kMetadataNicMembers{{
    {"default", word<&Nic::is_default>},
    {"mac", word<&Nic::mac>},
    {"subnet-id", word<&Nic::subnet>},
    {"vpc-id", word<&Nic::vpc>},
}};

struct Host {
  std::string project;
  std::vector<Nic> nics;
};

template <auto& Table>
MaybeFault nics(const JsonAt& at, Host& out) {
  return each_or_one(at, [&](const JsonAt& one) { return read_object<Nic>(one, Table, out.nics.emplace_back()); });
}

constexpr Members<Host, 1> kHostMembers{{{"IPSet", nics<kNicMembers>}}};
constexpr Members<Host, 2> kMetadataHostMembers{
    {{"project-id", word<&Host::project>}, {"network-interfaces", nics<kMetadataNicMembers>}}};

struct RawMetadata {
  std::string zone, region, instance;
  Host virtual_machine, bare_metal;
};

constexpr Members<RawMetadata, 5> kMetadataMembers{{
    {"availability-zone", word<&RawMetadata::zone>},
    {"region", word<&RawMetadata::region>},
    {"instance-id", word<&RawMetadata::instance>},
    {"uhost", [](const JsonAt& at,
                 RawMetadata& out) { return read_object<Host>(at, kMetadataHostMembers, out.virtual_machine); }},
    {"uphost",
     [](const JsonAt& at, RawMetadata& out) { return read_object<Host>(at, kMetadataHostMembers, out.bare_metal); }},
}};

[[nodiscard]] Result<Nic> default_of(const std::vector<Nic>& nics) {
  if (nics.size() == 1) return nics.front();
  const auto is_default = [](const Nic& nic) { return nic.is_default == "true" || nic.is_default == "True"; };
  const auto found = std::ranges::count_if(nics, is_default);
  if (found == 1) return *std::ranges::find_if(nics, is_default);
  return fail(invalid_argument(found > 1      ? "network-interfaces: several have \"default\": true"
                               : nics.empty() ? "network-interfaces: there is none, neither in uhost nor in uphost"
                                              : "network-interfaces: none has \"default\": true"));
}

}  // namespace

Result<std::string> decode_interface_id(const Answer& answer, const net::Mac& mac) {
  Host hosts;
  TRY_VOID(each_of(answer, {"UHostSet"}, [&](const JsonAt& at) { return read_object<Host>(at, kHostMembers, hosts); }));
  for (const Nic& nic : hosts.nics) {
    const auto its = net::Mac::parse(nic.mac);  // an address from outside, which IPSet lists too, has none
    if (!nic.id.empty() && its && *its == mac) return nic.id;
  }
  return std::string();
}

Result<Metadata> decode_metadata(std::string_view bytes) {
  TRY(const JsonDocument document, document_of(bytes, true));
  RawMetadata raw;
  if (auto fault = read_object<RawMetadata>(root_of(document), kMetadataMembers, raw)) return fail(error_of(*fault));
  const bool is_bare_metal = raw.virtual_machine.nics.empty() && !raw.bare_metal.nics.empty();
  Host& host = is_bare_metal ? raw.bare_metal : raw.virtual_machine;
  TRY(Nic nic, default_of(host.nics));
  const auto mac = net::Mac::parse(nic.mac);
  if (!mac) return fail(mac.error().in("network-interfaces.mac"));
  return Metadata{{*mac, raw.instance, std::move(nic.vpc), std::move(nic.subnet), std::move(raw.zone),
                   std::move(raw.region), std::move(host.project), raw.instance},
                  is_bare_metal};
}

namespace {

struct RawCredentials {
  std::optional<std::int64_t> ret_code, expires;  ///< in seconds since 1970
  Keys keys;
};

/// Keys and tokens: up to 4096 bytes, never in a fault.
template <auto Member>
MaybeFault secret(const JsonAt& at, RawCredentials& out) {
  if (at.value.is_null()) return {};
  if (at.value.kind() != JsonKind::string) return at.wrong_type("a string");
  const std::string_view text = at.value.text();
  if (text.size() > kSecretBytesMax || !is_plain_text(text)) return at.bad_value("it is no key");
  out.keys.*Member = text;
  return {};
}

constexpr Members<RawCredentials, 4> kDataMembers{{
    {"PublicKey", secret<&Keys::public_key>},
    {"PrivateKey", secret<&Keys::private_key>},
    {"SecurityToken", secret<&Keys::security_token>},
    {"Expiration", count<&RawCredentials::expires>},
}};

constexpr Members<RawCredentials, 2> kCredentialsMembers{{
    {"RetCode", count<&RawCredentials::ret_code>},
    {"Data", [](const JsonAt& at, RawCredentials& out) { return read_object<RawCredentials>(at, kDataMembers, out); }},
}};

}  // namespace

Result<Credentials> decode_credentials(std::string_view bytes) {
  const auto document = document_of(bytes, true);
  if (!document) return fail(invalid_argument("it is no JSON object"));  // the reader's message may repeat a key
  RawCredentials raw;
  if (auto fault = read_object<RawCredentials>(root_of(*document), kCredentialsMembers, raw)) {
    return fail(error_of(*fault));
  }
  if (raw.ret_code.value_or(0) != 0) {
    return fail(ErrorCode::refused_by_configuration,
                "the machine's metadata give no credentials: RetCode " + std::to_string(*raw.ret_code));
  }
  if (raw.keys.public_key.empty() || raw.keys.private_key.empty() || raw.keys.security_token.empty()) {
    return fail(invalid_argument("a public key, a private key and a security token are needed, not all are there"));
  }
  constexpr std::int64_t kSecondsMax = 9'000'000'000;  // year 2255; beyond, nanoseconds do not fit
  const std::int64_t expires = raw.expires.value_or(0);
  if (expires <= 0 || expires > kSecondsMax) {
    return fail(invalid_argument("Expiration: " + std::to_string(expires) + " is no time"));
  }
  return Credentials{std::move(raw.keys), WallTime(std::chrono::seconds(expires))};
}

}  // namespace croft::wire::ucloud
