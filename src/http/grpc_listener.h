#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "http/transport.h"
#include "os/file_descriptor.h"

namespace croft::os {

/// A caller over a listener that knows its callers by certificates.
struct GrpcPeer {
  std::string name;     ///< the first DNS name of its certificate, or the common name if that has none; never empty
  std::string address;  ///< where it called from: `10.0.0.2:41234`, `[fd00::2]:41234`
};

/// The part of a transport that has to prove itself before it may say anything.
class Guard {
 public:
  enum class Proof : std::uint8_t {
    given,     ///< read() and write() may be used from now on
    awaited,   ///< poll descriptor(), also for room if read_waits_for_write(), and ask again
    withheld,  ///< to be closed
  };
  virtual ~Guard() = default;
  /// Goes on with the proof; never blocks.
  [[nodiscard]] virtual Proof prove() = 0;
  /// The peer's identity. Only after prove() said `given`; never null then.
  [[nodiscard]] virtual std::shared_ptr<const GrpcPeer> peer() const = 0;
};

/// A connection as a listener gives it away.
struct Accepted {
  std::unique_ptr<Transport> transport;
  Guard* guard = nullptr;  ///< of the transport, where it has to prove itself first; null: it may speak at once
};

/// Where connections come from, for a loop that waits for many descriptors: a socket that listens. Running out of
/// descriptors refuses connections instead of ending the service. Never blocks. Not synchronised.
class GrpcListener {
 public:
  GrpcListener() = default;
  virtual ~GrpcListener() = default;
  GrpcListener(const GrpcListener&) = delete;
  GrpcListener& operator=(const GrpcListener&) = delete;

  /// Readable when somebody waits to be accepted.
  [[nodiscard]] int descriptor() const { return socket_.get(); }
  /// The next connection; nothing when nobody else waits, or when many were refused: descriptor() is readable then.
  [[nodiscard]] virtual std::optional<Accepted> next() = 0;
  /// After next(): somebody waits who can be neither accepted nor refused, as there is no descriptor at all. To be
  /// tried again after a pause: descriptor() stays readable.
  [[nodiscard]] bool is_stuck() const { return stuck_; }
  /// A function that closes the way here to new callers, if there is one; from any thread, also after this object.
  [[nodiscard]] virtual std::function<void()> closer() const {
    return [] {};
  }
  /// Where it listens, for people.
  [[nodiscard]] virtual std::string where() const = 0;

  struct Counts {
    std::uint64_t accepted = 0;
    std::uint64_t foreign_users = 0;   ///< refused: may not connect
    std::uint64_t no_descriptors = 0;  ///< refused: the process or the machine had none left
  };
  [[nodiscard]] const Counts& counts() const { return counts_; }

 protected:
  /// Takes the socket, which must not block, and a descriptor to spare. Error: as system_error maps that there is none.
  [[nodiscard]] Result<void> open(FileDescriptor socket);
  /// As next(), not blocking, whom `may_connect` lets in.
  [[nodiscard]] std::optional<FileDescriptor> accept(const std::function<bool(int connection)>& may_connect);

 private:
  void refuse_without_descriptor();

  FileDescriptor socket_;
  FileDescriptor spare_;  ///< given up for a moment when there are no others
  bool stuck_ = false;
  Counts counts_;
};

}  // namespace croft::os
