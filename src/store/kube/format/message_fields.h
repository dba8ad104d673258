#pragma once

// A message in protobuf, gone through before it is read into one: a field of two bytes becomes an object of a hundred,
// so that what is repeated has to be counted first. Private to store/kube/format.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/kube/format/api.h"

namespace croft::wire::kube {

/// What an object in protobuf begins with.
inline constexpr std::string_view kProtobufMark{"k8s\0", 4};

/// The fields of one message, one after the other.
class MessageFields {
 public:
  struct Field {
    std::uint32_t number = 0;
    std::string_view bytes;  ///< of a text or message; of a number none
    bool has_bytes = false;
  };

  explicit MessageFields(std::string_view message) : rest_(message) {}

  /// The next one; nothing at the end, and at what is no protobuf.
  [[nodiscard]] std::optional<Field> next();
  /// Whether it ended where it should; to be asked behind the last one.
  [[nodiscard]] bool is_sound() const { return is_sound_; }

 private:
  [[nodiscard]] bool take_number(std::uint64_t& value);
  [[nodiscard]] bool take_bytes(std::uint64_t size, std::string_view& bytes);

  std::string_view rest_;
  bool is_sound_ = true;
};

/// How often a field may be in an object, wherever the messages that have it are repeated or merged.
struct FieldBound {
  std::uint32_t number;
  std::string_view name;                    ///< as in the JSON: "status.podIPs"
  std::size_t count_max;                    ///< 0: of what is merged into one, any number
  std::span<const FieldBound> inside = {};  ///< of the message in it
};

// What one object may have of each. No object that an API server admits has more: it takes two addresses of a pod and
// two ranges of a node, and of what people may write, labels say, no more than fits into the 1.5 MiB that etcd takes.
inline constexpr std::size_t kPodIpsMax = 64;
inline constexpr std::size_t kCidrsMax = 64;  ///< podCIDRs, clusterIPs, ipFamilies, ServiceCIDRs' cidrs
inline constexpr std::size_t kNodeAddressesMax = 4096;
inline constexpr std::size_t kConditionsMax = 65'536;
inline constexpr std::size_t kContainersMax = 65'536;
inline constexpr std::size_t kManagedFieldsMax = 65'536;
inline constexpr std::size_t kPortsMax = 200'000;
inline constexpr std::size_t kMapEntriesMax = 250'000;  ///< labels, annotations, a selector

/// Counts them all. Error: corrupt, naming the object, the field, how many there are and how many may be; or that it is
/// no protobuf.
[[nodiscard]] Result<void> check_counts(std::string_view kind, std::string_view object,
                                        std::span<const FieldBound> bounds);

/// A list in protobuf, its objects still to be read; views into the body.
struct ProtobufList {
  std::string kind, api_version;
  std::string resource_version, continue_token;
  std::optional<std::int64_t> remaining;
  std::vector<std::string_view> items;
};

/// Error: corrupt, what was asked for as `what` is none or cut off, or it has more objects than `limit` allows for
/// (ApiListOf::limit), or one above kApiObjectBytesMax; kTooLarge above kApiListBytesMax.
[[nodiscard]] Result<ProtobufList> open_protobuf_list(std::string_view what, std::string_view body, std::int64_t limit);

}  // namespace croft::wire::kube
