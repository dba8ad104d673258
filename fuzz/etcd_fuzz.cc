// What a server may send: HTTP/2, gRPC's frames, etcd's answers, and an endpoint's text.
//
// Input: the first byte says what the rest is. `h` a connection, whose bytes are a server's, in pieces of a length that
// the second byte says, `H` the same without end, again and again; `g` the body of a gRPC answer, cut likewise; `r` a
// RangeResponse, `t` a TxnResponse, `w` a WatchResponse; `e` an endpoint; `p` a grpc-message, a
// grpc-status.
//
// Checked: nothing crashes or hangs; a connection that ends leaves each request with an answer or a failure; errors are
// of the codes they may be of; messages are what was framed; an endpoint is printed as it is read. A peer that keeps
// talking is not listened to beyond the deadline.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "base/clock.h"
#include "http/grpc_frame.h"
#include "http/http2_connection.h"
#include "http/transport.h"
#include "store/etcd/format/api.h"

namespace {

using namespace croft;

/// A peer that says the given bytes, from the moment on when it may, and closes. What is written to it is lost.
class Script final : public os::Transport {
 public:
  Script(std::string_view bytes, std::size_t piece, const bool& may_speak)
      : rest_(bytes), piece_(piece), may_speak_(may_speak) {}
  [[nodiscard]] Result<Moved> read(std::span<std::byte> into) override {
    if (!may_speak_) return Moved{0, true, false};
    const std::size_t size = std::min({into.size(), rest_.size(), piece_});
    if (size == 0) return Moved{0, false, true};
    std::memcpy(into.data(), rest_.data(), size);
    rest_.remove_prefix(size);
    return Moved{size, false, false};
  }
  [[nodiscard]] Result<Moved> write(std::span<const std::byte> from) override {
    return Moved{from.size(), false, false};
  }
  [[nodiscard]] int descriptor() const override { return -1; }

