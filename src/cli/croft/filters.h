#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "ipam/use/inspect.h"
#include "ipam/use/transact.h"

namespace croft::app {

/// For a list of nothing: whether it is one because no such node or pool is known. Empty: not asked for. Error:
/// not_found, naming what is near or some that there are; or why it can't be found out.
[[nodiscard]] Result<void> check_known(const engine::Context& context, const std::string& node,
                                       const std::string& pool);

/// The alternatives to a pool of this name: "; did you mean …?" or the names of some.
[[nodiscard]] Result<Error> no_such_pool(const engine::Context& context, const std::string& pool);

/// Whether a pod is the one that an operator named: "pod" or "namespace/pod".
[[nodiscard]] inline bool is_pod(const std::string& name_space, const std::string& pod, const std::string& wanted) {
  return pod == wanted || (!pod.empty() && name_space + "/" + pod == wanted);
}

/// Whether an address is, or was, of that pod.
[[nodiscard]] inline bool is_pod(const engine::AddressView& a, const std::string& wanted) {
  return is_pod(a.namespace_name, a.pod, wanted);
}

/// Labels as kubectl's -l asks for them: `zone=a,rack!=7,ssd,!old`. All terms have to hold.
class LabelSelector {
 public:
  /// Error: invalid_argument naming the term. No text: everything matches.
  [[nodiscard]] static Result<LabelSelector> parse(const std::string& text);
  [[nodiscard]] bool matches(const std::map<std::string, std::string>& labels) const;
  [[nodiscard]] bool is_empty() const { return terms_.empty(); }

 private:
  struct Term {
    std::string key;
    std::optional<std::string> value;  ///< absent: whether there is such a label
    bool is_negative = false;
  };
  std::vector<Term> terms_;
};

}  // namespace croft::app
