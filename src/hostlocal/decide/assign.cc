#include "hostlocal/decide/assign.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/texts.h"

namespace croft::core::host_local {
namespace {

using net::Address;
using net::AddressRange;
using net::AddressWithLength;
using net::Prefix;

/// The subnet as the reference prints it: an IPv4-mapped one with the part of its length that concerns IPv4.
std::string text_of(const AddressWithLength& subnet) {
  if (!subnet.address.is_v4_mapped()) return subnet.to_string();
  constexpr int kMappedBits = 96;
  return AddressWithLength{subnet.address.unmapped(), std::max(0, subnet.length - kMappedBits)}.to_string();
}

[[nodiscard]] Result<Prefix> make_subnet(const AddressWithLength& subnet) {
  if (!subnet.address.is_valid()) return fail(invalid_argument("IP <nil> not v4 nor v6"));
  if (subnet.length > bit_length(subnet.address.family()) - 2) {
    return fail(invalid_argument(fmt::format("Network {} too small to allocate from", text_of(subnet))));
  }
  if (subnet.address.is_v4_mapped()) return fail(invalid_argument("IPNet IP and Mask version mismatch"));
  const Prefix network = subnet.network();
  if (network.address() == subnet.address) return network;
  return fail(ErrorCode::invalid_argument,
              "Network has host bits set. For a subnet mask of length {} the network address is {}", subnet.length,
              network.address());
}

Error outside(std::string_view member, const Address& address, const Prefix& subnet) {
  return make_error(ErrorCode::invalid_argument, "{} {} not in network {}", member, address, subnet);
}

/// Also false when the end is not in the subnet itself but below the start: the reference finds that here.
bool is_start(const Address& first, const Address& last, const Prefix& subnet) {
  return subnet.contains(first) && (!last.is_valid() || first.value() <= last.value());
}

/// The last address of the subnet that is handed out when no end is given: never IPv4's broadcast address.
Address default_last(const Prefix& subnet) {
  return subnet.family() == net::Family::v4 ? *subnet.last().previous() : subnet.last();
}

AddressRange between(const Address& first, const Address& last) {
  const auto range = AddressRange::make(first, last);
  CROFT_ASSERT(range.has_value());
  return *range;
}

}  // namespace

Result<Range> make_range(const RangeSpec& spec) {
  TRY(const Prefix subnet, make_subnet(spec.subnet));
  const Address second = *subnet.first().next();
  const Address gateway = spec.gateway.is_valid() ? spec.gateway.unmapped() : second;
  const Address first = spec.first.is_valid() ? spec.first.unmapped() : second;
  const Address given_last = spec.last.unmapped();
  if (spec.first.is_valid() && !is_start(first, given_last, subnet)) return fail(outside("RangeStart", first, subnet));
  const Address last = given_last.is_valid() ? given_last : default_last(subnet);
  if (!subnet.contains(last) || (given_last.is_valid() && last < first)) return fail(outside("RangeEnd", last, subnet));
  // A start on the broadcast address with no end: the reference takes it and runs out of the subnet.
  if (last < first) return fail(outside("RangeStart", first, subnet));
  TRY(const AddressRange addresses, AddressRange::make(first, last));
  return Range{subnet, addresses, gateway};
}

std::vector<Address> unassignable_addresses(const Prefix& subnet, const std::vector<Address>& gateways) {
  if (subnet.length() > bit_length(subnet.family()) - 2) return {};
  std::vector<Address> addresses = {subnet.first()};
  std::ranges::copy_if(gateways, std::back_inserter(addresses), [&](const Address& a) { return subnet.contains(a); });
  if (addresses.size() == 1) addresses.push_back(*subnet.first().next());
  if (subnet.family() == net::Family::v4) addresses.push_back(subnet.last());
  std::ranges::sort(addresses);
  const auto twice = std::ranges::unique(addresses);
  addresses.erase(twice.begin(), twice.end());
  return addresses;
}

Result<RangeSet> RangeSet::make(const std::vector<RangeSpec>& specs) {
  if (specs.empty()) return fail(invalid_argument("empty range set"));
  std::vector<Range> ranges;
  ranges.reserve(specs.size());
  for (const RangeSpec& spec : specs) {
    TRY(const Range range, make_range(spec));
    if (!ranges.empty() && ranges.front().subnet.family() != range.subnet.family()) {
      return fail(invalid_argument("mixed address families"));
    }
    ranges.push_back(range);
  }
  for (auto a = ranges.begin(); a != ranges.end(); ++a) {
    const auto b =
        std::find_if(a + 1, ranges.end(), [&](const Range& r) { return r.addresses.overlaps(a->addresses); });
    if (b == ranges.end()) continue;
    return fail(ErrorCode::invalid_argument, "subnets {} and {} overlap", a->addresses, b->addresses);
  }
  return RangeSet(std::move(ranges));
}

std::optional<std::size_t> RangeSet::find(const net::Address& address) const {
  const auto found = std::find_if(ranges_.begin(), ranges_.end(), [&](const Range& r) { return r.contains(address); });
  if (found == ranges_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - ranges_.begin());
}

bool RangeSet::overlaps(const RangeSet& other) const {
  return std::any_of(ranges_.begin(), ranges_.end(), [&](const Range& mine) {
    return std::any_of(other.ranges_.begin(), other.ranges_.end(),
                       [&](const Range& theirs) { return mine.addresses.overlaps(theirs.addresses); });
  });
}

std::string RangeSet::to_string() const {
  std::string text;
  for (const Range& range : ranges_) {
    if (!text.empty()) text += ',';
    text += range.addresses.to_string();
  }
  return text;
}

std::optional<net::AddressRange> rest_above(const net::AddressRange& range, const net::Address& address) {
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
    if (const auto rest = rest_above(ranges[begin].addresses, *cursor)) ring.push_back({begin, *rest});
  }
  for (std::size_t step = cursor_range ? 1 : 0; step < ranges.size(); ++step) {
    const std::size_t at = (begin + step) % ranges.size();
    ring.push_back({at, ranges[at].addresses});
  }
  if (cursor_range) ring.push_back({begin, between(ranges[begin].addresses.first(), *cursor)});
  return ring;
}

