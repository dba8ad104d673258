#include "vpc/format/ucloud/ret_code.h"

namespace croft::wire::ucloud {

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
