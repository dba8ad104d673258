#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/net/address.h"

namespace croft::core {

/// Why an allocator gave nothing, in its own words.
struct NotTaken {
  std::string text;
  bool full = false;  ///< nothing is free; every other reason may be another's fault
};

template <class T>
using TakenOr = std::variant<T, NotTaken>;

/// The addresses and node ports that one change of a Service takes and gives back. What is taken is taken at once, for
/// this change only: when the change fails the object is thrown away and nothing has happened. What is given back
/// becomes free when all is decided, so that a change never gets back what it gave.
class Allocators {
 public:
  virtual ~Allocators() = default;

  /// The families that Services get addresses of, one or two; the first is the default.
  [[nodiscard]] virtual const std::vector<net::Family>& families() const = 0;

  /// Nothing when it was taken. The family must be one of families().
  [[nodiscard]] virtual std::optional<NotTaken> take(const net::Address& address) = 0;
  [[nodiscard]] virtual TakenOr<net::Address> take_next(net::Family family) = 0;
  /// No harm when it is in no range, or free.
  virtual void give_back(const net::Address& address) = 0;

  [[nodiscard]] virtual std::optional<NotTaken> take_port(std::uint16_t port) = 0;
  [[nodiscard]] virtual TakenOr<std::uint16_t> take_next_port() = 0;
  virtual void give_back_port(std::uint16_t port) = 0;
};

}  // namespace croft::core
