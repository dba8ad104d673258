#include "hostlocal/format/config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/json/reader.h"
#include "base/json/writer.h"
#include "base/printable.h"
#include "base/text/go_text.h"

namespace croft::wire::cni {
namespace {

using core::host_local::RangeSet;
using core::host_local::RangeSpec;
using net::Address;
using net::AddressWithLength;

using SetSpec = std::vector<RangeSpec>;

/// The section `ipam`, as it was written.
struct IpamDraft {
  std::string name, type;  ///< checked for their type, as in the reference, and not used
  std::string data_dir, resolv_conf;
  RangeSpec legacy;
  std::vector<SetSpec> ranges;
  std::vector<std::optional<Route>> routes;
  bool status_when_full = false;
  // A release only counts the sets.
  bool has_legacy = false;
  std::size_t ranges_count = 0;
};

struct Draft {
  std::string version;  ///< as written, empty too
  std::optional<IpamDraft> ipam;
  std::vector<SetSpec> runtime_ranges;
  std::vector<Address> from_args_member, from_runtime;  ///< requested addresses; the invalid one for an empty text
  std::size_t runtime_ranges_count = 0;
};

/// A fault whose whole text is the reference's: it does not name the member.
JsonFault plain_fault(std::string text) { return {JsonFault::Kind::bad_value, {}, std::move(text)}; }

Error refused(std::string message) { return {Code::internal, std::move(message), {}}; }

Error error_of(const JsonFault& fault) {
  return refused(fault.field.empty() ? fault.reason : "invalid network config: " + fault.to_string());
}

// ---- values

/// Go's net.ParseCIDR takes zeros in front of the length.
std::string without_leading_zeros(std::string_view cidr) {
  const std::size_t slash = cidr.find('/');
  if (slash == cidr.npos) return std::string(cidr);
  std::string_view length = cidr.substr(slash + 1);
  while (length.size() > 1 && length.front() == '0') length.remove_prefix(1);
  return std::string(cidr.substr(0, slash + 1)).append(length);
}

/// An IPv4-mapped address stays as written. Null is an empty text to the reference, which is no CIDR.
MaybeFault read_cidr(const JsonAt& at, AddressWithLength& out) {
  if (!at.value.is_null() && at.value.kind() != JsonKind::string) return at.wrong_type("a string");
  const std::string_view text = at.value.text();
  const auto parsed = AddressWithLength::parse(without_leading_zeros(text));
  if (!parsed) return plain_fault(fmt::format("invalid CIDR address: {}", text));
  out = *parsed;
  return {};
}

/// Null and the empty text unset the address.
MaybeFault read_ip(const JsonAt& at, Address& out) {
  out = Address();
  if (at.value.is_null()) return {};
  if (at.value.kind() != JsonKind::string) return at.wrong_type("a string");
  const std::string_view text = at.value.text();
  if (text.empty()) return {};
  const auto parsed = net::parse_address(text);
  if (!parsed) return plain_fault(fmt::format("invalid IP address: {}", text));
  out = *parsed;
  return {};
}

MaybeFault read_requested_address(const JsonAt& at, Address& out) {
  if (at.value.kind() != JsonKind::string) return at.wrong_type("a string");
  const std::string_view text = at.value.text();
  if (text.empty()) return {};
  const auto parsed = parse_requested_address(without_leading_zeros(text));
  if (!parsed) return plain_fault(fmt::format("invalid IP address {}", text));
  out = *parsed;
  return {};
}

MaybeFault read_requested_addresses(const JsonAt& at, std::vector<Address>& out) {
  return read_list<Address>(at, kHostLocalRequestedMax, read_requested_address, out);
}

MaybeFault read_path(const JsonAt& at, std::string& out) {
  if (auto fault = read_text(at, kPathBytesMax, out)) return fault;
  // The system would take the part before it.
  if (out.find('\0') != out.npos) return at.bad_value(echo(out) + " has a NUL byte");
  return {};
}

// ---- routes

MaybeFault read_any_integer(const JsonAt& at, std::int64_t& out) {
  using Limits = std::numeric_limits<std::int64_t>;
  return read_integer(at, Limits::min(), Limits::max(), out);
}

MaybeFault read_optional_integer(const JsonAt& at, std::optional<std::int64_t>& out) {
  out.reset();
  if (at.value.is_null()) return {};
  return read_any_integer(at, out.emplace());
}

/// An IPv4-mapped destination becomes the IPv4 one that the reference prints.
MaybeFault read_destination(const JsonAt& at, AddressWithLength& out) {
  constexpr int kMappedBits = 96;
  if (auto fault = read_cidr(at, out)) return fault;
  if (out.address.is_v4_mapped()) out = {out.address.unmapped(), std::max(0, out.length - kMappedBits)};
  return {};
}

MaybeFault read_route_gateway(const JsonAt& at, std::optional<Address>& out) {
  Address gateway;
  if (auto fault = read_ip(at, gateway)) return fault;
  out = gateway.is_valid() ? std::optional(gateway.unmapped()) : std::nullopt;
  return {};
}

/// A null route stays empty; the reference takes it.
MaybeFault read_route(const JsonAt& at, std::optional<Route>& out) {
  static constexpr std::array<JsonMember<Route>, 7> kMembers = {
      {{"dst", [](const JsonAt& a, Route& r) { return read_destination(a, r.destination); }},
       {"gw", [](const JsonAt& a, Route& r) { return read_route_gateway(a, r.gateway); }},
       {"mtu", [](const JsonAt& a, Route& r) { return read_any_integer(a, r.mtu); }},
       {"advmss", [](const JsonAt& a, Route& r) { return read_any_integer(a, r.advmss); }},
       {"priority", [](const JsonAt& a, Route& r) { return read_any_integer(a, r.priority); }},
       {"table", [](const JsonAt& a, Route& r) { return read_optional_integer(a, r.table); }},
       {"scope", [](const JsonAt& a, Route& r) { return read_optional_integer(a, r.scope); }}}};
  if (at.value.is_null()) return {};
  return read_object<Route>(at, kMembers, out.emplace());
}

// ---- ranges

MaybeFault read_range(const JsonAt& at, RangeSpec& out) {
  static constexpr std::array<JsonMember<RangeSpec>, 4> kMembers = {
      {{"subnet", [](const JsonAt& a, RangeSpec& r) { return read_cidr(a, r.subnet); }},
       {"rangeStart", [](const JsonAt& a, RangeSpec& r) { return read_ip(a, r.first); }},
       {"rangeEnd", [](const JsonAt& a, RangeSpec& r) { return read_ip(a, r.last); }},
       {"gateway", [](const JsonAt& a, RangeSpec& r) { return read_ip(a, r.gateway); }}}};
  return read_object<RangeSpec>(at, kMembers, out);
}

MaybeFault read_set(const JsonAt& at, SetSpec& out) {
  return read_list<RangeSpec>(at, kRangesPerSetMax, read_range, out);
}

MaybeFault read_sets(const JsonAt& at, std::vector<SetSpec>& out) {
  return read_list<SetSpec>(at, kRangeSetsMax, read_set, out);
}

// ---- sections

constexpr std::array<JsonMember<IpamDraft>, 10> kIpamMembers = {
    {{"name", [](const JsonAt& a, IpamDraft& d) { return read_text(a, kStdinBytesMax, d.name); }},
     {"type", [](const JsonAt& a, IpamDraft& d) { return read_text(a, kStdinBytesMax, d.type); }},
     {"dataDir", [](const JsonAt& a, IpamDraft& d) { return read_path(a, d.data_dir); }},
     {"resolvConf", [](const JsonAt& a, IpamDraft& d) { return read_path(a, d.resolv_conf); }},
     {"subnet", [](const JsonAt& a, IpamDraft& d) { return read_cidr(a, d.legacy.subnet); }},
     {"rangeStart", [](const JsonAt& a, IpamDraft& d) { return read_ip(a, d.legacy.first); }},
     {"rangeEnd", [](const JsonAt& a, IpamDraft& d) { return read_ip(a, d.legacy.last); }},
     {"gateway", [](const JsonAt& a, IpamDraft& d) { return read_ip(a, d.legacy.gateway); }},
     {"ranges", [](const JsonAt& a, IpamDraft& d) { return read_sets(a, d.ranges); }},
     {"routes", [](const JsonAt& a, IpamDraft& d) {
        return read_list<std::optional<Route>>(a, kRoutesMax, read_route, d.routes);
      }}}};

/// Null unsets it.
MaybeFault read_ipam_members(const JsonAt& at, std::span<const JsonMember<IpamDraft>> members, Draft& out) {
  if (at.value.is_null()) {
    out.ipam.reset();
    return {};
  }
  if (!out.ipam) out.ipam.emplace();
  return read_object<IpamDraft>(at, members, *out.ipam);
}

MaybeFault read_ipam(const JsonAt& at, Draft& out) { return read_ipam_members(at, kIpamMembers, out); }

MaybeFault read_args_cni(const JsonAt& at, Draft& out) {
  static constexpr std::array<JsonMember<Draft>, 1> kMembers = {
      {{"ips", [](const JsonAt& a, Draft& d) { return read_requested_addresses(a, d.from_args_member); }}}};
  if (at.value.is_null()) out.from_args_member.clear();
  return read_object<Draft>(at, kMembers, out);
}

MaybeFault read_args_member(const JsonAt& at, Draft& out) {
  static constexpr std::array<JsonMember<Draft>, 1> kMembers = {{{"cni", read_args_cni}}};
  if (at.value.is_null()) out.from_args_member.clear();
  return read_object<Draft>(at, kMembers, out);
}

MaybeFault read_runtime_config(const JsonAt& at, Draft& out) {
  static constexpr std::array<JsonMember<Draft>, 2> kMembers = {
      {{"ipRanges", [](const JsonAt& a, Draft& d) { return read_sets(a, d.runtime_ranges); }},
       {"ips", [](const JsonAt& a, Draft& d) { return read_requested_addresses(a, d.from_runtime); }}}};
  return read_object<Draft>(at, kMembers, out);
}

/// In one pass, because the first fault of the text is the one that is reported.
constexpr std::array<JsonMember<Draft>, 4> kTopLevelMembers = {
    {{"cniVersion", [](const JsonAt& a, Draft& d) { return read_text(a, kStdinBytesMax, d.version); }},
     {"ipam", read_ipam},
     {"runtimeConfig", read_runtime_config},
     {"args", read_args_member}}};

// ---- what Croft adds

MaybeFault read_status_when_full(const JsonAt& root, bool& out) {
  static constexpr std::array<JsonMember<bool>, 1> kIpam = {{{"statusWhenFull", read_boolean}}};
  static constexpr std::array<JsonMember<bool>, 1> kRoot = {
      {{"ipam", [](const JsonAt& a, bool& value) { return read_object<bool>(a, kIpam, value); }}}};
  return read_object<bool>(root, kRoot, out);
}

// ---- a release

std::size_t count_of(const JsonRef& value) {
  if (value.kind() != JsonKind::array) return 0;
  std::size_t count = 0;
  for (auto child = value.first_child(); child; child = child->next_sibling()) ++count;
  return count;
}

MaybeFault count_legacy(const JsonAt& at, IpamDraft& out) {
  AddressWithLength subnet;
  out.has_legacy = !read_cidr(at, subnet);
  return {};
}

MaybeFault count_ranges(const JsonAt& at, IpamDraft& out) {
  out.ranges_count = count_of(at.value);
  return {};
}

MaybeFault count_runtime_ranges(const JsonAt& at, Draft& out) {
  out.runtime_ranges_count = count_of(at.value);
  return {};
}

MaybeFault read_ipam_of_release(const JsonAt& at, Draft& out) {
  static constexpr std::array<JsonMember<IpamDraft>, 3> kMembers = {
      {{"dataDir", [](const JsonAt& a, IpamDraft& d) { return read_path(a, d.data_dir); }},
       {"subnet", count_legacy},
       {"ranges", count_ranges}}};
  return read_ipam_members(at, kMembers, out);
}

MaybeFault read_runtime_config_of_release(const JsonAt& at, Draft& out) {
  static constexpr std::array<JsonMember<Draft>, 1> kMembers = {{{"ipRanges", count_runtime_ranges}}};
  return read_object<Draft>(at, kMembers, out, {.on_fault = OnFault::skip});
}

constexpr std::array<JsonMember<Draft>, 2> kReleaseMembers = {
    {{"ipam", read_ipam_of_release}, {"runtimeConfig", read_runtime_config_of_release}}};

// ---- from the draft to the configuration

/// The reference's steps after decoding (docs/notes/host-local.md#load-order), in its order. nullopt: go on.
std::optional<Error> take_requested(const std::string& args_text, const Draft& draft, HostLocalConfig& config) {
  const auto args = parse_args(args_text, kHostLocalArgKeys);
  if (!args) return refused(args.error().message);
  std::vector<Address>& all = config.requested_addresses;
  for (const auto* channel : {&args->ips, &draft.from_args_member, &draft.from_runtime}) {
    for (const Address& address : *channel) {
      if (!address.is_valid()) return refused("cannot understand ip: IP <nil> not v4 nor v6");
      if (std::find(all.begin(), all.end(), address) == all.end()) all.push_back(address);
    }
  }
  if (all.size() <= kHostLocalRequestedMax) return {};
  return refused(fmt::format("{} addresses are requested, at most {} are allowed", all.size(), kHostLocalRequestedMax));
}

std::vector<SetSpec> set_specs(Draft& draft) {
  std::vector<SetSpec> all = std::move(draft.runtime_ranges);
  if (draft.ipam->legacy.subnet.address.is_valid()) all.push_back({draft.ipam->legacy});
  std::move(draft.ipam->ranges.begin(), draft.ipam->ranges.end(), std::back_inserter(all));
  return all;
}

std::optional<Error> check_count(const std::vector<SetSpec>& specs) {
  if (specs.empty()) return refused("no IP ranges specified");
  if (specs.size() > kRangeSetsMax) {
    return refused(fmt::format("{} range sets are given, at most {} are allowed", specs.size(), kRangeSetsMax));
  }
  std::size_t ranges = 0;
  for (const SetSpec& spec : specs) ranges += spec.size();
  if (ranges <= kRangesMax) return {};
  return refused(fmt::format("{} ranges are given, at most {} are allowed", ranges, kRangesMax));
}

bool allows_sets_of_one_family(const std::string& version) {
  if (version.empty()) return false;
  const auto number = parse_version(version);
  return number && *number >= VersionNumber{0, 3, 0};
}

std::optional<Error> check_families(const std::vector<RangeSet>& sets, const std::string& version) {
  const auto v4 =
      std::count_if(sets.begin(), sets.end(), [](const RangeSet& s) { return s.family() == net::Family::v4; });
  const auto v6 = std::ssize(sets) - v4;
  if ((v4 <= 1 && v6 <= 1) || allows_sets_of_one_family(version)) return {};
  return refused(fmt::format("CNI version {} does not support more than 1 address per family", version));
}

std::optional<Error> check_overlap(const std::vector<RangeSet>& sets) {
  for (std::size_t i = 0; i < sets.size(); ++i) {
    for (std::size_t j = i + 1; j < sets.size(); ++j) {
      if (sets[i].overlaps(sets[j])) return refused(fmt::format("range set {} overlaps with {}", i, j));
    }
  }
  return {};
}

std::optional<Error> take_sets(Draft& draft, HostLocalConfig& config) {
  const std::vector<SetSpec> specs = set_specs(draft);
  if (auto error = check_count(specs)) return error;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    auto set = RangeSet::make(specs[i]);
    if (!set) return refused(fmt::format("invalid range set {}: {}", i, set.error().message));
    config.sets.push_back(*std::move(set));
  }
  config.set_count = config.sets.size();
  if (auto error = check_families(config.sets, draft.version)) return error;
  return check_overlap(config.sets);
}

void take_paths(const IpamDraft& ipam, HostLocalConfig& config) {
  if (!ipam.data_dir.empty()) config.data_dir = go_clean_path(ipam.data_dir);
  config.resolv_conf = ipam.resolv_conf;
}

Error missing_ipam() { return refused("IPAM config missing 'ipam' key"); }

std::optional<Error> decode_assignment(const JsonAt& root, const std::string& args, HostLocalConfig& config) {
  Draft draft;
  if (const auto fault = read_object<Draft>(root, kTopLevelMembers, draft)) return error_of(*fault);
  if (!draft.ipam) return missing_ipam();
  if (auto error = take_requested(args, draft, config)) return error;
  if (auto error = take_sets(draft, config)) return error;
  take_paths(*draft.ipam, config);
  for (const std::optional<Route>& route : draft.ipam->routes) {
    if (route) config.routes.push_back(*route);
  }
  return {};
}

std::optional<Error> decode_release(const JsonAt& root, Command command, HostLocalConfig& config) {
  Draft draft;
  if (const auto fault = read_object<Draft>(root, kReleaseMembers, draft)) return error_of(*fault);
  config.has_ipam = draft.ipam.has_value();
  if (!draft.ipam) return command == Command::gc ? std::nullopt : std::optional(missing_ipam());
  take_paths(*draft.ipam, config);
  config.set_count = draft.runtime_ranges_count + draft.ipam->ranges_count + (draft.ipam->has_legacy ? 1 : 0);
  return {};
}

MaybeFault read_extras(const JsonAt& root, Command command, HostLocalConfig& config) {
  if (command == Command::check) return read_previous_addresses(root, config.previous_addresses);
  if (command == Command::gc) return read_valid_attachments(root, config.valid_attachments);
  if (command == Command::status) return read_status_when_full(root, config.status_when_full);
  return {};
}

}  // namespace

