// Whatever the personality host-local reads: network configurations, resolv.conf, and the files of its directory.
//
// Input: the first byte says what the rest is. `A` ADD, `D` DEL, `C` CHECK, `G` GC, `S` STATUS: a line of CNI_ARGS,
// then a configuration; `r` a resolv.conf; `h` the content of a reservation; `n` the name of a file; `l` the content of
// a cursor.
//
// Checked: nothing crashes; the sets of a configuration keep what RangeSet promises and do not overlap; whatever ADD
// accepts, a release accepts, and counts as many sets; errors are of the codes they may be of; what is printed of a
// holder or a name, read back, is the same.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "cni/format/network.h"
#include "cni/format/result.h"
#include "hostlocal/decide/assign.h"
#include "hostlocal/format/config.h"

namespace {

using croft::core::host_local::Range;
using croft::core::host_local::RangeSet;
using croft::net::Address;
using namespace croft::wire::cni;
using namespace croft::wire::host_local;

// ---- configurations

void check_range(const Range& range, const RangeSet& set) {
  CROFT_ASSERT(range.addresses.family() == set.family() && range.subnet.family() == set.family());
  CROFT_ASSERT(range.subnet.contains(range.addresses.first()) && range.subnet.contains(range.addresses.last()));
  CROFT_ASSERT(range.gateway.is_valid() && !range.gateway.is_v4_mapped());
}

/// The ring has every address of the set once: as many stretches as ranges, or one more where the cursor cuts one.
void check_ring(const RangeSet& set, const std::optional<Address>& cursor) {
  const auto ring = croft::core::host_local::ring_of(set, cursor);
  CROFT_ASSERT(ring.size() >= set.ranges().size() && ring.size() <= set.ranges().size() + 1);
  for (const auto& stretch : ring) CROFT_ASSERT(set.ranges()[stretch.range].addresses.contains(stretch.addresses));
  if (cursor && set.contains(*cursor)) CROFT_ASSERT(ring.back().addresses.last() == *cursor);
}

void check_set(const RangeSet& set) {
  CROFT_ASSERT(!set.ranges().empty() && set.ranges().size() <= kRangesPerSetMax);
  for (const Range& range : set.ranges()) check_range(range, set);
  check_ring(set, std::nullopt);
  check_ring(set, set.ranges().back().addresses.first());
  check_ring(set, set.ranges().front().addresses.last());
  check_ring(set, set.ranges().front().gateway);
}

void check_sets(const HostLocalConfig& config) {
  CROFT_ASSERT(!config.sets.empty() && config.sets.size() <= kRangeSetsMax);
  CROFT_ASSERT(config.set_count == config.sets.size());
  for (auto a = config.sets.begin(); a != config.sets.end(); ++a) {
    check_set(*a);
    CROFT_ASSERT(std::none_of(a + 1, config.sets.end(), [&](const RangeSet& b) { return a->overlaps(b); }));
  }
}

void check_requested(const HostLocalConfig& config) {
  const auto& requested = config.requested_addresses;
  CROFT_ASSERT(requested.size() <= kHostLocalRequestedMax);
  CROFT_ASSERT(std::set(requested.begin(), requested.end()).size() == requested.size());
  for (const Address& address : requested) CROFT_ASSERT(address.is_valid() && !address.is_v4_mapped());
}

void check_config(const HostLocalConfig& config, Command command) {
  CROFT_ASSERT(is_cni_name(config.name));
  for (const std::string* path : {&config.data_dir, &config.resolv_conf}) {
    CROFT_ASSERT(path->size() <= kPathBytesMax && path->find('\0') == path->npos);
  }
  CROFT_ASSERT(!config.data_dir.empty());
  CROFT_ASSERT(config.routes.size() <= kRoutesMax && config.previous_addresses.size() <= kPreviousAddressesMax);
  check_requested(config);
  if (command == Command::del || command == Command::gc) {
    CROFT_ASSERT(config.sets.empty() && config.routes.empty() && config.requested_addresses.empty());
  } else {
    check_sets(config);
  }
}

Checked<HostLocalConfig> decode(const Network& network, const std::string& args, Command command) {
  auto config = decode_host_local_config(network, args, command);
  if (config) {
    check_config(*config, command);
  } else {
    const auto code = static_cast<int>(config.error().code);
    CROFT_ASSERT((code == 6 || code == 7 || code == 999) && !config.error().msg.empty());
  }
  return config;
}

void try_config(std::string_view bytes, Command command) {
  const auto end = std::min(bytes.find('\n'), bytes.size());
  const std::string args(bytes.substr(0, end));
  auto document = parse_network_config(bytes.substr(std::min(end + 1, bytes.size())));
  if (!document) return;
  const auto network = read_network(*std::move(document));
  if (!network) return;
  const auto config = decode(*network, args, command);
  if (!config || command != Command::add) return;
  const auto released = decode(*network, args, Command::del);
  CROFT_ASSERT(released.ok() && released->data_dir == config->data_dir && released->set_count == config->set_count);
}

// ---- files

void try_resolv_conf(std::string_view text) {
  const auto dns = croft::wire::parse_resolv_conf(text);
  if (!dns) return;
  const auto is_value = [](const std::string& value) {
    return !value.empty() && value.find_first_of(" \t\r\n") == value.npos;
  };
  for (const auto* list : {&dns->nameservers, &dns->search, &dns->options}) {
    CROFT_ASSERT(std::all_of(list->begin(), list->end(), is_value));
  }
  CROFT_ASSERT(dns->domain.empty() || is_value(dns->domain));
}

void try_holder(std::string_view content) {
  const std::string_view key = holder_key(content);
  CROFT_ASSERT(holder_key(key) == key);
  const auto holder = parse_holder(content);
  CROFT_ASSERT(holder.has_value() == !content.empty());
  if (!holder) return;
  const std::string printed = print_holder(*holder);
  // Only white space in front of the line break gets lost: no plugin writes that.
  if (holder_key(holder->container_id) == holder->container_id) CROFT_ASSERT(printed == key);
  const auto again = parse_holder(printed);
  CROFT_ASSERT(again ? print_holder(*again) == printed : printed.empty());
}

void try_file_name(std::string_view name) {
  const auto address = address_of_file(name);
  const auto set = set_of_cursor_file(name);
  CROFT_ASSERT(!(address && set));
  if (set) CROFT_ASSERT(cursor_file_name(*set) == name);
  if (!address) return;
  CROFT_ASSERT(!address->is_v4_mapped() && address_of_file(file_name(*address)) == address);
  CROFT_ASSERT(name != kLockFile);
}

void try_cursor(std::string_view content) {
  const auto address = parse_cursor(content);
  if (address) CROFT_ASSERT(parse_cursor(address->to_string()) == address);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'A':
      try_config(rest, Command::add);
      break;
    case 'D':
      try_config(rest, Command::del);
      break;
    case 'C':
      try_config(rest, Command::check);
      break;
    case 'G':
      try_config(rest, Command::gc);
      break;
    case 'S':
      try_config(rest, Command::status);
      break;
    case 'r':
      try_resolv_conf(rest);
      break;
    case 'h':
      try_holder(rest);
      break;
    case 'n':
      try_file_name(rest);
      break;
    case 'l':
      try_cursor(rest);
      break;
    default:
      break;
  }
  return 0;
}
