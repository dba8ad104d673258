// What the plugin and the agent say to each other.
//
// Input: the first byte says which message the rest is: `a` a call for addresses, `r` a call for a release, `A` and `R`
// their outcomes, `s` the agent's status.
//
// Checked: nothing crashes; a refusal has the right code; what is accepted is written and read again, and is written
// the same.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "agent/format/messages.h"
#include "base/assert.h"

namespace {

using namespace croft::wire::agent;

template <class Decode>
void try_message(std::string_view bytes, Decode decode) {
  const auto message = decode(bytes);
  if (!message) {
    CROFT_ASSERT(!message.error().message.empty());
    return;
  }
  const std::string written = encode(*message);
  const auto again = decode(written);
  CROFT_ASSERT(again ? encode(*again) == written : written.size() > kMessageBytesMax);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'a':
      try_message(rest, decode_assign_call);
      break;
    case 'r':
      try_message(rest, decode_release_call);
      break;
    case 'A':
      try_message(rest, decode_assign_outcome);
      break;
    case 'R':
      try_message(rest, decode_release_outcome);
      break;
    case 's':
      try_message(rest, decode_status);
      break;
    default:
      break;
  }
  return 0;
}
