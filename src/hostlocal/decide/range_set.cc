#include "hostlocal/decide/range_set.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

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
  return fail(invalid_argument(
      fmt::format("Network has host bits set. For a subnet mask of length {} the network address is {}", subnet.length,
                  network.address().to_string())));
}

Error outside(std::string_view member, const Address& address, const Prefix& subnet) {
  return invalid_argument(fmt::format("{} {} not in network {}", member, address.to_string(), subnet.to_string()));
}

/// Also false when the end is not in the subnet itself but below the start: the reference finds that here.
bool is_start(const Address& first, const Address& last, const Prefix& subnet) {
  return subnet.contains(first) && (!last.is_valid() || first.value() <= last.value());
}

/// The last address of the subnet that is handed out when no end is given: never IPv4's broadcast address.
Address default_last(const Prefix& subnet) {
  return subnet.family() == net::Family::v4 ? *subnet.last().previous() : subnet.last();
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

std::vector<Address> never_given(const Prefix& subnet, const std::vector<Address>& gateways) {
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
    return fail(
        invalid_argument(fmt::format("subnets {} and {} overlap", a->addresses.to_string(), b->addresses.to_string())));
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

}  // namespace croft::core::host_local
