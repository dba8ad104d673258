#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "base/result.h"
#include "base/text/go_text.h"

namespace croft::wire {

/// The size of a network configuration on standard input: with a pod's annotations, which the API takes 256 KiB of, and
/// Go writes six bytes for one of some. A reader of standard input takes one byte more than this and leaves the refusal
/// to parse_json.
inline constexpr std::size_t kStdinBytesMax = std::size_t{2} << 20;
/// Arrays and objects inside each other; Go's limit.
inline constexpr std::size_t kJsonDepthMax = 10'000;

enum class JsonKind : std::uint8_t {
  null,
  boolean,
  integer,  ///< written without fraction and exponent, of any size
  number,   ///< any other number
  string,
  array,
  object,
};

/// "null", "a boolean", "an integer", "a number", "a string", "an array", "an object".
[[nodiscard]] std::string_view name_of(JsonKind kind);

class JsonDocument;

/// One value of a JsonDocument: a cheap reference, valid while the document lives and stays where it is.
class JsonRef {
 public:
  [[nodiscard]] JsonKind kind() const;
  [[nodiscard]] bool is_null() const { return kind() == JsonKind::null; }
  /// The value of a boolean; false for any other kind.
  [[nodiscard]] bool boolean() const;
  /// A string's text with escapes resolved; a number as written (an integer in canonical form). Empty for other kinds.
  [[nodiscard]] std::string_view text() const;
  /// An integer that fits; nullopt for anything else: 1.0 and 1e2 are no integers to Go either.
  [[nodiscard]] std::optional<std::int64_t> integer() const;
  /// The key under which an object holds this value; empty for the rest.
  [[nodiscard]] std::string_view key() const;

  /// The elements of an array or the members of an object in document order, duplicates included; for any other kind
  /// nothing: `for (auto c = v.first_child(); c; c = c->next_sibling())`.
  [[nodiscard]] std::optional<JsonRef> first_child() const;
  [[nodiscard]] std::optional<JsonRef> next_sibling() const;

 private:
  friend class JsonDocument;
  JsonRef(const JsonDocument* document, std::uint32_t index, std::uint32_t stop)
      : document_(document), index_(index), stop_(stop) {}

  const JsonDocument* document_;
  std::uint32_t index_;
  std::uint32_t stop_;  ///< the index behind the parent's last descendant
};

/// A parsed JSON text. The values lie in one array in document order, each knowing where its descendants end, so that
/// neither building nor walking nor destroying recurses, however deep the text. Immutable; movable while no JsonRef is
/// in use. About 24 bytes a value plus the text.
class JsonDocument {
 public:
  /// An empty document is `null`.
  JsonDocument();
  [[nodiscard]] JsonRef root() const;

 private:
  friend class JsonRef;
  friend class JsonBuilder;

  struct Slice {
    std::uint32_t at = 0;
    std::uint32_t size = 0;
  };
  struct Node {
    JsonKind kind = JsonKind::null;
    bool boolean = false;
    Slice key;
    Slice text;
    std::uint32_t end = 0;  ///< index behind the last descendant
  };

  [[nodiscard]] std::string_view view(Slice slice) const {
    return std::string_view(text_).substr(slice.at, slice.size);
  }

  std::vector<Node> nodes_;
  std::string text_;
};

struct JsonLimits {
  std::size_t bytes_max = kStdinBytesMax;
  std::size_t depth_max = kJsonDepthMax;
  std::size_t values_max = SIZE_MAX;  ///< each takes memory, however short it is written
  bool is_secret = false;             ///< the error says where alone: it repeats nothing of the text
};

/// Reads one JSON value (RFC 8259) with white space around it. As strict as Go's encoding/json — no byte order mark,
/// nothing after the value, no comments, control characters in strings escaped — and stricter in two points: a string
/// that is not valid UTF-8 or holds half a surrogate pair, and a number beyond the range of a double, are refused,
/// where Go replaces or ignores them. Error: invalid_argument, saying what is wrong and at which byte; storage_full for
/// more values than allowed.
[[nodiscard]] Result<JsonDocument> parse_json(std::string_view text, const JsonLimits& limits = {});

/// A member of an object, the last of its name, as in Go; nothing where it, or the object, is not there.
[[nodiscard]] std::optional<JsonRef> member_of(std::optional<JsonRef> object, std::string_view name);

// Decoding JSON values into structs by the rules of Go's encoding/json (docs/notes/cni.md#json-rules): member names
// in any case, each occurrence of a member applied in document order, so that a later scalar wins and objects merge;
// unknown members ignored; null leaves what is there, except that it empties a list; a list replaces the one before it.

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
