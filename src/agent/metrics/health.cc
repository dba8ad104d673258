#include "agent/metrics/health.h"

#include <utility>

#include <fmt/format.h>

#include "base/printable.h"

namespace croft::edge {

void Health::begin_work() {
  const std::lock_guard lock(mutex_);
  begun_since_boot_ = clock_.now().since_boot;
}

void Health::end_work() {
  const std::lock_guard lock(mutex_);
  begun_since_boot_.reset();
}

void Health::set(const std::string& part, std::string problem) {
  const std::lock_guard lock(mutex_);
  problems_[part] = std::move(problem);
}

void Health::forget() {
  const std::lock_guard lock(mutex_);
  problems_.clear();
}

/// With mutex_ held.
std::optional<std::string> Health::stuck() const {
  if (!begun_since_boot_) return {};
  const auto span = clock_.now().since_boot - *begun_since_boot_;
  if (span <= work_max_) return {};
  return fmt::format("work has been going on for {} s", std::chrono::duration_cast<std::chrono::seconds>(span).count());
}

Health::Answer Health::alive() const {
  const std::lock_guard lock(mutex_);
  const auto problem = stuck();
  if (!problem) return {true, "ok\n"};
  return {false, fmt::format("[-]alive failed: {}\nhealthz check failed\n", *problem)};
}

Health::Answer Health::ready() const {
  const std::lock_guard lock(mutex_);
  Answer answer;
  const auto add = [&](const std::string& part, const std::string& problem) {
    answer.good = answer.good && problem.empty();
    answer.text += problem.empty() ? fmt::format("[+]{} ok\n", part)
                                   : fmt::format("[-]{} failed: {}\n", part, printable(problem, Printed::line));
  };
  if (const auto problem = stuck()) add("alive", *problem);
  if (problems_.empty()) add("work", "nothing was done yet");
  for (const auto& [part, problem] : problems_) add(part, problem);
  answer.text += answer.good ? "readyz check passed\n" : "readyz check failed\n";
  return answer;
}

Watchdog::Watchdog(const Health& health, std::chrono::milliseconds interval,
                   std::function<void(const std::string&)> stuck)
    : thread_([this, &health, interval, stuck = std::move(stuck)](const std::stop_token& end) {
        look(end, health, interval, stuck);
      }) {}

void Watchdog::look(const std::stop_token& end, const Health& health, std::chrono::milliseconds interval,
                    const std::function<void(const std::string&)>& stuck) {
  std::unique_lock lock(mutex_);
  while (!turn_.wait_for(lock, end, interval, [&end] { return end.stop_requested(); })) {
    if (end.stop_requested()) return;
    const Health::Answer answer = health.alive();
    if (!answer.good) return stuck(answer.text);
  }
}

}  // namespace croft::edge
