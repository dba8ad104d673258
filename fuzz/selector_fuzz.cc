// Reads any bytes as a selector. Checked: nothing crashes; a refusal has the right code and a message of one bounded
// line; the negation of what is accepted matches the other labels.

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

/// Texts up to here leave room for a negation.
constexpr std::size_t kSmallSize = croft::core::kSelectorBytesMax - 3;
constexpr std::ptrdiff_t kSmallNesting = croft::core::kSelectorNestingMax - 1;
constexpr std::size_t kMessageBytesMax = 400;

void check_message(const Error& error) {
  CROFT_ASSERT(error.code == croft::ErrorCode::invalid_argument);
  CROFT_ASSERT(!error.message.empty() && error.message.size() <= kMessageBytesMax);
  CROFT_ASSERT(std::none_of(error.message.begin(), error.message.end(),
                            [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }));
}

void check_selector(const std::string& text, const Selector& selector) {
  const auto negated = Selector::parse("!(" + text + ")");
  CROFT_ASSERT(negated.has_value());
  const Selector::Labels label_sets[] = {{}, {{"a", "b"}}, {{"a", ""}, {"b", "c"}}, {{"in", "in"}, {"k", "v"}}};
  for (const auto& labels : label_sets) CROFT_ASSERT(negated->matches(labels) != selector.matches(labels));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  const auto selector = Selector::parse(text);
  if (!selector) {
    check_message(selector.error());
  } else if (text.find_first_not_of(" \t") != text.npos && text.size() <= kSmallSize &&
             std::count(text.begin(), text.end(), '(') <= kSmallNesting) {
    check_selector(text, *selector);
  }
  return 0;
}
