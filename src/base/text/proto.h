#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.h"

// Messages of protocol buffers (proto3). The fields of a message are told once, for both ways, beside its Rules, as in
// `template <class Io> void members(Io& io, Message<Owner> auto& v) { io.field(1, "owner.network", v.network); }`.
// Rules has `Error wrong(member, why)`, `std::string fault_of(text, bytes_max)`, which is empty for a good text, and
// kTextBytesMax. Fields of value 0, false or the empty text are not written, and one that is absent has that value. A
// field that is not known, or has another type on the wire, is passed over. The last one counts where one may be.
namespace croft::proto {

template <class T, class M>
concept Message = std::same_as<std::remove_const_t<T>, M>;

struct Field {
  std::uint32_t number = 0;
  bool is_varint = false;
  std::uint64_t value = 0;  ///< of a varint
  std::string_view bytes;   ///< of the others
};

/// Fields that are kept of what is read: a message of two bytes each would have sixteen times its size in memory.
inline constexpr std::size_t kFieldsMax = std::size_t{1} << 18;

/// Takes the first field of a message's bytes; false when they are none. A type that Croft has no use for is number 0.
[[nodiscard]] bool take_field(std::string_view& bytes, Field& field);
void append_varint(std::string& out, std::uint64_t value);

/// Makes bytes of const values, or values of bytes. A field of bytes is a text, a message with members(), or a value
/// with a text of its own (to_string(), parse()).
template <class Rules, bool reads>
class Io {
 public:
  static constexpr bool kReads = reads;

  template <class V>
  [[nodiscard]] static std::string written(const V& value) {
    Io io;
    members(io, value);
    return std::move(io.out_);
  }
  template <class V>
  [[nodiscard]] static Result<V> read(std::string_view bytes) {
    Io io;
    V value;
    io.take("", bytes, value, 0);
    if (io.fault_) return fail(*std::move(io.fault_));
    return value;
  }

  /// Refuses what is read; the first fault is kept.
  void refuse(std::string_view member, std::string_view why) {
    if (!fault_) fault_ = Rules::wrong(member, why);
  }

  template <class T>
  void field(std::uint32_t number, std::string_view member, T& value, std::size_t bytes_max = Rules::kTextBytesMax) {
    if constexpr (reads) {
      const Field* found = last(number, false);
      take(member, found != nullptr ? found->bytes : std::string_view(), value, bytes_max);
    } else if (const std::string bytes = bytes_of(value); !std::same_as<T, const std::string> || !bytes.empty()) {
      put(number, bytes);
    }
  }
  /// Any bytes.
  void bytes(std::uint32_t number, auto& value) {
    if constexpr (reads) {
      if (const Field* found = last(number, false)) value = found->bytes;
    } else if (!value.empty()) {
      put(number, value);
    }
  }
  /// One that may be absent.
  void maybe(std::uint32_t number, std::string_view member, auto& value) {
    if constexpr (reads) {
      if (last(number, false) != nullptr) field(number, member, value.emplace());
    } else if (value) {
      put(number, bytes_of(*value));
    }
  }
  void list(std::uint32_t number, std::string_view member, auto& values, std::size_t most) {
    if constexpr (reads) {
      for (std::size_t i = begin_, end = fields_.size(), count = 0; i < end && !fault_; ++i) {
        const Field found = fields_[i];
        if (found.number != number || found.is_varint) continue;
        if (++count > most) return refuse(member, "has more entries than " + std::to_string(most));
        take(member, found.bytes, values.emplace_back(), Rules::kTextBytesMax);
      }
    } else {
      for (const auto& value : values) put(number, bytes_of(value));
    }
  }
  /// An integer or a bool; or one that may be absent, and is written when it is there, also as 0.
  template <class T>
  void number(std::uint32_t number, T& value) {
    if constexpr (reads) {
      if (const Field* found = last(number, true)) value = static_cast<T>(found->value);
    } else if (value != T{}) {
      append_varint(out_, std::uint64_t{number} << 3);
      if constexpr (requires { *value; }) {
        append_varint(out_, static_cast<std::uint64_t>(*value));
      } else {
        append_varint(out_, static_cast<std::uint64_t>(value));
      }
    }
  }

 private:
  void put(std::uint32_t number, std::string_view bytes) {
    append_varint(out_, std::uint64_t{number} << 3 | 2);
    append_varint(out_, bytes.size());
    out_ += bytes;
  }
  template <class T>
  [[nodiscard]] static std::string bytes_of(const T& value) {
    if constexpr (std::same_as<T, std::string>) {
      return value;
    } else if constexpr (requires { value.to_string(); }) {
      return value.to_string();
    } else {
      return written(value);
    }
  }

  [[nodiscard]] const Field* last(std::uint32_t number, bool is_varint) const {
    for (std::size_t i = fields_.size(); i > begin_; --i) {
      const Field& one = fields_[i - 1];
      if (one.number == number && one.is_varint == is_varint) return &one;
    }
    return nullptr;
  }
  template <class T>
  void take(std::string_view member, std::string_view bytes, T& value, std::size_t bytes_max) {
    if (fault_) return;
    if constexpr (std::same_as<T, std::string>) {
      if (const std::string fault = Rules::fault_of(bytes, bytes_max); !fault.empty()) return refuse(member, fault);
      value = bytes;
    } else if constexpr (requires { T::parse(bytes); }) {
      const auto parsed = T::parse(bytes);
      if (!parsed) return refuse(member, parsed.error().message);
      value = *parsed;
    } else {
      // The fields of one message are on top of those around it.
      const std::size_t outer = std::exchange(begin_, fields_.size());
      while (!bytes.empty()) {
        if (!take_field(bytes, fields_.emplace_back())) return refuse("the whole", "is not what the protocol says");
        if (fields_.size() > kFieldsMax) return refuse("the whole", "has too many fields");
      }
      members(*this, value);
      fields_.resize(begin_);
      begin_ = outer;
    }
  }

  std::string out_;
  std::vector<Field> fields_;
  std::size_t begin_ = 0;  ///< of those of the message that is read
  std::optional<Error> fault_;
};

}  // namespace croft::proto
