#pragma once

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

namespace croft::wire::vpc {

/// The lines of one block of proto/rpc/ipamd.proto, such as "message PodNetwork", without comments and indentation.
inline std::vector<std::string> lines_of(const std::string& block) {
  std::ifstream file(CROFT_IPAMD_PROTO);
  std::vector<std::string> lines;
  bool is_in = false;
  for (std::string line; std::getline(file, line);) {
    line.erase(std::min(line.find("//"), line.size()));
    line.erase(line.find_last_not_of(' ') + 1);
    line.erase(0, line.find_first_not_of(' '));
    if (line == block + " {}") return {};
    if (line == block + " {") {
      is_in = true;
    } else if (is_in && line == "}") {
      return lines;
    } else if (is_in && !line.empty()) {
      lines.push_back(line);
    }
  }
  return {"no " + block};
}

}  // namespace croft::wire::vpc
