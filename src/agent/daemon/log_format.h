#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include <spdlog/pattern_formatter.h>

#include "base/printable.h"

namespace croft::app {

/// A text for a log: what others sent or wrote may hold anything.
[[nodiscard]] inline std::string one_line(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return text;
}

/// The form of croftd's lines: time, level, whose line it is, and the text, of which nothing reaches a terminal as more
/// than text.
class LogFormat final : public spdlog::formatter {
 public:
  explicit LogFormat(std::string who)
      : who_(std::move(who)), pattern_("%Y-%m-%dT%H:%M:%S.%eZ %l " + who_ + ": %v", spdlog::pattern_time_type::utc) {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    const std::string text = printable({message.payload.data(), message.payload.size()}, Printed::line);
    spdlog::details::log_msg safe = message;
    safe.payload = text;
    pattern_.format(safe, out);
  }
  [[nodiscard]] std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<LogFormat>(who_); }

 private:
  std::string who_;
  spdlog::pattern_formatter pattern_;
};

}  // namespace croft::app
