#pragma once

#include <memory>
#include <string_view>

namespace croft::core {

/// The part of a foreign record beside the members that Croft knows. It travels with copies of the value from reading
/// to writing, so that nothing is lost; only the format that made it looks inside. Absent for records of Croft's own
/// format and for those that hold nothing more.
class ForeignRest {
 public:
  ForeignRest() = default;
  ForeignRest(const ForeignRest&) = delete;
  ForeignRest& operator=(const ForeignRest&) = delete;
  virtual ~ForeignRest() = default;

  /// Names this making of a pool; one that is made again under the same name has another. Empty: not known.
  [[nodiscard]] virtual std::string_view identity() const { return {}; }
  /// The CIDR of a pool as it is written there, where that has host bits. Else empty.
  [[nodiscard]] virtual std::string_view cidr_as_found() const { return {}; }
};

/// Two values are equal only when they share it: the same reading.
using ForeignRestPtr = std::shared_ptr<const ForeignRest>;

}  // namespace croft::core
