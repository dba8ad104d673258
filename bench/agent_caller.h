#pragma once

#include <memory>
#include <string>

#include "agent/format/messages.h"
#include "base/clock.h"
#include "http/http2_connection.h"

namespace croft::bench {

/// One plugin at the agent's socket: a connection of its own, one call at a time. Nothing of a plugin's other work is
/// in it. What is not served ends the program.
class AgentCaller {
 public:
  /// `clock` must outlive it.
  AgentCaller(const std::string& socket, std::string store, std::string node, const Clock& clock);

  void begin_add(const std::string& container);
  void end_add();
  void begin_del(const std::string& container);
  void end_del();

 private:
  [[nodiscard]] Deadline soon() const;
  [[nodiscard]] wire::agent::Caller caller() const;
  void begin(const char* method, const std::string& message);
  [[nodiscard]] std::string end();

  const std::string store_;
  const std::string node_;
  const Clock& clock_;
  std::shared_ptr<os::Http2Connection> connection_;
  std::shared_ptr<os::Http2Stream> stream_;
};

}  // namespace croft::bench
