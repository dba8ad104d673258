#include "vpc/format/ucloud/requests.h"

namespace croft::wire::ucloud {
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

}  // namespace croft::wire::ucloud
