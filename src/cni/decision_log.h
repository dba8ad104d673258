#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/result.h"
#include "ipam/decide/assign.h"
#include "register/owner.h"

namespace croft::edge {

/// The log line of one command of a plugin: what was asked, by whom, how it ended, and how long it took.
class DecisionLine {
 public:
  /// `subject` is the command and what names its target: "ADD network=cbr0 container=... ifname=eth0".
  DecisionLine(const Clock& clock, std::string subject) : DecisionLine(clock, std::move(subject), clock.now()) {}
  DecisionLine(const Clock& clock, std::string subject, const Instant& started)
      : clock_(clock), started_(started), subject_(std::move(subject)) {}

  /// "<time> <subject> <outcome> us=<microseconds> <what>", outcome "ok" or "error".
  [[nodiscard]] std::string ended(const char* outcome, const std::string& what) const;

 private:
  const Clock& clock_;
  const Instant started_;
  std::string subject_;
};

/// " pod=<namespace>/<name> uid=<uid>" for a subject, as far as known; quoted where it is no plain text.
[[nodiscard]] std::string pod_text(const core::PodIdentity& pod);

/// "code=unavailable error="...""; what somebody else chose the words of is in quotation marks.
[[nodiscard]] std::string text_of(const Error& error);

/// "address=10.0.0.1 pool=one block=10.0.0.0/26", one after the other; behind what the owner had before, " again".
[[nodiscard]] std::string text_of(const core::Assigned& assigned);

/// "10.0.0.1,10.0.0.2"; "none" when there is none.
[[nodiscard]] std::string list_of(const std::vector<net::Address>& addresses);

}  // namespace croft::edge
