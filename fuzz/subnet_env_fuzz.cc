// Reads any bytes as flannel's subnet.env. Checked: nothing crashes; a refusal has the right code and one line of text;
// what is accepted is the same when it was written and read again.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/assert.h"
#include "noderanges/format/subnet_env.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  const auto env = croft::wire::decode_subnet_env(text);
  if (!env) {
    const croft::Error& error = env.error();
    CROFT_ASSERT(error.code == croft::ErrorCode::invalid_argument && !error.message.empty());
    CROFT_ASSERT(std::none_of(error.message.begin(), error.message.end(),
                              [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }));
    return 0;
  }
  const std::string written = croft::wire::encode_subnet_env(*env);
  const auto again = croft::wire::decode_subnet_env(written);
  // Addresses may be written longer than they were.
  CROFT_ASSERT(again ? *again == *env : written.size() > croft::wire::kSubnetEnvBytesMax);
  return 0;
}
