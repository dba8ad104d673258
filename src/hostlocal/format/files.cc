#include "hostlocal/format/files.h"

#include <charconv>

#include "base/text/go_text.h"

namespace croft::wire::host_local {
namespace {

constexpr std::string_view kLineBreak = "\r\n";
constexpr std::size_t kRuneBytesMax = 4;

bool is_space_at_front(std::string_view text) {
  const Rune rune = first_rune(text);
  return rune.valid && is_space(rune.code);
}

/// The size of the white space character that the text ends with; 0 when it ends with something else.
std::size_t space_at_end(std::string_view text) {
  for (std::size_t size = 1; size <= kRuneBytesMax && size <= text.size(); ++size) {
    const std::string_view end = text.substr(text.size() - size);
    if (first_rune(end).size == size && is_space_at_front(end)) return size;
  }
  return 0;
}

}  // namespace

std::string_view holder_key(std::string_view content) {
  while (is_space_at_front(content)) content.remove_prefix(first_rune(content).size);
  while (const std::size_t size = space_at_end(content)) content.remove_suffix(size);
  return content;
}

std::string print_holder(const Holder& holder) {
  std::string text(holder_key(holder.container_id));
  if (!holder.interface_name.empty()) text.append(kLineBreak).append(holder.interface_name);
  return text;
}

std::optional<Holder> parse_holder(std::string_view content) {
  if (content.empty()) return std::nullopt;
  const std::string_view key = holder_key(content);
  const std::size_t end = key.find(kLineBreak);
  if (end == key.npos) return Holder{std::string(key), {}};
  return Holder{std::string(key.substr(0, end)), std::string(key.substr(end + kLineBreak.size()))};
}

std::string file_name(const net::Address& address) { return address.unmapped().to_string(); }

std::optional<net::Address> address_of_file(std::string_view name) {
  const auto address = net::parse_address(name);
  return address ? std::optional(address->unmapped()) : std::nullopt;
}

std::string cursor_file_name(std::size_t set) { return std::string(kCursorPrefix) + std::to_string(set); }

std::optional<std::size_t> set_of_cursor_file(std::string_view name) {
  if (!name.starts_with(kCursorPrefix)) return std::nullopt;
  const std::string_view digits = name.substr(kCursorPrefix.size());
  std::size_t set = 0;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), set);
  // A leading zero or sign is no name that cursor_file_name gives.
  if (fault != std::errc() || name != cursor_file_name(set)) return std::nullopt;
  return set;
}

std::optional<net::Address> parse_cursor(std::string_view content) { return address_of_file(content); }

}  // namespace croft::wire::host_local
