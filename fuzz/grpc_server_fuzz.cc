// What a peer may send to the agent's socket: the bytes of one connection of a gRPC server.
//
// Input: the first byte says in pieces of which length the rest comes, and by its highest bit whether the connection's
// greeting stands before it. Between the pieces the handler answers what it has, and some time passes.
//
// Checked: nothing crashes or hangs; what is held and what waits to be sent stays below the bounds; no call is told of
// twice, nor after its end; when the connection is gone no call is left, no memory is held, and who asked has hung up.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "base/clock.h"
#include "http/grpc_server.h"

namespace {

using namespace croft;

constexpr std::string_view kGreeting("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);

/// Serves one method, and watches over what it is told.
class Callee final : public os::GrpcHandler {
 public:
  [[nodiscard]] bool serves(std::string_view method) override { return method == "/u"; }
  void on_request(os::GrpcRequest request) override {
    CROFT_ASSERT(request.method == "/u" && request.message.size() <= kMessageMax && !*request.hung_up);
    CROFT_ASSERT(known.insert(request.call).second);
    requests.push_back(std::move(request));
  }

  static constexpr std::size_t kMessageMax = 1000;
  std::set<os::GrpcCallId> known;
  std::vector<os::GrpcRequest> requests;
};

void answer_all(Callee& callee, os::GrpcSession& session) {
  for (const os::GrpcRequest& request : callee.requests) {
    session.answer({request.call, request.message.size() % 2 == 0 ? os::GrpcCode::ok : os::GrpcCode::not_found,
                    request.message, request.message});
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = (data[0] & 0x7FU) * std::size_t{4} + 1;
  std::string input(reinterpret_cast<const char*>(data + 1), size - 1);
  if ((data[0] & 0x80U) != 0) input.insert(0, kGreeting);

  ManualClock clock;
  Callee callee;
  os::GrpcSessionOptions options;
  options.message_bytes_max = Callee::kMessageMax;
  options.metadata_bytes_max = 1000;
  options.streams_max = 4;
  options.unsent_bytes_max = 10'000;
  os::GrpcMemory memory{3000, 0};
  std::vector<std::shared_ptr<const std::atomic<bool>>> hung_up;
  {
    os::GrpcSession session(1, callee, options, memory, clock);
    for (std::size_t at = 0; at < input.size() && !session.is_over(); at += piece) {
      session.receive(std::as_bytes(std::span(input).subspan(at, std::min(piece, input.size() - at))));
      for (const os::GrpcRequest& request : callee.requests) hung_up.push_back(request.hung_up);
      CROFT_ASSERT(session.in_hand() <= options.streams_max && memory.bytes <= memory.bytes_max);
      // Now and then the answers are late, and the peer slow.
      if (at / piece % 3 != 2) {
        answer_all(callee, session);
        callee.requests.clear();
      }
      const std::size_t unsent = session.unsent().size();
      CROFT_ASSERT(unsent < 200'000);
      session.sent(at / piece % 5 == 4 ? unsent / 2 : unsent);
      clock.advance(std::chrono::milliseconds(1));
    }
    session.go_away();
    session.sent(session.unsent().size());
    session.hang_up();
    CROFT_ASSERT(session.in_hand() == 0);
  }
  CROFT_ASSERT(memory.bytes == 0);
  for (const auto& flag : hung_up) CROFT_ASSERT(*flag);
  return 0;
}
