#include "agent/format/messages.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/text/go_text.h"
#include "base/text/proto.h"
#include "base/texts.h"

namespace croft::wire::agent {
namespace {

using proto::Message;
using std::chrono::nanoseconds;
using std::chrono::seconds;

struct Rules {
  static constexpr std::size_t kTextBytesMax = agent::kTextBytesMax;

  static Error wrong(std::string_view member, std::string_view why) {
    return make_error(ErrorCode::invalid_argument, "agent message: {} {}", member, why);
  }
  static std::string fault_of(std::string_view text, std::size_t bytes_max) {
    if (text.size() > bytes_max) return fmt::format("is longer than {} bytes", bytes_max);
    if (text.find('\0') != text.npos) return "has a NUL byte";
    while (!text.empty()) {
      const Rune rune = first_rune(text);
      if (!rune.valid) return "is not UTF-8";
      text.remove_prefix(rune.size);
    }
    return {};
  }
};

/// Texts in an answer are no keys, and as long as it may be.
constexpr std::size_t kTold = kAnswerBytesMax;
/// Entries of a list in an answer.
constexpr std::size_t kToldMax = std::size_t{1} << 16;

// ---------------------------------------------------------------- callers, owners, pools

template <class Io>
void members(Io& io, Message<Caller> auto& v) {
  io.field(1, "caller.store", v.store);
  io.field(2, "caller.node", v.node);
  std::string boot(v.boot.bytes.begin(), v.boot.bytes.end());
  if constexpr (Io::kReads) boot.clear();
  io.bytes(3, boot);
  std::int64_t expires = v.expires.at_since_boot.count();
  io.number(4, expires);
  StoreFile file = v.file.value_or(StoreFile{});
  io.number(5, file.device);
  io.number(6, file.inode);
  io.number(7, v.network_namespace);
  std::int64_t ends = v.ends ? v.ends->at_since_boot.count() : 0;
  io.number(8, ends);
  if constexpr (Io::kReads) {
    if (boot.size() != v.boot.bytes.size()) return io.refuse("caller.boot_id", "has not 16 bytes");
    std::copy(boot.begin(), boot.end(), v.boot.bytes.begin());
    v.expires.at_since_boot = nanoseconds(expires);
    if (file.inode != 0) v.file = file;
    if (ends != 0) v.ends = Deadline{nanoseconds(ends)};
  }
}

template <class Io>
void members(Io& io, Message<core::Owner> auto& v) {
  io.field(1, "owner.network", v.network);
  io.field(2, "owner.container_id", v.container_id);
  io.field(3, "owner.interface_name", v.interface_name);
  if constexpr (Io::kReads) {
    if (v.network.empty()) io.refuse("owner.network", "is empty");
    if (v.container_id.empty()) io.refuse("owner.container_id", "is empty");
  }
}

template <class Io>
void members(Io& io, Message<core::PodIdentity> auto& v) {
  io.field(1, "pod.name", v.name);
  io.field(2, "pod.namespace_name", v.namespace_name);
  io.field(3, "pod.uid", v.uid);
}

/// The checks of make_pool() are left to it; here only its preconditions.
template <class Io>
void members(Io& io, Message<core::PoolSpec> auto& v) {
  using Kind = core::GatewayChoice::Kind;
  io.field(1, "pools.name", v.name);
  io.field(2, "pools.cidr", v.cidr);
  io.number(3, v.block_length);
  bool is_first = v.gateway && v.gateway->kind == Kind::first_address;
  bool is_none = v.gateway && v.gateway->kind == Kind::none;
  std::optional<net::Address> given;
  if (v.gateway && v.gateway->kind == Kind::given) given = v.gateway->address;
  io.number(4, is_first);
  io.number(5, is_none);
  io.maybe(6, "pools.gateway_address", given);
  std::optional<std::int64_t> cooldown;
  if (v.cooldown) cooldown = v.cooldown->count();
  io.number(7, cooldown);
  io.number(8, v.disabled);
  if constexpr (Io::kReads) {
    if (is_first || is_none) v.gateway = core::GatewayChoice{is_first ? Kind::first_address : Kind::none, {}};
    if (given) v.gateway = core::GatewayChoice{Kind::given, *given};
    if (cooldown) v.cooldown = seconds(*cooldown);
  }
}

// ---------------------------------------------------------------- assigning

template <class Io>
void asked_pools(Io& io, std::uint32_t number, std::string_view member, auto& pools) {
  std::vector<std::string> texts;
  for (const core::AskedPool& pool : pools) texts.push_back(core::text_of(pool));
  io.list(number, member, texts, kAskedPoolsMax);
  if constexpr (Io::kReads) {
    for (const std::string& text : texts) pools.push_back(core::asked_pool(text));
  }
}

struct Label {
  std::string name;
  std::string value;
};
template <class Io>
void members(Io& io, Message<Label> auto& v) {
  io.field(1, "namespace_labels", v.name);
  io.field(2, "namespace_labels", v.value);
}

template <class Io>
void members(Io& io, Message<core::WishesWanted> auto& v) {
  if constexpr (Io::kReads) v = {{false, false}, false, false};
  io.number(1, v.pools.v4);
  io.number(2, v.pools.v6);
  io.number(3, v.addresses);
  io.number(4, v.families);
}

template <class Io>
void members(Io& io, Message<AssignCall> auto& call) {
  auto& v = call.request;
  io.field(1, "caller", call.caller);
  io.list(2, "pools", call.pools, kPoolSpecsMax);
  io.field(3, "owner", v.owner);
  io.field(4, "pod", v.pod);
  if constexpr (Io::kReads) v.count = {0, 0};
  io.number(5, v.count.v4);
  io.number(6, v.count.v6);
  asked_pools(io, 7, "ipv4_pools", v.pools.v4);
  asked_pools(io, 8, "ipv6_pools", v.pools.v6);
  io.list(9, "addresses", v.addresses, kAddressesMax);
  io.number(10, v.reserved_addresses);
  auto use = static_cast<std::uint32_t>(v.use);
  io.number(11, use);
  std::vector<Label> labels;
  for (const auto& [name, value] : v.namespace_labels) labels.push_back({name, value});
  io.list(12, "namespace_labels", labels, kLabelsMax);
  io.number(13, v.block_limit);
  io.number(14, v.default_block_limit);
  io.maybe(16, "annotations", call.annotations);
  if constexpr (Io::kReads) {
    v.node = {core::AffinityOwner::Type::host, call.caller.node};
    if (std::max(v.count.v4, v.count.v6) > kCountMax) {
      io.refuse("ipv4 or ipv6", fmt::format("is more than {}", kCountMax));
    }
    v.use = static_cast<core::PoolUse>(use);
    const bool is_known = use <= static_cast<std::uint32_t>(core::PoolUse::load_balancer);
    if (!is_known) io.refuse("use", "is none that this version knows");
    for (Label& label : labels) v.namespace_labels[std::move(label.name)] = std::move(label.value);
  }
}

template <class Io>
void members(Io& io, Message<ReleaseCall> auto& v) {
  io.field(1, "caller", v.caller);
  io.field(2, "owner", v.owner);
}

// ---------------------------------------------------------------- outcomes

template <class Io>
void code_member(Io& io, auto& code) {
  std::string name(name_of(code));
  io.field(1, "code", name);
  if constexpr (Io::kReads) {
    // A newer agent may know codes that we don't: the plugin then looks for itself.
    code = ErrorCode::internal;
    for (int i = 0; i <= static_cast<int>(ErrorCode::internal); ++i) {
      if (name_of(static_cast<ErrorCode>(i)) == name) code = static_cast<ErrorCode>(i);
    }
  }
}

template <class Io>
void members(Io& io, Message<Error> auto& v) {
  code_member(io, v.code);
  io.field(2, "message", v.message, kTold);
  io.field(3, "details", v.details, kTold);
}

template <class Io>
void members(Io& io, Message<core::PoolVerdict> auto& v) {
  io.field(1, "refusal.considered.pool", v.pool, kTold);
  io.field(2, "refusal.considered.cidr", v.cidr);
  io.field(3, "refusal.considered.reason", v.reason, kTold);
  io.number(4, v.usable);
}

/// By their numbers.
constexpr std::array kCauses = {
    core::RefusalCause::other,
    core::RefusalCause::pool_not_usable,
    core::RefusalCause::no_pool_for_node,
    core::RefusalCause::no_pool_qualified,
    core::RefusalCause::full,
    core::RefusalCause::full_and_strict,
    core::RefusalCause::block_limit,
    core::RefusalCause::no_block_to_claim,
    core::RefusalCause::no_pool_enabled,
    core::RefusalCause::address_in_no_pool,
    core::RefusalCause::address_taken,
    core::RefusalCause::address_out_of_bounds,
};

template <class Io>
void members(Io& io, Message<core::Refusal> auto& v) {
  code_member(io, v.code);
  io.field(2, "refusal.summary", v.summary, kTold);
  io.list(3, "refusal.considered", v.considered, kToldMax);
  auto cause = static_cast<std::size_t>(std::ranges::find(kCauses, v.cause) - kCauses.begin());
  io.number(4, cause);
  if constexpr (Io::kReads) {
    constexpr std::array kCodes = {ErrorCode::exhausted, ErrorCode::no_pool, ErrorCode::refused_by_configuration,
                                   ErrorCode::unavailable};
    if (std::ranges::find(kCodes, v.code) == kCodes.end()) io.refuse("refusal.code", "is none of a refusal");
    if (cause < kCauses.size()) v.cause = kCauses[cause];
  }
}

template <class Io>
void members(Io& io, Message<core::AssignedAddress> auto& v) {
  io.field(1, "assigned.address", v.address);
  io.field(2, "assigned.pool", v.pool, kTold);
  io.field(3, "assigned.pool_cidr", v.pool_cidr);
  io.maybe(4, "assigned.gateway", v.gateway);
  io.field(5, "assigned.block", v.block);
  io.number(6, v.sequence_number.value);
  io.number(7, v.held_before);
  if constexpr (Io::kReads) {
    if (!v.block.contains(v.address)) io.refuse("assigned.address", "is not in its block");
  }
}

template <class Io>
void members(Io& io, Message<core::Assigned> auto& v) {
  io.list(1, "assigned.addresses", v.addresses, std::size_t{2} * kCountMax + kAddressesMax);
}

/// The addresses that a release freed.
template <class Io>
void members(Io& io, Message<std::vector<net::Address>> auto& v) {
  io.list(1, "released.addresses", v, kToldMax);
}

/// One of the parts of an answer.
template <class Part>
void part(auto& io, std::uint32_t number, auto& v, bool& is_there) {
  std::optional<Part> one;
  if (const Part* given = std::get_if<Part>(&v); given != nullptr && !io.kReads) one = *given;
  io.maybe(number, "answer", one);
  if constexpr (std::remove_cvref_t<decltype(io)>::kReads) {
    if (!one) return;
    v = *std::move(one);
    is_there = true;
  }
}

template <class Io>
void members(Io& io, Message<AssignOutcome> auto& v) {
  bool is_there = !Io::kReads;
  part<core::Assigned>(io, 1, v, is_there);
  part<core::Refusal>(io, 2, v, is_there);
  part<Error>(io, 3, v, is_there);
  if (!is_there) io.refuse("answer", "is missing");
}

template <class Io>
void members(Io& io, Message<ReleaseOutcome> auto& v) {
  bool is_there = !Io::kReads;
  part<std::vector<net::Address>>(io, 1, v, is_there);
  part<Error>(io, 2, v, is_there);
  if (!is_there) io.refuse("answer", "is missing");
}

struct Taken {};
void members(auto& /*io*/, Message<Taken> auto& /*v*/) {}

/// An answer that says it is being worked on.
struct Sign {
  std::optional<Taken> taken;
};
template <class Io>
void members(Io& io, Message<Sign> auto& v) {
  io.maybe(4, "taken", v.taken);
}

template <class Io>
void members(Io& io, Message<AgentStatus> auto& v) {
  io.field(1, "version", v.version, kTold);
  io.field(2, "store", v.store, kTold);
  io.field(3, "node", v.node, kTold);
  io.number(4, v.cache_in_use);
  io.number(5, v.own_blocks);
  io.number(6, v.known_affinities);
  io.number(7, v.served_from_cache);
  io.number(8, v.served_from_store);
  io.number(9, v.failed);
  io.number(10, v.commits);
  io.number(11, v.blocks_ahead);
}

template <class V>
std::string written(const V& value) {
  return proto::Io<Rules, false>::written(value);
}

template <class V>
[[nodiscard]] Result<V> read(std::string_view bytes, std::size_t most = kMessageBytesMax) {
  if (bytes.size() > most) return fail(Rules::wrong("the whole", "is too long"));
  return proto::Io<Rules, true>::template read<V>(bytes);
}

}  // namespace

std::string encode(const AssignCall& call) { return written(call); }
std::string encode(const ReleaseCall& call) { return written(call); }
std::string encode(const AssignOutcome& outcome) { return written(outcome); }
std::string encode(const ReleaseOutcome& outcome) { return written(outcome); }
std::string encode(const AgentStatus& status) { return written(status); }
std::string encode_sign_of_life() { return written(Sign{Taken{}}); }

bool is_sign_of_life(std::string_view bytes) {
  const auto sign = read<Sign>(bytes);
  return sign && sign->taken;
}

Result<AssignCall> decode_assign_call(std::string_view bytes) { return read<AssignCall>(bytes); }
Result<ReleaseCall> decode_release_call(std::string_view bytes) { return read<ReleaseCall>(bytes); }
Result<AssignOutcome> decode_assign_outcome(std::string_view bytes) {
  return read<AssignOutcome>(bytes, kAnswerBytesMax);
}
Result<ReleaseOutcome> decode_release_outcome(std::string_view bytes) {
  return read<ReleaseOutcome>(bytes, kAnswerBytesMax);
}
Result<AgentStatus> decode_status(std::string_view bytes) { return read<AgentStatus>(bytes); }

}  // namespace croft::wire::agent
