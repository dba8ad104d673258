#include "cni/format/containerd.h"

#include <algorithm>

namespace croft::wire::cni {
namespace {

[[nodiscard]] std::string_view trimmed(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

/// `[plugins."io.containerd.grpc.v1.cri".cni]`, in whichever version's words.
[[nodiscard]] bool is_table_of_cni(std::string_view line) {
  line = line.substr(0, line.find(']'));
  const auto dot = line.rfind('.');
  const auto name = dot == line.npos ? std::string_view() : trimmed(line.substr(dot + 1));
  return (name == "cni" || name == "\"cni\"" || name == "'cni'") && line.find("cri") < dot;
}

/// The strings of a line, up to a comment; whether a list goes on behind it.
[[nodiscard]] bool take_strings(std::string_view line, std::vector<std::string>& out) {
  bool goes_on = line.starts_with('[');
  for (std::size_t at = 0; at < line.size() && line[at] != '#'; ++at) {
    if (line[at] == ']') goes_on = false;
    if (line[at] != '"' && line[at] != '\'') continue;
    const auto end = line.find(line[at], at + 1);
    if (end == line.npos) return false;
    const auto text = line.substr(at + 1, end - at - 1);
    if (text.starts_with('/') && text.find('\\') == text.npos) out.emplace_back(text);
    at = end;
  }
  return goes_on;
}

}  // namespace

std::vector<std::string> plugin_directories_of_containerd(std::string_view toml) {
  std::vector<std::string> found;
  bool is_cni = false, is_in_list = false;
  while (!toml.empty()) {
    const auto end = std::min(toml.find('\n'), toml.size());
    const std::string_view line = trimmed(toml.substr(0, end));
    toml.remove_prefix(std::min(end + 1, toml.size()));
    if (is_in_list) {
      // As if the list began here: it goes on until its end.
      is_in_list = take_strings("[" + std::string(line), found);
    } else if (line.starts_with('[')) {
      is_cni = is_table_of_cni(line.substr(1));
    } else if (is_cni) {
      const auto equals = line.find('=');
      const auto key = equals == line.npos ? std::string_view() : trimmed(line.substr(0, equals));
      if (key == "bin_dir" || key == "bin_dirs") is_in_list = take_strings(trimmed(line.substr(equals + 1)), found);
    }
  }
  return found;
}

}  // namespace croft::wire::cni
