#include "hostlocal/decide/assign.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/assert.h"

namespace croft::core::host_local {

namespace {

net::AddressRange between(const net::Address& first, const net::Address& last) {
  const auto range = net::AddressRange::make(first, last);
  CROFT_ASSERT(range.has_value());
  return *range;
}

}  // namespace

std::optional<net::AddressRange> behind(const net::AddressRange& range, const net::Address& address) {
  CROFT_ASSERT(range.contains(address));
  if (address == range.last()) return std::nullopt;
  return between(*address.next(), range.last());
}

std::vector<Stretch> ring_of(const RangeSet& set, const std::optional<net::Address>& cursor) {
  const std::vector<Range>& ranges = set.ranges();
  const std::optional<std::size_t> cursor_range = cursor ? set.find(*cursor) : std::nullopt;
  std::vector<Stretch> ring;
  ring.reserve(ranges.size() + 1);
  const std::size_t begin = cursor_range.value_or(0);
  if (cursor_range) {
    if (const auto rest = behind(ranges[begin].addresses, *cursor)) ring.push_back({begin, *rest});
  }
  for (std::size_t step = cursor_range ? 1 : 0; step < ranges.size(); ++step) {
    const std::size_t at = (begin + step) % ranges.size();
    ring.push_back({at, ranges[at].addresses});
  }
  if (cursor_range) ring.push_back({begin, between(ranges[begin].addresses.first(), *cursor)});
  return ring;
}

namespace {

using net::Address;

Error refusal(std::string message) { return {ErrorCode::refused_by_configuration, std::move(message), {}}; }

/// The outcome for one set: a pick or a refusal.
struct Outcome {
  std::optional<Candidate> candidate;
  Error refusal;
};

Outcome refused(Error error) { return {std::nullopt, std::move(error)}; }

/// One call of assign.
class Assignment {
 public:
  Assignment(const std::vector<RangeSet>& sets, const Request& request, Taken& taken)
      : sets_(sets), request_(request), remaining_(request.requested), taken_(taken) {}

  [[nodiscard]] Result<Decision> run() {
    TRY(Decision decision, choose());
    decision.warnings = std::move(warnings_);
    return decision;
  }

 private:
  [[nodiscard]] Result<Decision> choose() {
    Decision decision;
    for (std::size_t i = 0; i < sets_.size(); ++i) {
      TRY(const Outcome outcome, decide(i));
      if (!outcome.candidate) {
        decision.refusal = outcome.refusal;
        decision.refusal->message.insert(0, fmt::format("failed to allocate for range {}: ", i));
        return decision;
      }
      const Range& range = sets_[i].ranges()[outcome.candidate->range];
      decision.picks.push_back({i, {outcome.candidate->address, range.subnet.length()}, range.gateway});
    }
    if (!remaining_.empty()) decision.refusal = nowhere();
    return decision;
  }

  [[nodiscard]] Result<Outcome> decide(std::size_t set) {
    const auto requested = take_requested(sets_[set]);
    return requested ? requested_one(sets_[set], *requested) : next_one(set);
  }

  std::optional<Address> take_requested(const RangeSet& set) {
    const auto found =
        std::find_if(remaining_.begin(), remaining_.end(), [&](const Address& a) { return set.contains(a); });
    if (found == remaining_.end()) return std::nullopt;
    const Address address = *found;
    remaining_.erase(found);
    return address;
  }

  [[nodiscard]] Result<Outcome> requested_one(const RangeSet& set, const Address& address) {
    const std::size_t range = *set.find(address);
    if (address == set.ranges()[range].gateway) {
      return refused(refusal(fmt::format("requested ip {} is subnet's gateway", address.to_string())));
    }
    TRY(const bool is_taken, taken_.is_taken(address));
    if (!is_taken) return Outcome{Candidate{range, address}, {}};
    return refused(refusal(
        fmt::format("requested IP address {} is not available in range set {}", address.to_string(), set.to_string())));
  }

  [[nodiscard]] Result<Outcome> next_one(std::size_t number) {
    const RangeSet& set = sets_[number];
    TRY(const std::optional<Address> held, held_in(set));
    if (held) {
      return refused(refusal(fmt::format("{} has been allocated to {}, duplicate allocation is not allowed",
                                         held->to_string(), request_.container_id)));
    }
    const auto cursor = taken_.cursor(number);
    if (!cursor) warnings_.push_back("Error retrieving last reserved ip: " + cursor.error().message);
    TRY(const std::optional<Candidate> free,
        find_free(set, cursor.value_or(std::nullopt),
                  [this](const net::AddressRange& range) { return taken_.next_free(range); }));
    if (free) return Outcome{*free, {}};
    return refused({ErrorCode::exhausted, "no IP addresses available in range set: " + set.to_string(), {}});
  }

  [[nodiscard]] Result<std::optional<Address>> held_in(const RangeSet& set) {
    if (!held_) {
      TRY(held_, request_.held());
    }
    const auto found = std::find_if(held_->begin(), held_->end(), [&](const Address& a) { return set.contains(a); });
    return found == held_->end() ? std::nullopt : std::optional(*found);
  }

  [[nodiscard]] Error nowhere() const {
    std::string text = "failed to allocate all requested IPs:";
    for (const Address& address : remaining_) text += " " + address.to_string();
    return refusal(std::move(text));
  }

  const std::vector<RangeSet>& sets_;
  const Request& request_;
  std::vector<Address> remaining_;
  std::optional<std::vector<Address>> held_;
  std::vector<std::string> warnings_;
  Taken& taken_;
};

}  // namespace

Result<Decision> assign(const std::vector<RangeSet>& sets, const Request& request, Taken& taken) {
  return Assignment(sets, request, taken).run();
}

}  // namespace croft::core::host_local
