#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "register/format/fields.h"

namespace croft::wire {
namespace {

using core::WarmAddress;
using core::WarmDoubt;
using core::WarmIntent;
using core::WarmNode;
using core::WarmState;

constexpr EnumTexts<WarmState, 8> kWarmStates = {{
    {WarmState::probing, "probing"},
    {WarmState::free, "free"},
    {WarmState::held, "held"},
    {WarmState::cooling, "cooling"},
    {WarmState::releasing, "releasing"},
    {WarmState::lending, "lending"},
    {WarmState::lent, "lent"},
    {WarmState::quarantined, "quarantined"},
}};
constexpr EnumTexts<WarmDoubt, 3> kWarmDoubts = {{
    {WarmDoubt::not_in_cloud, "not_in_cloud"},
    {WarmDoubt::used_by_host, "used_by_host"},
    {WarmDoubt::used_by_pod, "used_by_pod"},
}};
constexpr EnumTexts<WarmIntent::What, 2> kWarmWhats = {{
    {WarmIntent::What::allocate, "allocate"},
    {WarmIntent::What::borrow, "borrow"},
}};

struct MacText {
  static void write(CanonicalWriter& out, const net::Mac& mac) { out.text(mac.to_string()); }
  static void read(CanonicalReader& in, net::Mac& value) {
    const std::string text = in.text();
    if (const auto mac = net::Mac::parse(text); mac && mac->to_string() == text) {
      value = *mac;
    } else {
      in.reject("no MAC address in its canonical form \"" + text + "\"");
    }
  }
};

/// As a block has it, in braces.
struct CoolingObject {
  static void write(CanonicalWriter& out, const core::Cooling& cooling) {
    out.raw("{");
    write_members(out, cooling);
    out.raw("}");
  }
  static void read(CanonicalReader& in, core::Cooling& cooling) {
    in.expect("{");
    read_members(in, cooling);
    in.expect("}");
  }
};

constexpr std::uint32_t kPrefixLengthMax = 128;

bool is_of_its_family(const WarmAddress& address) {
  return address.address.is_valid() &&
         std::cmp_less_equal(address.prefix_length, net::bit_length(address.address.family()));
}

/// What a state says is there, and only that.
bool fits_its_state(const WarmAddress& address) {
  const bool has_holder = !address.owner.container_id.empty() || !address.pod.name.empty();
  return (address.state == WarmState::cooling) == address.cooling.has_value() &&
         (address.state == WarmState::held) == has_holder;
}

/// Each once, in order: one set has one spelling.
bool is_ascending(const WarmAddress& address) {
  return std::ranges::adjacent_find(address.doubts, std::greater_equal{}) == address.doubts.end();
}

/// No limit has one spelling.
bool has_room(const WarmNode& node) { return node.node_max != 0U; }

// clang-format off: a member a line
constexpr auto kWarmAddress = fields(
    field("address", &WarmAddress::address),
    checked(field("prefixLength", &WarmAddress::prefix_length, UpTo{kPrefixLengthMax}), is_of_its_family,
            "prefixLength is out of range for the address"),
    maybe("gateway", &WarmAddress::gateway), field("mac", &WarmAddress::mac, MacText{}),
    field("vpc", &WarmAddress::vpc), field("subnet", &WarmAddress::subnet), field("object", &WarmAddress::object),
    field("state", &WarmAddress::state, OneOf<kWarmStates>{}), field("since", &WarmAddress::since),
    field("created", &WarmAddress::created), field("recycled", &WarmAddress::recycled),
    field("recycledAt", &WarmAddress::recycled_at), maybe("verified", &WarmAddress::verified),
    field("network", Within{&WarmAddress::owner, &core::Owner::network}),
    field("containerID", Within{&WarmAddress::owner, &core::Owner::container_id}),
    field("interface", Within{&WarmAddress::owner, &core::Owner::interface_name}),
    field("namespace", Within{&WarmAddress::pod, &core::PodIdentity::namespace_name}),
    field("pod", Within{&WarmAddress::pod, &core::PodIdentity::name}),
    field("podUID", Within{&WarmAddress::pod, &core::PodIdentity::uid}), field("netns", &WarmAddress::netns),
    unless_empty("extra", &WarmAddress::extra), maybe("cooling", &WarmAddress::cooling, CoolingObject{}),
    maybe("otherMAC", &WarmAddress::other_mac, MacText{}),
    checked(unless_empty("doubts", &WarmAddress::doubts, ListOf<OneOf<kWarmDoubts>>{.max = kWarmDoubts.size()}),
            is_ascending, "its doubts are not in order"),
    field("peer", &WarmAddress::peer), field("request", &WarmAddress::request),
    checked(field("why", &WarmAddress::why), fits_its_state, "its members do not fit its state"));

constexpr auto kWarmIntent =
    fields(field("id", &WarmIntent::id), field("what", &WarmIntent::what, OneOf<kWarmWhats>{}),
           field("count", &WarmIntent::count), maybe("address", &WarmIntent::address),
           field("mac", &WarmIntent::mac, MacText{}), field("subnet", &WarmIntent::subnet),
           field("peer", &WarmIntent::peer), field("begun", &WarmIntent::begun),
           field("bootID", Within{&WarmIntent::begun_at, &core::ClockMark::boot}, BootIdText{}),
           field("sinceBootNanoseconds", Within{&WarmIntent::begun_at, &core::ClockMark::since_boot}),
           field("process", &WarmIntent::process), field("processStarted", &WarmIntent::process_started));

constexpr auto kWarmNode =
    fields(field("node", &WarmNode::node), field("mac", &WarmNode::mac, MacText{}), field("vpc", &WarmNode::vpc),
           field("subnet", &WarmNode::subnet), field("object", &WarmNode::object), field("zone", &WarmNode::zone),
           field("region", &WarmNode::region), field("project", &WarmNode::project), field("low", &WarmNode::low),
           field("high", &WarmNode::high), field("cooldownSeconds", &WarmNode::cooldown_seconds),
           field("generation", &WarmNode::generation),
           checked(maybe("nodeMax", &WarmNode::node_max), has_room, "nodeMax is 0"));
// clang-format on

}  // namespace

void write_members(CanonicalWriter& out, const WarmAddress& address) { kWarmAddress.write(out, address); }
void read_members(CanonicalReader& in, WarmAddress& address) { kWarmAddress.read(in, address); }
void write_members(CanonicalWriter& out, const WarmIntent& intent) { kWarmIntent.write(out, intent); }
void read_members(CanonicalReader& in, WarmIntent& intent) { kWarmIntent.read(in, intent); }
void write_members(CanonicalWriter& out, const WarmNode& node) { kWarmNode.write(out, node); }
void read_members(CanonicalReader& in, WarmNode& node) { kWarmNode.read(in, node); }

}  // namespace croft::wire
