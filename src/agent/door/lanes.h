#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "agent/door/service.h"

namespace croft::edge {

struct LanesOptions {
  std::size_t alone = 4;            ///< calls that are served by themselves, at once
  std::size_t releases_max = 1024;  ///< waiting; each kind has its own room, so that neither keeps the other out
  std::size_t assigns_max = 1024;
  std::size_t batch_max = 128;  ///< calls looked at for one commit
};

/// The order of an agent's calls. One thread commits together what waits; a few serve, one by one, what has to be
/// decided by itself, so that it delays nobody. Calls for one owner are served in the order in which they came. A
/// runtime that kills an ADD sends its DEL at once, and the DEL must see what the ADD, whose plugin may be gone,
/// commits. Safe to call from several threads.
class Lanes {
 public:
  /// Takes the answers of calls that were served at once; called by threads of this object.
  using Sink = std::function<void(std::vector<AgentAnswer>)>;

  /// `service` must outlive this object.
  Lanes(AgentService& service, Sink sink, const LanesOptions& options = {});
  ~Lanes() { stop(); }
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  /// Takes calls in the order of their arrival. Those for which there is no room come back.
  [[nodiscard]] std::vector<AgentCall> add(std::vector<AgentCall> calls);

  /// Takes no more; everything that waits is still done.
  void stop();

 private:
  [[nodiscard]] bool take_in(AgentCall& call);
  [[nodiscard]] std::vector<AgentCall> next_batch();
  void put_back(AgentService::Together& served);
  void commit();
  void serve_alone();

  AgentService& service_;
  const Sink sink_;
  const LanesOptions options_;
  std::mutex mutex_;  ///< guards all below but the threads
  std::condition_variable something_waits_;
  std::condition_variable something_is_alone_;
  std::deque<AgentCall> waiting_;  ///< in the order of their arrival
  std::size_t releases_waiting_ = 0;
  std::deque<AgentCall> alone_;
  std::set<std::string> at_work_;  ///< owners of the calls in `alone_`, and of those that are served alone now
  bool stopping_ = false;
  bool committing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace croft::edge
