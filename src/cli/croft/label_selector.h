#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace croft::app {

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
