// What UK8S' node agent and its callers say to each other.
//
// Input: the first byte says which message the rest is: `a` to `g` requests, `A` to `E` answers, `n` nothing.
//
// Checked: nothing crashes; a refusal has the right code; what is accepted is written and read again, and is the same;
// an address that is made from it is written the same from then on.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "vpc/format/messages.h"

namespace {

using namespace croft::wire::vpc;

void try_network(const std::optional<PodNetwork>& network) {
  if (!network) return;
  const auto address = warm_address_of(*network);
  if (!address) {
    CROFT_ASSERT(address.error().code == croft::ErrorCode::invalid_argument);
    return;
  }
  const PodNetwork canonical = pod_network_of(*address);
  const auto again = warm_address_of(canonical);
  CROFT_ASSERT(again && *again == *address);
}

template <class Value>
void try_message(std::string_view bytes) {
  const auto message = decode<Value>(bytes);
  if (!message) {
    CROFT_ASSERT(message.error().code == croft::ErrorCode::invalid_argument);
    return;
  }
  const std::string written = encode(*message);
  CROFT_ASSERT(written.size() <= bytes.size());
  const auto again = decode<Value>(written);
  CROFT_ASSERT(again && *again == *message);
  if constexpr (requires { message->network->ip; }) try_network(message->network);
  if constexpr (requires { message->pod_network; }) try_network(message->pod_network);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'a':
      try_message<AddPodNetworkRequest>(rest);
      break;
    case 'b':
      try_message<DelPodNetworkRequest>(rest);
      break;
    case 'd':
      try_message<RecordKey>(rest);
      break;
    case 'e':
      try_message<BorrowRequest>(rest);
      break;
    case 'f':
      try_message<StockRequest>(rest);
      break;
    case 'g':
      try_message<ReleaseRequest>(rest);
      break;
    case 'B':
      try_message<NetworkAnswer>(rest);
      break;
    case 'C':
      try_message<NetworksAnswer>(rest);
      break;
    case 'D':
      try_message<StockAnswer>(rest);
      break;
    default:
      break;
  }
  return 0;
}
