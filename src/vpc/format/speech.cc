#include "vpc/format/speech.h"

#include <fmt/format.h>

namespace croft::wire::vpc {
namespace {

std::string told(const Speech& side) {
  const std::string versions =
      side.oldest == side.newest ? fmt::format("{}", side.newest) : fmt::format("{} to {}", side.oldest, side.newest);
  return fmt::format("{} speaks version {} of the protocol",
                     side.program.empty() ? "a program without a name (UK8S' own?)" : side.program, versions);
}

}  // namespace

Speech own_speech(std::uint32_t oldest) { return {kSpeechNewest, oldest, std::string("croft ") + CROFT_VERSION}; }

std::optional<std::string> skew_between(const Speech& own, const Speech& other) {
  if (other.newest >= own.oldest && own.newest >= other.oldest) return std::nullopt;
  const bool is_old = other.newest < own.oldest;
  return fmt::format("version skew: {}, {}: upgrade {}", told(own), told(other), is_old ? "the other" : "this one");
}

std::optional<std::string> no_lending_by_name(const Speech& other) {
  if (other.newest >= kSpeechOfKept) return std::nullopt;
  return fmt::format("{}, and lends no address by its name before version {}: upgrade it", told(other), kSpeechOfKept);
}

}  // namespace croft::wire::vpc
