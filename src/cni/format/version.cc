#include "cni/format/version.h"

#include <charconv>

#include <fmt/format.h>

#include "base/json/writer.h"
#include "base/text/go_text.h"

namespace croft::wire::cni {
namespace {

/// Go's strconv.Atoi: decimal digits with an optional sign, 64 bits.
[[nodiscard]] Result<std::int64_t> part(std::string_view name, std::string_view text) {
  const auto failed = [&](std::string_view why) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("failed to convert {} version part {}: strconv.Atoi: parsing {}: {}", name, go_quote(text),
                            go_quote(text), why));
  };
  std::string_view digits = text;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  if (digits.size() < text.size() && digits.starts_with('-')) return failed("invalid syntax");
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool all_read = end == digits.data() + digits.size();
  if (error == std::errc::result_out_of_range && all_read) return failed("value out of range");
  if (error != std::errc{} || !all_read) return failed("invalid syntax");
  return value;
}

}  // namespace

Result<VersionNumber> parse_version(std::string_view text) {
  VersionNumber number;
  if (text.empty()) text = kDefaultVersion;
  std::array<std::string_view, 3> parts;
  std::size_t count = 0;
  for (std::string_view rest = text;;) {
    if (count == parts.size()) {
      return fail(ErrorCode::invalid_argument, fmt::format("invalid version {}: too many parts", go_quote(text)));
    }
    const auto dot = rest.find('.');
    parts[count++] = rest.substr(0, dot);
    if (dot == rest.npos) break;
    rest.remove_prefix(dot + 1);
  }
  TRY(number.major, part("major", parts[0]));
  if (count > 1) {
    TRY(number.minor, part("minor", parts[1]));
  }
  if (count > 2) {
    TRY(number.micro, part("micro", parts[2]));
  }
  return number;
}

std::string incompatible_details(std::string_view config, std::span<const std::string_view> supported) {
  std::string list;
  for (const std::string_view version : supported) {
    if (!list.empty()) list += ' ';
    list += go_quote(version);
  }
  return fmt::format("config is {}, plugin supports [{}]", go_quote(config), list);
}

std::string print_versions(std::span<const std::string_view> supported) {
  JsonWriter out(JsonWriter::Layout::compact);
  out.begin_object();
  out.key("cniVersion");
  out.text(kNewestVersion);
  out.key("supportedVersions");
  out.begin_array();
  for (const std::string_view version : supported) out.text(version);
  out.end_array();
  out.end_object();
  return std::move(out).take() + "\n";
}

}  // namespace croft::wire::cni
