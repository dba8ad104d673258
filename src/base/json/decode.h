#pragma once

// Decoding JSON values into structs by the rules of Go's encoding/json (docs/notes/cni.md#json-rules): member names
// in any case, each occurrence of a member applied in document order, so that a later scalar wins and objects merge;
// unknown members ignored; null leaves what is there, except that it empties a list; a list replaces the one before it.

#include <bitset>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "base/json/document.h"
#include "base/text/go_text.h"

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

/// Calls `take(element)`, which returns a MaybeFault, for each element of an array, up to the first fault. Null has no
/// elements; more than `count_max` are a fault once the others were taken.
template <class Take>
[[nodiscard]] MaybeFault each_element(const JsonAt& at, std::size_t count_max, Take take) {
  if (at.value.is_null()) return {};
  if (at.value.kind() != JsonKind::array) return at.wrong_type("an array");
  std::size_t count = 0;
  for (auto child = at.value.first_child(); child; child = child->next_sibling()) {
    if (count == count_max) return at.bad_value("more than " + std::to_string(count_max) + " elements");
    const JsonAt element{*child, &at, {}, count++};
    if (auto fault = take(element)) return fault;
  }
  return {};
}

/// The same for each member of an object, repeated ones too; `JsonAt::name` is the member's own. Null has no members.
template <class Take>
[[nodiscard]] MaybeFault each_member(const JsonAt& at, Take take) {
  if (at.value.is_null()) return {};
  if (at.value.kind() != JsonKind::object) return at.wrong_type("an object");
  for (auto child = at.value.first_child(); child; child = child->next_sibling()) {
    const JsonAt member{*child, &at, child->key(), {}};
    if (auto fault = take(member)) return fault;
  }
  return {};
}

/// Takes an array of at most `count_max` elements, each by `read_element` into a fresh T (which decides about null
/// elements); it replaces `out`. Null empties `out`. On a fault `out` holds the elements before it.
template <class T>
[[nodiscard]] MaybeFault read_list(const JsonAt& at, std::size_t count_max,
                                   MaybeFault (*read_element)(const JsonAt&, T&), std::vector<T>& out) {
  out.clear();
  return each_element(at, count_max, [&](const JsonAt& element) { return read_element(element, out.emplace_back()); });
}

/// A member that a struct T takes, and how.
template <class T>
struct JsonMember {
  std::string_view name;
  MaybeFault (*read)(const JsonAt&, T&);
};

/// How an object is read. As it stands: by the rules of Go, see above.
struct ObjectRules {
  enum class Names : std::uint8_t {
    in_any_case,
    exact,     ///< in another case it is an unknown one
    as_known,  ///< in another case it is a fault
  } names = Names::in_any_case;
  enum class Repeated : std::uint8_t { applied, fault } repeated = Repeated::applied;
  enum class OnFault : std::uint8_t {
    stop,  ///< the member's fault is returned
    skip,  ///< the occurrence counts as absent and decoding goes on; a value that is no object is an empty one
  } on_fault = OnFault::stop;
  enum class Unknown : std::uint8_t {
    ignored,
    kept,     ///< in `kept`, in their order
    refused,  ///< the first is a fault that says what may have been meant; not one with a `/` in its name, as
              ///< extensions of CNI have it
  } unknown = Unknown::ignored;
  std::vector<JsonRef>* kept = nullptr;
};
using OnFault = ObjectRules::OnFault;

namespace decode_detail {

[[nodiscard]] bool is_named(std::string_view name, std::string_view known, ObjectRules::Names names);
/// A fault when the member may not come like this; nothing when it is to be read.
[[nodiscard]] MaybeFault check_member(const JsonAt& member, std::string_view spelling, bool is_repeated,
                                      const ObjectRules& rules);
/// `known_names` makes the list for a message.
[[nodiscard]] MaybeFault take_unknown(const JsonAt& at, const JsonAt& found, const ObjectRules& rules,
                                      const std::function<std::vector<std::string>()>& known_names);

}  // namespace decode_detail

/// The names of a table's members.
template <class T>
void add_names(std::span<const JsonMember<T>> members, std::vector<std::string>& names) {
  for (const JsonMember<T>& member : members) names.emplace_back(member.name);
}

/// Takes an object member by member; null leaves `out`. At most 64 members.
template <class T>
[[nodiscard]] MaybeFault read_object(const JsonAt& at, std::span<const JsonMember<T>> members, T& out,
                                     const ObjectRules& rules = {}) {
  if (rules.on_fault == OnFault::skip && at.value.kind() != JsonKind::object) return {};
  std::bitset<64> seen;
  CROFT_ASSERT(members.size() <= seen.size());
  return each_member(at, [&](const JsonAt& found) -> MaybeFault {
    std::size_t place = 0;
    while (place < members.size() && !decode_detail::is_named(found.name, members[place].name, rules.names)) ++place;
    if (place == members.size()) {
      return decode_detail::take_unknown(at, found, rules, [&] {
        std::vector<std::string> names;
        add_names(members, names);
        return names;
      });
    }
    const JsonAt member{found.value, &at, members[place].name, {}};
    MaybeFault fault = decode_detail::check_member(member, found.name, seen.test(place), rules);
    seen.set(place);
    if (!fault) fault = members[place].read(member, out);
    return rules.on_fault == OnFault::stop ? fault : MaybeFault();
  });
}

/// ObjectRules::Unknown::refused by itself, for an object that several tables read. A value that is no object has no
/// members.
[[nodiscard]] MaybeFault refuse_unknown_members(const JsonAt& at, const std::vector<std::string>& known);

}  // namespace croft::wire
