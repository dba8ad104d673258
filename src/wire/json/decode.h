#pragma once

// Decoding JSON values into structs by the rules of Go's encoding/json (docs/reference/cni.md#json-rules): member names
// in any case, each occurrence of a member applied in document order, so that a later scalar wins and objects merge;
// unknown members ignored; null leaves what is there, except that it empties a list; a list replaces the one before it.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wire/json/document.h"
#include "wire/text/go_text.h"

namespace croft::wire {

/// Why a value could not be taken.
struct JsonFault {
  enum class Kind : std::uint8_t {
    wrong_type,  ///< a JSON type that Go would not store in the member
    bad_value,   ///< the right type, a value that is not allowed
  } kind = Kind::bad_value;
  std::string field;   ///< the way to the value: "ipam.pools[2].cidr"
  std::string reason;  ///< what is wrong, with the value

  [[nodiscard]] std::string to_string() const { return field.empty() ? reason : field + ": " + reason; }
  friend bool operator==(const JsonFault&, const JsonFault&) = default;
};
using MaybeFault = std::optional<JsonFault>;

/// A value and the way to it. Lives on the stack of the function that descends; the text of the way is made only for a
/// message.
struct JsonAt {
  JsonRef value;
  const JsonAt* parent = nullptr;
  std::string_view name;             ///< of the member; empty for the root and for elements
  std::optional<std::size_t> index;  ///< of the element

  [[nodiscard]] std::string path() const;
  [[nodiscard]] JsonFault wrong_type(std::string_view wanted) const;
  [[nodiscard]] JsonFault bad_value(std::string reason) const;
};

/// Takes a string of at most `bytes_max` bytes; null leaves `out`.
[[nodiscard]] MaybeFault read_text(const JsonAt& at, std::size_t bytes_max, std::string& out);
/// Takes an integer from `min` to `max`; null leaves `out`.
[[nodiscard]] MaybeFault read_integer(const JsonAt& at, std::int64_t min, std::int64_t max, std::int64_t& out);
/// Takes a boolean; null leaves `out`.
[[nodiscard]] MaybeFault read_boolean(const JsonAt& at, bool& out);

/// Takes an array of at most `count_max` elements, each by `read_element` into a fresh T (which decides about null
/// elements); it replaces `out`. Null empties `out`. On a fault `out` holds the elements before it.
template <class T>
[[nodiscard]] MaybeFault read_list(const JsonAt& at, std::size_t count_max,
                                   MaybeFault (*read_element)(const JsonAt&, T&), std::vector<T>& out) {
  out.clear();
  if (at.value.is_null()) return {};
  if (at.value.kind() != JsonKind::array) return at.wrong_type("an array");
  for (auto child = at.value.first_child(); child; child = child->next_sibling()) {
    if (out.size() == count_max) {
      return at.bad_value("more than " + std::to_string(count_max) + " elements");
    }
    const JsonAt element{*child, &at, {}, out.size()};
    if (auto fault = read_element(element, out.emplace_back())) return fault;
  }
  return {};
}

/// A member that a struct T takes, and how.
template <class T>
struct JsonMember {
  std::string_view name;
  MaybeFault (*read)(const JsonAt&, T&);
};

/// What happens when a member has a fault.
enum class OnFault : std::uint8_t {
  stop,  ///< it is returned
  skip,  ///< the occurrence counts as absent and decoding goes on
};

/// Takes an object member by member; null leaves `out`. With OnFault::skip a value that is no object is an empty one.
template <class T>
[[nodiscard]] MaybeFault read_object(const JsonAt& at, std::span<const JsonMember<T>> members, T& out,
                                     OnFault on_fault = OnFault::stop) {
  if (at.value.is_null()) return {};
  if (at.value.kind() != JsonKind::object) {
    return on_fault == OnFault::skip ? MaybeFault() : at.wrong_type("an object");
  }
  for (auto child = at.value.first_child(); child; child = child->next_sibling()) {
    for (const JsonMember<T>& member : members) {
      if (!same_member_name(child->key(), member.name)) continue;
      const JsonAt inner{*child, &at, member.name, {}};
      if (auto fault = member.read(inner, out); fault && on_fault == OnFault::stop) return fault;
      break;
    }
  }
  return {};
}

/// Names the first member of an object that is none of `known`, and what may have been meant by it. A name with a `/`,
/// as extensions of CNI have one, is another's. What is no object has no members.
[[nodiscard]] MaybeFault refuse_unknown_members(const JsonAt& at, const std::vector<std::string>& known);

}  // namespace croft::wire
