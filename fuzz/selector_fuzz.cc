// Reads any bytes as a selector. Checked: nothing crashes; a refusal has the right code and a message of one bounded
// line; the normal form of what is accepted reads back and matches the same labels, as long as it keeps the limits, and
// is its own normal form from the second on; the negation matches the others.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "register/selector.h"

namespace {

using croft::Error;
using croft::core::Selector;

/// Texts up to here have a normal form that keeps the limits.
constexpr std::size_t kSmallSize = croft::core::kSelectorBytesMax / 4;
constexpr std::ptrdiff_t kSmallNesting = croft::core::kSelectorNestingMax / 3;

void check_message(const Error& error) {
  CROFT_ASSERT(error.code == croft::ErrorCode::invalid_argument);
  CROFT_ASSERT(!error.message.empty() && error.message.size() <= croft::core::kSelectorMessageBytesMax);
  CROFT_ASSERT(std::none_of(error.message.begin(), error.message.end(),
                            [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }));
}

Selector read_back(const std::string& text) {
  const auto selector = Selector::parse(text);
  CROFT_ASSERT(selector.has_value());
  return *selector;
}

void check_selector(const Selector& selector) {
  const Selector again = read_back(selector.to_string());
  const Selector negated = read_back("!(" + selector.to_string() + ")");
  CROFT_ASSERT(read_back(again.to_string()) == again);
  CROFT_ASSERT(again == selector || selector.to_string().find("!!") != std::string::npos);
  const Selector::Labels label_sets[] = {{}, {{"a", "b"}}, {{"a", ""}, {"b", "c"}}, {{"in", "in"}, {"k", "v"}}};
  for (const auto& labels : label_sets) {
    CROFT_ASSERT(again.matches(labels) == selector.matches(labels));
    CROFT_ASSERT(negated.matches(labels) != selector.matches(labels));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  const auto selector = Selector::parse(text);
  if (!selector) {
    check_message(selector.error());
  } else if (text.size() <= kSmallSize && std::count(text.begin(), text.end(), '(') <= kSmallNesting) {
    check_selector(*selector);
  }
  return 0;
}
