#include "calico/nodename_file.h"

#include "register/affinity.h"

namespace croft::wire::cni {

Result<std::string> decode_nodename_file(std::string_view content) {
  constexpr std::string_view kWhiteSpace = " \t\r\n";
  const auto first = content.find_first_not_of(kWhiteSpace);
  if (first == content.npos) return std::string();
  std::string name(content.substr(first, content.find_last_not_of(kWhiteSpace) - first + 1));
  if (core::check_node_name(name)) return name;
  return fail(invalid_argument(
      "what it has is no name of a node: 1 to 253 letters, digits, '-', '.' or '_', first and last a letter or digit"));
}

}  // namespace croft::wire::cni