namespace {

/// The outcome for one set: a pick or a refusal.
struct Outcome {
  std::optional<Candidate> candidate;
  Error refusal;
};

Outcome refused(std::string why, ErrorCode code = ErrorCode::refused_by_configuration) {
  return {std::nullopt, {code, std::move(why), {}}};
}

/// One call of assign.
class Assignment {
 public:
  Assignment(const std::vector<RangeSet>& sets, const Request& request, Taken& taken)
      : sets_(sets), request_(request), remaining_(request.requested), taken_(taken) {}

  [[nodiscard]] Result<Decision> run() {
    for (std::size_t i = 0; i < sets_.size(); ++i) {
      TRY(const Outcome outcome, decide(i));
      if (!outcome.candidate) {
        decision_.refusal = outcome.refusal;
        decision_.refusal->message.insert(0, fmt::format("failed to allocate for range {}: ", i));
        return std::move(decision_);
      }
      const Range& range = sets_[i].ranges()[outcome.candidate->range];
      decision_.picks.push_back({i, {outcome.candidate->address, range.subnet.length()}, range.gateway});
    }
    if (!remaining_.empty()) decision_.refusal = nowhere();
    return std::move(decision_);
  }

 private:
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
      return refused(fmt::format("requested ip {} is subnet's gateway", address));
    }
    TRY(const bool is_taken, taken_.is_taken(address));
    if (!is_taken) return Outcome{Candidate{range, address}, {}};
    return refused(fmt::format("requested IP address {} is not available in range set {}", address, set));
  }

  [[nodiscard]] Result<Outcome> next_one(std::size_t number) {
    const RangeSet& set = sets_[number];
    TRY(const std::optional<Address> held, held_in(set));
    if (held) {
      return refused(fmt::format("{} has been allocated to {}, duplicate allocation is not allowed", *held,
                                 request_.container_id));
    }
    const auto cursor = taken_.cursor(number);
    if (!cursor) decision_.warnings.push_back("Error retrieving last reserved ip: " + cursor.error().message);
    TRY(const std::optional<Candidate> free,
        find_free(set, cursor.value_or(std::nullopt),
                  [this](const net::AddressRange& range) { return taken_.next_free(range); }));
    if (free) return Outcome{*free, {}};
    return refused("no IP addresses available in range set: " + set.to_string(), ErrorCode::exhausted);
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
    return {ErrorCode::refused_by_configuration, std::move(text), {}};
  }

  const std::vector<RangeSet>& sets_;
  const Request& request_;
  std::vector<Address> remaining_;
  std::optional<std::vector<Address>> held_;
  Decision decision_;
  Taken& taken_;
};

}  // namespace

Result<Decision> assign(const std::vector<RangeSet>& sets, const Request& request, Taken& taken) {
  return Assignment(sets, request, taken).run();
}

}  // namespace croft::core::host_local
