#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/result.h"
#include "http/http1_message.h"

namespace croft::os {

// Bytes of HTTP/1.1 as they come, to a message: Boost.Beast's parser behind an interface of our own, so that only one
// file is compiled with it (docs/adr/0015-http1.md).

struct Http1Limits {
  std::size_t header_bytes_max = std::size_t{32} << 10;
  std::size_t body_bytes_max = std::size_t{4} << 20;
};

/// Reads one response. Not synchronised.
class Http1Parser {
 public:
  virtual ~Http1Parser() = default;
  /// Takes what has come. True: the message is complete; what is behind it is dropped. Error: invalid_argument, what is
  /// wrong with it; of no use after that.
  [[nodiscard]] virtual Result<bool> feed(std::string_view bytes) = 0;
  /// The peer sends no more; some messages end by that. Error: invalid_argument when this one does not.
  [[nodiscard]] virtual Result<void> end() = 0;
};

/// `into` is filled when the message is complete, and must live that long.
[[nodiscard]] std::unique_ptr<Http1Parser> make_response_parser(HttpResponse& into, const Http1Limits& limits);

}  // namespace croft::os
