#include "vpc/format/ucloud/requests.h"

#include <algorithm>

#include "base/hex.h"

namespace croft::wire::ucloud {

namespace {

void append_escaped(std::string& out, std::string_view text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~";
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  for (const char c : text) {
    if (kPlain.find(c) != kPlain.npos) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kDigits[byte >> 4];
    out += kDigits[byte & 0xf];
  }
}

}  // namespace

const std::string* find(const Parameters& parameters, std::string_view name) {
  const auto found = std::ranges::find(parameters, name, [](const auto& one) { return std::string_view(one.first); });
  return found == parameters.end() ? nullptr : &found->second;
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
  std::string hex;
  for (const char c : sha1(text)) {
    const auto byte = static_cast<unsigned char>(c);
    hex += kHexDigits[byte >> 4];
    hex += kHexDigits[byte & 0xf];
  }
  return hex;
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
    append_escaped(form, name);
    form += '=';
    append_escaped(form, value);
  }
  return form;
}

namespace {

Parameters request(std::string_view action, const Scope& scope) {
  return {{"Action", std::string(action)}, {"Region", scope.region}, {"ProjectId", scope.project}};
}

void add_target(Parameters& parameters, const Target& target) {
  parameters.emplace_back("Zone", target.zone);
  parameters.emplace_back("VPCId", target.vpc);
  parameters.emplace_back("SubnetId", target.subnet);
  parameters.emplace_back("Mac", mac_text(target.mac));
  parameters.emplace_back("ObjectId", target.object);
}

}  // namespace

std::string mac_text(const net::Mac& mac) {
  std::string text = mac.to_string();
  for (char& c : text) {
    if (c >= 'a' && c <= 'f') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

Parameters allocate_request(const Scope& scope, const Target& to, const std::optional<net::Address>& address) {
  Parameters parameters = request("AllocateSecondaryIp", scope);
  add_target(parameters, to);
  if (address) parameters.emplace_back("Ip", address->to_string());
  return parameters;
}

Parameters allocate_batch_request(const Scope& scope, const Target& to, std::uint32_t count) {
  Parameters parameters = request("AllocateBatchSecondaryIp", scope);
  add_target(parameters, to);
  parameters.emplace_back("Count", std::to_string(count));
  return parameters;
}

Parameters delete_request(const Scope& scope, const Target& of, const net::Address& address) {
  Parameters parameters = request("DeleteSecondaryIp", scope);
  add_target(parameters, of);
  parameters.emplace_back("Ip", address.to_string());
  return parameters;
}

Parameters describe_request(const Scope& scope, const std::string& vpc, const std::string& subnet,
                            const std::optional<net::Mac>& mac, const std::optional<net::Address>& address) {
  Parameters parameters = request("DescribeSecondaryIp", scope);
  parameters.emplace_back("VPCId", vpc);
  parameters.emplace_back("SubnetId", subnet);
  if (mac) parameters.emplace_back("Mac", mac_text(*mac));
  if (address) parameters.emplace_back("Ip", address->to_string());
  return parameters;
}

Parameters move_request(const Scope& scope, const std::string& subnet, const net::Address& address,
                        const net::Mac& from, const net::Mac& to) {
  Parameters parameters = request("MoveSecondaryIPMac", scope);
  parameters.emplace_back("SubnetId", subnet);
  parameters.emplace_back("Ip", address.to_string());
  parameters.emplace_back("OldMac", mac_text(from));
  parameters.emplace_back("NewMac", mac_text(to));
  return parameters;
}

Parameters describe_subnet_request(const Scope& scope, const std::string& vpc, const std::string& subnet) {
  Parameters parameters = request("DescribeSubnet", scope);
  parameters.emplace_back("VPCId", vpc);
  parameters.emplace_back("SubnetId", subnet);
  parameters.emplace_back("ShowAvailableIPs", "true");
  return parameters;
}

Parameters describe_host_request(const Scope& scope, const std::string& instance) {
  Parameters parameters = request("DescribeUHostInstance", scope);
  parameters.emplace_back("UHostIds.0", instance);
  return parameters;
}

Verdict verdict_of(std::int64_t ret_code) {
  switch (ret_code) {
    case kOk:
      return Verdict::ok;
    case kSubnetExhausted:
      return Verdict::exhausted;
    case kNoSuchAddress:
      return Verdict::no_address;
    case kRateLimited:
      return Verdict::throttled;
    case kTimedOut:
    case kGatewayFault:
    case kServiceUnavailable:
      return Verdict::fault;
    case kNoSuchToken:
      return Verdict::stale_token;
    case kNoAction:
    case kUnknownAction:
    case kNoSignature:
    case kBadSignature:
    case kNoSuchUser:
    case kNoProject:
    case kZoneNotAllowed:
    case kSourceRefused:
    case kSecurityLock:
    case kDenied:
      return Verdict::refused;
    default:
      return Verdict::other;
  }
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

std::string_view remedy_of(std::int64_t ret_code) {
  switch (ret_code) {
    case kNoAction:
      return "the request names no action: is the endpoint the API's?";
    case kUnknownAction:
      return "the endpoint does not know the action: is it the API of this region?";
    case kNoSignature:
      return "the request came without signature: does a proxy change it?";
    case kBadSignature:
      return "the private key does not belong to the public key";
    case kNoSuchUser:
      return "nobody has this public key: look at UCLOUD_API_PUBKEY";
    case kNoSuchToken:
      return "the security token is not known: look at the role of this machine";
    case kNoProject:
      return "there is no such project: look at UCLOUD_PROJECT_ID";
    case kZoneNotAllowed:
      return "the zone is not allowed to this account";
    case kSourceRefused:
      return "the account does not accept requests from this address";
    case kSecurityLock:
      return "the account is locked for security";
    case kDenied:
      return "the role or user may not do this: give it the right";
    default:
      return {};
  }
}

}  // namespace croft::wire::ucloud
