#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "services/decide/mapped_range.h"

// The ports that Services have on every node (node ports) as kube-apiserver's bitmap keeps them. Rules and texts are
// the reference's (docs/notes/service-ranges.md#offsets, #flags, #bands, #range-errors).

namespace croft::core::service {

/// A range of TCP, UDP and SCTP ports. Ordinal 0 is its first port.
class NodePortRange {
 public:
  using Value = int;
  static constexpr std::string_view kAllocated = "provided port is already allocated";

  /// No ports at all.
  constexpr NodePortRange() = default;
  /// Reads `N`, `A-B` (both ends in it) or `A+n` (to A+n), blanks around it allowed; no text is the range without
  /// ports. Error: invalid_argument, with the reference's text where a number is out of bounds.
  [[nodiscard]] static Result<NodePortRange> parse(std::string_view text);

  /// `A-B`, also of a single port; empty without ports.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] constexpr int first() const { return first_; }
  [[nodiscard]] constexpr std::uint32_t size() const { return size_; }
  /// The lowest ports, which only those get who ask by name: a 32nd of the range, 16 to 128; none of a range of up
  /// to 16.
  [[nodiscard]] std::uint32_t band() const;
  [[nodiscard]] std::optional<Ordinal> ordinal_of(int port) const;
  [[nodiscard]] int value_at(Ordinal ordinal) const { return first_ + static_cast<int>(ordinal.value); }
  [[nodiscard]] std::string not_in_range(int port) const;

  friend bool operator==(const NodePortRange&, const NodePortRange&) = default;

 private:
  constexpr NodePortRange(int first, std::uint32_t size) : first_(first), size_(size) {}
  int first_ = 0;
  std::uint32_t size_ = 0;
};

using NodePorts = MappedRange<NodePortRange>;

/// Reads `--service-node-port-range`: as NodePortRange::parse, and 30000-32767 when nothing is given.
[[nodiscard]] Result<NodePortRange> parse_node_port_flag(std::string_view flag);

}  // namespace croft::core::service
