#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/decode.h"
#include "base/result.h"

namespace croft::wire::ucloud {

// How this cloud's JSON is read: a number may be in quotes, a text may be a number, a list of one may be the one.

inline constexpr std::size_t kTextBytesMax = 512;

/// A plain text of at most 512 bytes: a string, or a number or boolean as it is written. Null leaves `out`.
[[nodiscard]] MaybeFault read_word(const JsonAt& at, std::string& out);
/// The same of keys and tokens: up to 4096 bytes, never in a fault.
[[nodiscard]] MaybeFault read_secret(const JsonAt& at, std::string& out);
/// An integer, or one in quotes.
[[nodiscard]] MaybeFault read_count(const JsonAt& at, std::int64_t& out);
/// A boolean, or one in quotes in any case.
[[nodiscard]] MaybeFault read_flag(const JsonAt& at, bool& out);
/// Each element of an array, or an object as the only one.
template <class Take>
[[nodiscard]] MaybeFault each_or_one(const JsonAt& at, std::size_t count_max, Take take) {
  return at.value.kind() == JsonKind::object ? take(at) : each_element(at, count_max, take);
}
[[nodiscard]] inline Error error_of(const JsonFault& fault) { return invalid_argument(fault.to_string()); }

}  // namespace croft::wire::ucloud
