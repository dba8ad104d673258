#include "cni/format/resolv_conf.h"

#include <vector>

#include "base/text/go_text.h"

namespace croft::wire {
namespace {

/// Go's bufio.MaxScanTokenSize: what a line must stay below.
constexpr std::size_t kLineBytesMax = std::size_t{64} << 10;

/// Go's strings.Fields: the pieces between white space.
std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  std::size_t start = 0;
  std::size_t at = 0;
  const auto end_field = [&] {
    if (at > start) fields.push_back(line.substr(start, at - start));
  };
  while (at < line.size()) {
    const Rune rune = first_rune(line.substr(at));
    if (rune.valid && is_space(rune.code)) {
      end_field();
      start = at + rune.size;
    }
    at += rune.size;
  }
  end_field();
  return fields;
}

void append(std::vector<std::string>& to, const std::vector<std::string_view>& fields) {
  to.insert(to.end(), fields.begin() + 1, fields.end());
}

void take_line(std::string_view line, cni::Dns& dns) {
  const std::vector<std::string_view> fields = fields_of(line);
  if (fields.size() < 2 || fields[0].front() == '#' || fields[0].front() == ';') return;
  if (fields[0] == "nameserver") dns.nameservers.emplace_back(fields[1]);
  if (fields[0] == "domain") dns.domain = fields[1];
  if (fields[0] == "search") append(dns.search, fields);
  if (fields[0] == "options") append(dns.options, fields);
}

}  // namespace

Result<cni::Dns> parse_resolv_conf(std::string_view text) {
  cni::Dns dns;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.size() >= kLineBytesMax) return fail(ErrorCode::invalid_argument, "bufio.Scanner: token too long");
    take_line(line, dns);
    text.remove_prefix(line.size() == text.size() ? line.size() : line.size() + 1);
  }
  return dns;
}

}  // namespace croft::wire
