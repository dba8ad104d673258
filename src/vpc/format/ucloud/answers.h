#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json/document.h"
#include "base/net/address.h"
#include "base/net/mac.h"
#include "base/net/prefix.h"
#include "base/result.h"
#include "vpc/format/ucloud/requests.h"

namespace croft::wire::ucloud {

// The API's answers (docs/formats/ucloud.md). Everything in it is somebody else's: each answer is at most
// kAnswerBytesMax, each list at most kListMax long, each text at most 512 bytes of plain characters. Errors are
// invalid_argument and name the member; whether that is `internal` or `unknown_outcome` is the caller's to say.

inline constexpr std::size_t kAnswerBytesMax = std::size_t{4} << 20;
inline constexpr std::size_t kListMax = 16'384;

/// An answer of any action.
struct Answer {
  std::int64_t ret_code = 0;  ///< RetCode, also where it is a number in quotes
  std::string message;        ///< of the API, cut at 256 bytes; whoever prints it makes it printable
  JsonDocument document;
};
/// Error: it is no JSON object with a RetCode.
[[nodiscard]] Result<Answer> decode_answer(std::string_view bytes);

/// A secondary address. Only what a host can have: no loopback, multicast or unspecified address.
struct IpInfo {
  net::Address address;
  std::optional<std::uint32_t> prefix_length;  ///< of Mask: `255.255.255.0`, `24`, `ffff:ffff::`
  std::optional<net::Address> gateway;
  std::optional<net::Mac> mac;
  std::string vpc;
  std::string subnet;  ///< SubnetId, or SubnetworkId as the documented sample has it
  std::string object;
  friend bool operator==(const IpInfo&, const IpInfo&) = default;
};

/// One address of AllocateBatchSecondaryIp.
struct BatchItem {
  std::optional<IpInfo> given;  ///< nothing: it failed
  std::string message;          ///< why, as the cloud says it; may be empty
};

/// IpInfo of AllocateSecondaryIp: one object, or a list of one.
[[nodiscard]] Result<IpInfo> decode_allocated(const Answer& answer);
/// IpsInfo, or IpInfo as the sample has it. An item with any other Status than `Succeeded` failed; one without Status
/// and with an address was given.
[[nodiscard]] Result<std::vector<BatchItem>> decode_batch(const Answer& answer);
/// DataSet of DescribeSecondaryIp.
struct AddressList {
  std::vector<IpInfo> addresses;
  /// Elements that tell no address a host can have, each with why. Their meaning is not known: a list with one does not
  /// say of any address that it is not there.
  std::vector<std::string> odd;
};
/// Without the member there are none. A gateway or mask that is none of the address' family is left out: the subnet
/// tells it. Error: it is no list of objects.
[[nodiscard]] Result<AddressList> decode_addresses(const Answer& answer);

struct SubnetInfo {
  std::string subnet;
  std::string vpc;
  std::optional<net::Prefix> range;
  std::optional<net::Address> gateway;
  std::optional<std::uint64_t> available;  ///< AvailableIPs; a negative one is 0
  friend bool operator==(const SubnetInfo&, const SubnetInfo&) = default;
};
/// DataSet of DescribeSubnet.
[[nodiscard]] Result<std::vector<SubnetInfo>> decode_subnets(const Answer& answer);

/// The interfaces of a machine, as DescribeUHostInstance tells them.
struct HostInterface {
  std::string id;  ///< `uni-…`; may be empty
  std::optional<net::Mac> mac;
  bool is_default = false;
  friend bool operator==(const HostInterface&, const HostInterface&) = default;
};
/// UHostSet[].IPSet[] of all machines of the answer.
[[nodiscard]] Result<std::vector<HostInterface>> decode_host_interfaces(const Answer& answer);

/// The length of a mask: dotted, as an IPv6 address, or a number. Error: invalid_argument.
[[nodiscard]] Result<std::uint32_t> parse_mask(std::string_view text, net::Family family);

/// A machine's own view of itself, at `/meta-data/v1.json`. All but `mac` may be empty: not said.
struct Metadata {
  std::string zone;
  std::string region;
  std::string instance;
  std::string project;
  std::string interface_id;  ///< as the metadata call it
  net::Mac mac;
  std::string vpc;
  std::string subnet;
  bool is_bare_metal = false;
  friend bool operator==(const Metadata&, const Metadata&) = default;
};
/// The interface with `default` true, of a virtual machine (`uhost`) or a bare one (`uphost`); a machine with a single
/// interface may leave `default` away. Error: invalid_argument, also when several are the default or none is.
[[nodiscard]] Result<Metadata> decode_metadata(std::string_view bytes);

inline constexpr std::string_view kMetadataPath = "/meta-data/v1.json";
/// With the role behind it.
inline constexpr std::string_view kCredentialsPath = "/meta-data/v1/uam/security-credentials/";

/// Keys of the security token service.
struct Credentials {
  Keys keys;
  WallTime expires{};
};
/// Reads both forms: v1 with PublicKey, PrivateKey and seconds since 1970 in Data, v2 with AccessKeyId, AccessKeySecret
/// and an RFC 3339 time, in Data or beside it. Errors: refused_by_configuration for a RetCode that is not 0;
/// invalid_argument; no message tells a key.
[[nodiscard]] Result<Credentials> decode_credentials(std::string_view bytes);

}  // namespace croft::wire::ucloud