Checked<HostLocalConfig> decode_host_local_config(const Network& network, const std::string& args, Command command) {
  HostLocalConfig config;
  config.name = network.name;
  const JsonAt root{network.document.root(), nullptr, {}, {}};
  const bool release = command == Command::del || command == Command::gc;
  if (auto error = release ? decode_release(root, command, config) : decode_assignment(root, args, config)) {
    return *std::move(error);
  }
  if (const auto fault = read_extras(root, command, config)) return error_of(*fault);
  return config;
}

namespace {

/// No configuration is deeper; printing one goes as deep as it is.
constexpr std::size_t kConfigDepthMax = 200;

std::string text_of(std::optional<JsonRef> object, std::string_view name) {
  const auto member = member_of(object, name);
  return member && member->kind() == JsonKind::string ? std::string(member->text()) : std::string();
}

std::optional<JsonRef> find_plugin(JsonRef config) {
  const auto calls_host_local = [](JsonRef plugin) {
    return text_of(member_of(plugin, "ipam"), "type") == "host-local";
  };
  if (calls_host_local(config)) return config;
  const auto plugins = member_of(config, "plugins");
  for (auto plugin = plugins ? plugins->first_child() : std::nullopt; plugin; plugin = plugin->next_sibling()) {
    if (calls_host_local(*plugin)) return plugin;
  }
  return std::nullopt;
}

/// Those of the runtime's arguments that the plugin declares to take, as one object.
std::string runtime_config_of(JsonRef plugin, std::string_view capability_args) {
  const auto args = parse_json(capability_args, {.depth_max = kConfigDepthMax});
  const auto declared = args ? member_of(plugin, "capabilities") : std::nullopt;
  JsonWriter out(JsonWriter::Layout::compact);
  out.begin_object();
  for (auto one = declared ? declared->first_child() : std::nullopt; one; one = one->next_sibling()) {
    const bool is_wanted = one->kind() == JsonKind::boolean && one->boolean();
    if (const auto value = is_wanted ? member_of(args->root(), one->key()) : std::nullopt) {
      copy_json(out, one->key(), *value);
    }
  }
  out.end_object();
  return std::move(out).take();
}

}  // namespace

