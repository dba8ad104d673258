#include "agent/door/lanes.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>
#include <variant>

namespace croft::edge {
namespace {

bool is_release(const AgentCall& call) { return std::holds_alternative<wire::agent::ReleaseCall>(call.what); }

}  // namespace

Lanes::Lanes(AgentService& service, Sink sink, const LanesOptions& options)
    : service_(service), sink_(std::move(sink)), options_(options) {
  threads_.emplace_back([this] { commit(); });
  for (std::size_t i = 0; i < options.alone; ++i) threads_.emplace_back([this] { serve_alone(); });
}

void Lanes::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  something_waits_.notify_all();
  something_is_alone_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

/// With mutex_ held.
bool Lanes::take_in(AgentCall& call) {
  const std::size_t same = is_release(call) ? releases_waiting_ : waiting_.size() - releases_waiting_;
  if (stopping_ || same >= (is_release(call) ? options_.releases_max : options_.assigns_max)) return false;
  releases_waiting_ += is_release(call) ? 1 : 0;
  waiting_.push_back(std::move(call));
  return true;
}

std::vector<AgentCall> Lanes::add(std::vector<AgentCall> calls) {
  std::vector<AgentCall> refused;
  bool is_to_wake = false;
  {
    const std::lock_guard lock(mutex_);
    for (AgentCall& call : calls) {
      if (take_in(call)) continue;
      refused.push_back(std::move(call));
    }
    is_to_wake = !committing_ && !waiting_.empty();
  }
  // The committing thread looks by itself when it has done so.
  if (is_to_wake) something_waits_.notify_one();
  return refused;
}

/// With mutex_ held: what may go now, in its order. A call that waits behind another of its owner stays.
std::vector<AgentCall> Lanes::next_batch() {
  std::vector<AgentCall> batch;
  std::deque<AgentCall> rest;
  for (auto call = waiting_.begin(); call != waiting_.end(); ++call) {
    if (batch.size() == options_.batch_max) {
      rest.insert(rest.end(), std::make_move_iterator(call), std::make_move_iterator(waiting_.end()));
      break;
    }
    if (at_work_.contains(call->owner)) {
      rest.push_back(std::move(*call));
      continue;
    }
    releases_waiting_ -= is_release(*call) ? 1 : 0;
    batch.push_back(std::move(*call));
  }
  waiting_.swap(rest);
  return batch;
}

/// With mutex_ held.
void Lanes::put_back(AgentService::Together& served) {
  for (auto call = served.waiting.rbegin(); call != served.waiting.rend(); ++call) {
    releases_waiting_ += is_release(*call) ? 1 : 0;
    waiting_.push_front(std::move(*call));
  }
  // The first of one owner's calls goes; the others wait for it, before those that nothing was done for.
  std::deque<AgentCall> behind;
  for (AgentCall& call : served.alone) {
    (at_work_.insert(call.owner).second ? alone_ : behind).push_back(std::move(call));
  }
  for (auto call = behind.rbegin(); call != behind.rend(); ++call) {
    releases_waiting_ += is_release(*call) ? 1 : 0;
    waiting_.push_front(std::move(*call));
  }
}

void Lanes::commit() {
  std::unique_lock lock(mutex_);
  for (;;) {
    std::vector<AgentCall> batch = next_batch();
    if (batch.empty()) {
      if (stopping_ && waiting_.empty()) break;
      something_waits_.wait(lock);
      continue;
    }
    committing_ = true;
    lock.unlock();
    AgentService::Together served = service_.serve_together(std::move(batch));
    if (!served.answers.empty()) sink_(std::move(served.answers));
    lock.lock();
    // Nobody waits for a claim ahead, and nobody is to wait behind it.
    if (waiting_.empty() && served.waiting.empty() && !stopping_) {
      lock.unlock();
      service_.claim_ahead();
      lock.lock();
    }
    committing_ = false;
    const std::size_t alone = served.alone.size();
    put_back(served);
    if (alone == 1) something_is_alone_.notify_one();
    if (alone > 1) something_is_alone_.notify_all();
  }
  something_is_alone_.notify_all();  // nothing more comes
}

void Lanes::serve_alone() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (alone_.empty()) {
      if (stopping_ && !committing_ && waiting_.empty()) return;
      something_is_alone_.wait(lock);
      continue;
    }
    const AgentCall call = std::move(alone_.front());
    alone_.pop_front();
    lock.unlock();
    std::vector<AgentAnswer> answers;
    answers.push_back(service_.serve_alone(call));
    sink_(std::move(answers));
    lock.lock();
    at_work_.erase(call.owner);
    something_waits_.notify_one();
  }
}

}  // namespace croft::edge