 private:
  std::string_view rest_;
  std::size_t piece_;
  const bool& may_speak_;
};

/// A peer that says the given bytes again and again; each piece takes a millisecond.
class Parrot final : public os::Transport {
 public:
  Parrot(std::string_view bytes, std::size_t piece, const bool& may_speak, ManualClock& clock)
      : bytes_(bytes), piece_(piece), may_speak_(may_speak), clock_(clock) {}
  [[nodiscard]] Result<Moved> read(std::span<std::byte> into) override {
    if (!may_speak_) return Moved{0, true, false};
    clock_.advance(std::chrono::milliseconds(1));
    const std::size_t size = std::min({into.size(), bytes_.size() - at_, piece_});
    std::memcpy(into.data(), bytes_.data() + at_, size);
    at_ = (at_ + size) % bytes_.size();
    return Moved{size, false, false};
  }
  [[nodiscard]] Result<Moved> write(std::span<const std::byte> from) override {
    return Moved{from.size(), false, false};
  }
  [[nodiscard]] int descriptor() const override { return -1; }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
  std::size_t piece_;
  const bool& may_speak_;
  ManualClock& clock_;
};

/// The length of the pieces, and the rest of the input.
std::size_t take_piece(std::string_view& input) {
  if (input.empty()) return 1;
  const std::size_t piece = static_cast<unsigned char>(input[0]) + std::size_t{1};
  input.remove_prefix(1);
  return piece;
}

void try_connection(std::string_view input) {
  const std::size_t piece = take_piece(input);
  const ManualClock clock;
  os::Http2Options options;
  options.header_bytes_max = 4096;
  bool may_speak = false;
  const auto connection =
      os::Http2Connection::make(std::make_unique<Script>(input, piece, may_speak), "peer", options, clock);
  const std::vector<os::Http2Header> headers = {
      {":method", "POST"}, {":scheme", "http"}, {":path", "/a"}, {":authority", "b"}};
  const auto whole = connection->open(headers, "request", true, 10'000);
  const auto piecewise = connection->open(headers, "", false, 10'000);
  CROFT_ASSERT(whole && piecewise);
  may_speak = true;
  const auto received = (*whole)->read_all({});
  CROFT_ASSERT(received.ended != received.failure.has_value());
  CROFT_ASSERT(received.bytes.size() <= 10'000);
  for (bool over = false; !over;) {
    const auto part = (*piecewise)->read({});
    CROFT_ASSERT(!part.timed_out);
    over = part.ended || part.failure;
  }
}

void try_parrot(std::string_view input) {
  const std::size_t piece = take_piece(input);
  if (input.empty()) return;
  ManualClock clock;
  bool may_speak = false;
  const auto connection =
      os::Http2Connection::make(std::make_unique<Parrot>(input, piece, may_speak, clock), "peer", {}, clock);
  const std::vector<os::Http2Header> headers = {
      {":method", "POST"}, {":scheme", "http"}, {":path", "/a"}, {":authority", "b"}};
  const auto whole = connection->open(headers, "request", true, 10'000);
  const auto piecewise = connection->open(headers, "", false, 10'000);
  CROFT_ASSERT(whole && piecewise);
  may_speak = true;
  const auto in_time = [&](Deadline deadline) {
    return clock.now().since_boot < deadline.at_since_boot + std::chrono::milliseconds(100);
  };
  Deadline deadline = Deadline::after(clock.now(), std::chrono::milliseconds(500));
  for (bool over = false; !over;) {
    const auto part = (*piecewise)->read(deadline);
    over = part.ended || part.failure || part.timed_out || part.late;
  }
  CROFT_ASSERT(in_time(deadline));
  deadline = Deadline::after(clock.now(), std::chrono::milliseconds(500));
  const auto received = (*whole)->read_all(deadline);
  CROFT_ASSERT(received.ended != received.failure.has_value());
  CROFT_ASSERT(in_time(deadline));
}

void try_frames(std::string_view input) {
  const std::size_t piece = take_piece(input);
  os::GrpcUnframer unframer(1000);
  std::string again;
  const std::string all(input);
  while (!input.empty()) {
    unframer.add(input.substr(0, piece));
    input.remove_prefix(std::min(piece, input.size()));
    for (;;) {
      const auto message = unframer.next();
      if (!message) {
        CROFT_ASSERT(message.error().code == ErrorCode::corrupt || message.error().code == ErrorCode::invalid_argument);
        return;
      }
      if (!*message) break;
      again += os::grpc_framed(**message);
    }
    CROFT_ASSERT(all.starts_with(again));
  }
  CROFT_ASSERT(unframer.has_rest() == (again.size() != all.size()));
}

template <class T>
void check_code(const Result<T>& decoded) {
  CROFT_ASSERT(decoded || (decoded.error().code == ErrorCode::corrupt && !decoded.error().message.empty()));
}

void try_range(std::string_view input) {
  using namespace wire::etcd;
  const auto response = decode_range(input);
  check_code(response);
  if (!response) return;
  const auto is_one = [](Revision revision) { return revision >= 1 && revision <= kRevisionMax; };
  CROFT_ASSERT(is_one(response->header().revision()));
  CROFT_ASSERT(!response->more() || !response->kvs().empty());
  for (const KeyValue& kv : response->kvs()) CROFT_ASSERT(is_one(kv.mod_revision()));
}

void try_txn(std::string_view input) {
  using namespace wire::etcd;
  TxnRequest request;
  *request.add_success() = to_get(range_of_key("a"));
  *request.add_success() = to_put("b", "c");
  *request.add_compare() = absent("a");
  *request.add_failure() = to_delete("d");
  *request.add_failure() = to_get(range_of_key("a"));
  const auto response = decode_txn(input, request);
  check_code(response);
  if (!response) return;
  const auto& asked = response->succeeded() ? request.success() : request.failure();
  CROFT_ASSERT(response->responses_size() == asked.size());
  for (int i = 0; i < asked.size(); ++i) {
    // The kinds of a part have the same numbers in what is asked and in what is answered.
    CROFT_ASSERT(static_cast<int>(response->responses(i).response_case()) == static_cast<int>(asked[i].request_case()));
  }
}

void try_endpoint(std::string_view input) {
  const auto endpoint = os::Endpoint::parse(input);
  if (!endpoint) {
    CROFT_ASSERT(endpoint.error().code == ErrorCode::invalid_argument);
    return;
  }
  CROFT_ASSERT(os::Endpoint::parse(endpoint->text()) == *endpoint);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'h':
      try_connection(rest);
      break;
    case 'H':
      try_parrot(rest);
      break;
    case 'g':
      try_frames(rest);
      break;
    case 'r':
      try_range(rest);
      break;
    case 't':
      try_txn(rest);
      break;
    case 'w':
      check_code(wire::etcd::decode_watch(rest));
      break;
    case 'e':
      try_endpoint(rest);
      break;
    case 'p':
      CROFT_ASSERT(os::percent_decoded(rest).size() <= rest.size());
      static_cast<void>(os::parse_grpc_code(rest));
      break;
    default:
      break;
  }
  return 0;
}