Result<std::optional<HostLocalConfig>> find_host_local_config(std::string_view bytes, const std::string& network,
                                                              std::string_view capability_args) {
  TRY(const JsonDocument config, parse_json(bytes, {.depth_max = kConfigDepthMax}));
  const auto plugin = find_plugin(config.root());
  if (!plugin || (!network.empty() && text_of(config.root(), "name") != network)) {
    return std::optional<HostLocalConfig>();
  }
  TRY(JsonDocument called, parse_json(as_called(config.root(), *plugin, runtime_config_of(*plugin, capability_args))));
  auto decoded = decode_host_local_config({std::move(called), "unnamed", {}}, "", Command::add);
  if (decoded) return std::optional(*std::move(decoded));
  return fail(ErrorCode::invalid_argument, decoded.error().msg);
}

}  // namespace croft::wire::cni

namespace croft::wire::host_local {
namespace {

constexpr std::string_view kLineBreak = "\r\n";
constexpr std::size_t kRuneBytesMax = 4;

bool is_space_at_front(std::string_view text) {
  const Rune rune = first_rune(text);
  return rune.valid && is_space(rune.code);
}

/// The size of the white space character that the text ends with; 0 when it ends with something else.
std::size_t space_at_end(std::string_view text) {
  for (std::size_t size = 1; size <= kRuneBytesMax && size <= text.size(); ++size) {
    const std::string_view end = text.substr(text.size() - size);
    if (first_rune(end).size == size && is_space_at_front(end)) return size;
  }
  return 0;
}

}  // namespace

std::string_view holder_key(std::string_view content) {
  while (is_space_at_front(content)) content.remove_prefix(first_rune(content).size);
  while (const std::size_t size = space_at_end(content)) content.remove_suffix(size);
  return content;
}

std::string print_holder(const Holder& holder) {
  std::string text(holder_key(holder.container_id));
  if (!holder.interface_name.empty()) text.append(kLineBreak).append(holder.interface_name);
  return text;
}

std::optional<Holder> parse_holder(std::string_view content) {
  if (content.empty()) return std::nullopt;
  const std::string_view key = holder_key(content);
  const std::size_t end = key.find(kLineBreak);
  if (end == key.npos) return Holder{std::string(key), {}};
  return Holder{std::string(key.substr(0, end)), std::string(key.substr(end + kLineBreak.size()))};
}

std::string file_name(const net::Address& address) { return address.unmapped().to_string(); }

std::optional<net::Address> address_of_file(std::string_view name) {
  const auto address = net::parse_address(name);
  return address ? std::optional(address->unmapped()) : std::nullopt;
}

std::string cursor_file_name(std::size_t set) { return std::string(kCursorPrefix) + std::to_string(set); }

std::optional<std::size_t> set_of_cursor_file(std::string_view name) {
  if (!name.starts_with(kCursorPrefix)) return std::nullopt;
  const std::string_view digits = name.substr(kCursorPrefix.size());
  std::size_t set = 0;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), set);
  // A leading zero or sign is no name that cursor_file_name gives.
  if (fault != std::errc() || name != cursor_file_name(set)) return std::nullopt;
  return set;
}

std::optional<net::Address> parse_cursor(std::string_view content) { return address_of_file(content); }

}  // namespace croft::wire::host_local
