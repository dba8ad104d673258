#include "cli/croft/label_selector.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "base/net/echo.h"

namespace croft::app {

Result<LabelSelector> LabelSelector::parse(const std::string& text) {
  LabelSelector selector;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string given = text.substr(at, comma - at);
    at = comma + 1;
    Term term;
    const std::size_t equals = given.find('=');
    if (equals == std::string::npos) {
      term.is_negative = given.starts_with('!');
      term.key = given.substr(term.is_negative ? 1 : 0);
    } else {
      term.is_negative = equals > 0 && given[equals - 1] == '!';
      term.key = given.substr(0, equals - (term.is_negative ? 1 : 0));
      const bool is_doubled = equals + 1 < given.size() && given[equals + 1] == '=';
      term.value = given.substr(equals + (is_doubled ? 2 : 1));
    }
    if (term.key.empty() || term.key.find_first_of(" !()") != std::string::npos) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("--selector: {} is none of KEY=VALUE, KEY!=VALUE, KEY and !KEY", net::echo(given)));
    }
    selector.terms_.push_back(std::move(term));
  }
  return selector;
}

bool LabelSelector::matches(const std::map<std::string, std::string>& labels) const {
  return std::ranges::all_of(terms_, [&](const Term& term) {
    const auto it = labels.find(term.key);
    const bool holds = it != labels.end() && (!term.value || it->second == *term.value);
    return holds != term.is_negative;
  });
}

}  // namespace croft::app
