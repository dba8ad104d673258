#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

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

}  // namespace croft::wire
