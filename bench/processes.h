#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace croft::bench {

using Milliseconds = std::chrono::duration<double, std::milli>;

/// A program to run: its words, environment and standard input.
struct Call {
  std::vector<std::string> words;
  std::vector<std::string> environment;
  std::string input;
};

/// Runs one program to its end; its exit code. What it prints is lost.
[[nodiscard]] int run(const Call& call);

/// The same; what it prints on standard error goes to `errors`.
[[nodiscard]] int run_with_errors(const Call& call, std::string& errors);

/// Starts all programs, then waits for all; the exit codes in order.
[[nodiscard]] std::vector<int> run_together(const std::vector<Call>& calls);

/// The wall time of one call of `work`.
template <class Work>
Milliseconds time_of(Work work) {
  const auto began = std::chrono::steady_clock::now();
  work();
  return std::chrono::steady_clock::now() - began;
}

[[nodiscard]] Milliseconds median(std::vector<Milliseconds> samples);

}  // namespace croft::bench
