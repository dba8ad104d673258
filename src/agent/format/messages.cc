#include "agent/format/messages.h"

#include <array>
#include <utility>

#include <croft/agent.pb.h>
#include <fmt/format.h>

namespace croft::wire::agent {
namespace {

namespace pb = ::croft::agent::v1;

Error wrong(std::string_view member, std::string_view why) {
  return {ErrorCode::invalid_argument, fmt::format("agent message: {} {}", member, why), {}};
}

[[nodiscard]] Result<void> check_text(std::string_view member, const std::string& text) {
  if (text.size() > kTextBytesMax) return fail(wrong(member, fmt::format("is longer than {} bytes", kTextBytesMax)));
  if (text.find('\0') != text.npos) return fail(wrong(member, "has a NUL byte"));
  return {};
}

template <class Items>
[[nodiscard]] Result<void> check_count(std::string_view member, const Items& items, std::size_t most) {
  if (static_cast<std::size_t>(items.size()) <= most) return {};
  return fail(wrong(member, fmt::format("has {} entries, more than {}", items.size(), most)));
}

template <class Message>
[[nodiscard]] Result<Message> parse(std::string_view bytes) {
  if (bytes.size() > kMessageBytesMax) return fail(wrong("the whole", "is too long"));
  Message message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return fail(wrong("the whole", "is not what the protocol says"));
  }
  return message;
}

[[nodiscard]] Result<net::Address> address_of(std::string_view member, const std::string& text) {
  const auto address = net::Address::parse(text);
  if (!address) return fail(wrong(member, address.error().message));
  return *address;
}

[[nodiscard]] Result<net::Prefix> prefix_of(std::string_view member, const std::string& text) {
  const auto prefix = net::Prefix::parse(text);
  if (!prefix) return fail(wrong(member, prefix.error().message));
  return *prefix;
}

// ---------------------------------------------------------------- errors and refusals

std::optional<ErrorCode> code_named(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(ErrorCode::internal); ++i) {
    if (name_of(static_cast<ErrorCode>(i)) == name) return static_cast<ErrorCode>(i);
  }
  return {};
}

void fill(pb::Error& out, const Error& error) {
  out.set_code(std::string(name_of(error.code)));
  out.set_message(error.message);
  out.set_details(error.details);
}

[[nodiscard]] Result<Error> error_of(const pb::Error& in) {
  // A newer agent may know codes that we don't: the plugin then looks for itself.
  return Error{code_named(in.code()).value_or(ErrorCode::internal), in.message(), in.details()};
}

constexpr std::array kCauses = {
    std::pair{core::RefusalCause::other, pb::OTHER},
    std::pair{core::RefusalCause::pool_not_usable, pb::POOL_NOT_USABLE},
    std::pair{core::RefusalCause::no_pool_for_node, pb::NO_POOL_FOR_NODE},
    std::pair{core::RefusalCause::no_pool_qualified, pb::NO_POOL_QUALIFIED},
    std::pair{core::RefusalCause::full, pb::FULL},
    std::pair{core::RefusalCause::full_and_strict, pb::FULL_AND_STRICT},
    std::pair{core::RefusalCause::block_limit, pb::BLOCK_LIMIT},
    std::pair{core::RefusalCause::no_block_to_claim, pb::NO_BLOCK_TO_CLAIM},
    std::pair{core::RefusalCause::no_pool_enabled, pb::NO_POOL_ENABLED},
    std::pair{core::RefusalCause::address_in_no_pool, pb::ADDRESS_IN_NO_POOL},
    std::pair{core::RefusalCause::address_taken, pb::ADDRESS_TAKEN},
    std::pair{core::RefusalCause::address_out_of_bounds, pb::ADDRESS_OUT_OF_BOUNDS},
};

void fill(pb::Refusal& out, const core::Refusal& refusal) {
  out.set_code(std::string(name_of(refusal.code)));
  out.set_summary(refusal.summary);
  for (const core::PoolVerdict& verdict : refusal.considered) {
    pb::PoolVerdict& one = *out.add_considered();
    one.set_pool(verdict.pool);
    one.set_cidr(verdict.cidr.to_string());
    one.set_reason(verdict.reason);
    one.set_usable(verdict.usable);
  }
  for (const auto& [cause, name] : kCauses) {
    if (cause == refusal.cause) out.set_cause(name);
  }
}

[[nodiscard]] Result<core::Refusal> refusal_of(const pb::Refusal& in) {
  core::Refusal refusal;
  const auto code = code_named(in.code());
  if (code != ErrorCode::exhausted && code != ErrorCode::no_pool && code != ErrorCode::refused_by_configuration &&
      code != ErrorCode::unavailable) {
    return fail(wrong("refusal.code", "is none of a refusal"));
  }
  refusal.code = *code;
  refusal.summary = in.summary();
  for (const pb::PoolVerdict& verdict : in.considered()) {
    TRY(const net::Prefix cidr, prefix_of("refusal.considered.cidr", verdict.cidr()));
    refusal.considered.push_back({verdict.pool(), cidr, verdict.reason(), verdict.usable()});
  }
  for (const auto& [cause, name] : kCauses) {
    if (name == in.cause()) refusal.cause = cause;
  }
  return refusal;
}

// ---------------------------------------------------------------- callers, owners, pools

void fill(pb::Caller& out, const Caller& caller) {
  out.set_store(caller.store);
  out.set_node(caller.node);
  out.set_boot_id(std::string(caller.boot.bytes.begin(), caller.boot.bytes.end()));
  out.set_expires_ns_since_boot(caller.expires.at_since_boot.count());
  if (caller.file) {
    out.set_store_device(caller.file->device);
    out.set_store_inode(caller.file->inode);
  }
  if (caller.network_namespace != 0) out.set_network_namespace(caller.network_namespace);
  if (caller.ends) out.set_ends_ns_since_boot(caller.ends->at_since_boot.count());
}

[[nodiscard]] Result<Caller> caller_of(const pb::Caller& in) {
  Caller caller;
  TRY_VOID(check_text("caller.store", in.store()));
  TRY_VOID(check_text("caller.node", in.node()));
  caller.store = in.store();
  caller.node = in.node();
  if (in.boot_id().size() != caller.boot.bytes.size()) return fail(wrong("caller.boot_id", "has not 16 bytes"));
  std::copy(in.boot_id().begin(), in.boot_id().end(), caller.boot.bytes.begin());
  caller.expires.at_since_boot = std::chrono::nanoseconds(in.expires_ns_since_boot());
  if (in.store_inode() != 0) caller.file = StoreFile{in.store_device(), in.store_inode()};
  caller.network_namespace = in.network_namespace();
  if (in.ends_ns_since_boot() != 0) caller.ends = Deadline{std::chrono::nanoseconds(in.ends_ns_since_boot())};
  return caller;
}

void fill(pb::Owner& out, const core::Owner& owner) {
  out.set_network(owner.network);
  out.set_container_id(owner.container_id);
  out.set_interface_name(owner.interface_name);
}

[[nodiscard]] Result<core::Owner> owner_of(const pb::Owner& in) {
  TRY_VOID(check_text("owner.network", in.network()));
  TRY_VOID(check_text("owner.container_id", in.container_id()));
  TRY_VOID(check_text("owner.interface_name", in.interface_name()));
  if (in.network().empty()) return fail(wrong("owner.network", "is empty"));
  if (in.container_id().empty()) return fail(wrong("owner.container_id", "is empty"));
  return core::Owner{in.network(), in.container_id(), in.interface_name()};
}

void fill(pb::PoolSpec& out, const core::PoolSpec& spec) {
  out.set_name(spec.name);
  out.set_cidr(spec.cidr.to_string());
  if (spec.block_length) out.set_block_length(*spec.block_length);
  if (spec.gateway) {
    switch (spec.gateway->kind) {
      case core::GatewayChoice::Kind::first_address:
        out.set_gateway_first_address(true);
        break;
      case core::GatewayChoice::Kind::none:
        out.set_gateway_none(true);
        break;
      case core::GatewayChoice::Kind::given:
        out.set_gateway_address(spec.gateway->address.to_string());
        break;
    }
  }
  if (spec.cooldown) out.set_cooldown_seconds(spec.cooldown->count());
  if (spec.disabled) out.set_disabled(*spec.disabled);
}

/// The checks of make_pool() are left to it; here only its preconditions.
[[nodiscard]] Result<core::PoolSpec> pool_spec_of(const pb::PoolSpec& in) {
  core::PoolSpec spec;
  TRY_VOID(check_text("pools.name", in.name()));
  spec.name = in.name();
  TRY(spec.cidr, prefix_of("pools.cidr", in.cidr()));
  if (in.has_block_length()) spec.block_length = in.block_length();
  switch (in.gateway_case()) {
    case pb::PoolSpec::kGatewayFirstAddress:
      spec.gateway = core::GatewayChoice{core::GatewayChoice::Kind::first_address, {}};
      break;
    case pb::PoolSpec::kGatewayNone:
      spec.gateway = core::GatewayChoice{core::GatewayChoice::Kind::none, {}};
      break;
    case pb::PoolSpec::kGatewayAddress: {
      TRY(const net::Address address, address_of("pools.gateway_address", in.gateway_address()));
      spec.gateway = core::GatewayChoice{core::GatewayChoice::Kind::given, address};
      break;
    }
    case pb::PoolSpec::GATEWAY_NOT_SET:
      break;
  }
  if (in.has_cooldown_seconds()) spec.cooldown = std::chrono::seconds(in.cooldown_seconds());
  if (in.has_disabled()) spec.disabled = in.disabled();
  return spec;
}

// ---------------------------------------------------------------- assigning

constexpr std::array kUses = {
    std::pair{core::PoolUse::workload, pb::WORKLOAD},
    std::pair{core::PoolUse::tunnel, pb::TUNNEL},
    std::pair{core::PoolUse::load_balancer, pb::LOAD_BALANCER},
};

void fill(pb::AssignRequest& out, const AssignCall& call) {
  fill(*out.mutable_caller(), call.caller);
  for (const core::PoolSpec& spec : call.pools) fill(*out.add_pools(), spec);
  const core::AssignRequest& request = call.request;
  fill(*out.mutable_owner(), request.owner);
  out.mutable_pod()->set_name(request.pod.name);
  out.mutable_pod()->set_namespace_name(request.pod.namespace_name);
  out.mutable_pod()->set_uid(request.pod.uid);
  out.set_ipv4(request.count.v4);
  out.set_ipv6(request.count.v6);
  for (const core::AskedPool& pool : request.pools.v4) out.add_ipv4_pools(core::text_of(pool));
  for (const core::AskedPool& pool : request.pools.v6) out.add_ipv6_pools(core::text_of(pool));
  for (const net::Address& address : request.addresses) out.add_addresses(address.to_string());
  out.set_reserved_addresses(request.reserved_addresses);
  for (const auto& [use, name] : kUses) {
    if (use == request.use) out.set_use(name);
  }
  for (const auto& [name, value] : request.namespace_labels) (*out.mutable_namespace_labels())[name] = value;
  out.set_block_limit(request.block_limit);
  out.set_default_block_limit(request.default_block_limit);
  if (!call.annotations) return;
  out.mutable_annotations()->set_ipv4_pools(call.annotations->pools.v4);
  out.mutable_annotations()->set_ipv6_pools(call.annotations->pools.v6);
  out.mutable_annotations()->set_addresses(call.annotations->addresses);
  out.mutable_annotations()->set_families(call.annotations->families);
}

template <class Texts>
[[nodiscard]] Result<std::vector<core::AskedPool>> pools_of(std::string_view member, const Texts& in) {
  TRY_VOID(check_count(member, in, kAskedPoolsMax));
  std::vector<core::AskedPool> pools;
  for (const std::string& text : in) {
    TRY_VOID(check_text(member, text));
    pools.push_back(core::asked_pool(text));
  }
  return pools;
}

[[nodiscard]] Result<core::PodIdentity> pod_of(const pb::Pod& in) {
  TRY_VOID(check_text("pod.name", in.name()));
  TRY_VOID(check_text("pod.namespace_name", in.namespace_name()));
  TRY_VOID(check_text("pod.uid", in.uid()));
  return core::PodIdentity{in.name(), in.namespace_name(), in.uid()};
}

[[nodiscard]] Result<core::AssignRequest> request_of(const pb::AssignRequest& in) {
  core::AssignRequest request;
  TRY(request.owner, owner_of(in.owner()));
  TRY(request.pod, pod_of(in.pod()));
  request.node = {core::AffinityOwner::Type::host, in.caller().node()};
  if (in.ipv4() > kCountMax || in.ipv6() > kCountMax) {
    return fail(wrong("ipv4 or ipv6", fmt::format("is more than {}", kCountMax)));
  }
  request.count.v4 = in.ipv4();
  request.count.v6 = in.ipv6();
  TRY(request.pools.v4, pools_of("ipv4_pools", in.ipv4_pools()));
  TRY(request.pools.v6, pools_of("ipv6_pools", in.ipv6_pools()));
  TRY_VOID(check_count("addresses", in.addresses(), kAddressesMax));
  for (const std::string& text : in.addresses()) {
    TRY(const net::Address address, address_of("addresses", text));
    request.addresses.push_back(address);
  }
  request.reserved_addresses = in.reserved_addresses();
  bool known_use = false;
  for (const auto& [use, name] : kUses) {
    if (name == in.use()) {
      request.use = use;
      known_use = true;
    }
  }
  if (!known_use) return fail(wrong("use", "is none that this version knows"));
  TRY_VOID(check_count("namespace_labels", in.namespace_labels(), kLabelsMax));
  for (const auto& [name, value] : in.namespace_labels()) {
    TRY_VOID(check_text("namespace_labels", name));
    TRY_VOID(check_text("namespace_labels", value));
    request.namespace_labels[name] = value;
  }
  request.block_limit = in.block_limit();
  request.default_block_limit = in.default_block_limit();
  return request;
}

void fill(pb::Assigned& out, const core::Assigned& assigned) {
  for (const core::AssignedAddress& address : assigned.addresses) {
    pb::AssignedAddress& one = *out.add_addresses();
    one.set_address(address.address.to_string());
    one.set_pool(address.pool);
    one.set_pool_cidr(address.pool_cidr.to_string());
    if (address.gateway) one.set_gateway(address.gateway->to_string());
    one.set_block(address.block.to_string());
    one.set_sequence_number(address.sequence_number.value);
    one.set_held_before(address.held_before);
  }
}

[[nodiscard]] Result<core::AssignedAddress> assigned_address_of(const pb::AssignedAddress& in) {
  core::AssignedAddress address;
  TRY(address.address, address_of("assigned.address", in.address()));
  address.pool = in.pool();
  TRY(address.pool_cidr, prefix_of("assigned.pool_cidr", in.pool_cidr()));
  if (!in.gateway().empty()) {
    TRY(const net::Address gateway, address_of("assigned.gateway", in.gateway()));
    address.gateway = gateway;
  }
  TRY(address.block, prefix_of("assigned.block", in.block()));
  if (!address.block.contains(address.address)) return fail(wrong("assigned.address", "is not in its block"));
  address.sequence_number = core::SequenceNumber(in.sequence_number());
  address.held_before = in.held_before();
  return address;
}

[[nodiscard]] Result<core::Assigned> assigned_of(const pb::Assigned& in) {
  core::Assigned assigned;
  TRY_VOID(check_count("assigned.addresses", in.addresses(), std::size_t{2} * kCountMax + kAddressesMax));
  for (const pb::AssignedAddress& one : in.addresses()) {
    TRY(core::AssignedAddress address, assigned_address_of(one));
    assigned.addresses.push_back(std::move(address));
  }
  return assigned;
}

}  // namespace

std::string encode(const AssignCall& call) {
  pb::AssignRequest out;
  fill(out, call);
  return out.SerializeAsString();
}

std::string encode(const ReleaseCall& call) {
  pb::ReleaseRequest out;
  fill(*out.mutable_caller(), call.caller);
  fill(*out.mutable_owner(), call.owner);
  return out.SerializeAsString();
}

std::string encode(const AssignOutcome& outcome) {
  pb::AssignAnswer out;
  if (const auto* assigned = std::get_if<core::Assigned>(&outcome)) {
    fill(*out.mutable_assigned(), *assigned);
  } else if (const auto* refusal = std::get_if<core::Refusal>(&outcome)) {
    fill(*out.mutable_refusal(), *refusal);
  } else {
    fill(*out.mutable_error(), std::get<Error>(outcome));
  }
  return out.SerializeAsString();
}

std::string encode(const ReleaseOutcome& outcome) {
  pb::ReleaseAnswer out;
  if (const auto* released = std::get_if<std::vector<net::Address>>(&outcome)) {
    out.mutable_released();
    for (const net::Address& address : *released) out.mutable_released()->add_addresses(address.to_string());
  } else {
    fill(*out.mutable_error(), std::get<Error>(outcome));
  }
  return out.SerializeAsString();
}

std::string encode(const AgentStatus& status) {
  pb::StatusAnswer out;
  out.set_version(status.version);
  out.set_store(status.store);
  out.set_node(status.node);
  out.set_cache_in_use(status.cache_in_use);
  out.set_own_blocks(status.own_blocks);
  out.set_known_affinities(status.known_affinities);
  out.set_served_from_cache(status.served_from_cache);
  out.set_served_from_store(status.served_from_store);
  out.set_failed(status.failed);
  out.set_commits(status.commits);
  out.set_blocks_ahead(status.blocks_ahead);
  return out.SerializeAsString();
}

std::string encode_sign_of_life() {
  pb::AssignAnswer out;
  out.mutable_taken();
  return out.SerializeAsString();
}

bool is_sign_of_life(std::string_view bytes) {
  const auto in = parse<pb::AssignAnswer>(bytes);
  return in && in->has_taken();
}

Result<AssignCall> decode_assign_call(std::string_view bytes) {
  TRY(const pb::AssignRequest in, parse<pb::AssignRequest>(bytes));
  AssignCall call;
  TRY(call.caller, caller_of(in.caller()));
  TRY_VOID(check_count("pools", in.pools(), kPoolSpecsMax));
  for (const pb::PoolSpec& pool : in.pools()) {
    TRY(core::PoolSpec spec, pool_spec_of(pool));
    call.pools.push_back(std::move(spec));
  }
  TRY(call.request, request_of(in));
  if (in.has_annotations()) {
    const auto& wanted = in.annotations();
    call.annotations =
        core::WishesWanted{{wanted.ipv4_pools(), wanted.ipv6_pools()}, wanted.addresses(), wanted.families()};
  }
  return call;
}

Result<ReleaseCall> decode_release_call(std::string_view bytes) {
  TRY(const pb::ReleaseRequest in, parse<pb::ReleaseRequest>(bytes));
  ReleaseCall call;
  TRY(call.caller, caller_of(in.caller()));
  if (!in.has_owner()) return fail(wrong("owner", "is wanted"));
  TRY(call.owner, owner_of(in.owner()));
  return call;
}

Result<AssignOutcome> decode_assign_outcome(std::string_view bytes) {
  TRY(const pb::AssignAnswer in, parse<pb::AssignAnswer>(bytes));
  switch (in.answer_case()) {
    case pb::AssignAnswer::kAssigned: {
      TRY(core::Assigned assigned, assigned_of(in.assigned()));
      return AssignOutcome(std::move(assigned));
    }
    case pb::AssignAnswer::kRefusal: {
      TRY(core::Refusal refusal, refusal_of(in.refusal()));
      return AssignOutcome(std::move(refusal));
    }
    case pb::AssignAnswer::kError: {
      TRY(Error error, error_of(in.error()));
      return AssignOutcome(std::move(error));
    }
    case pb::AssignAnswer::kTaken:
    case pb::AssignAnswer::ANSWER_NOT_SET:
      break;
  }
  return fail(wrong("answer", "is missing"));
}

Result<ReleaseOutcome> decode_release_outcome(std::string_view bytes) {
  TRY(const pb::ReleaseAnswer in, parse<pb::ReleaseAnswer>(bytes));
  if (in.answer_case() == pb::ReleaseAnswer::kError) {
    TRY(Error error, error_of(in.error()));
    return ReleaseOutcome(std::move(error));
  }
  if (in.answer_case() != pb::ReleaseAnswer::kReleased) return fail(wrong("answer", "is missing"));
  std::vector<net::Address> released;
  for (const std::string& text : in.released().addresses()) {
    TRY(const net::Address address, address_of("released.addresses", text));
    released.push_back(address);
  }
  return ReleaseOutcome(std::move(released));
}

Result<AgentStatus> decode_status(std::string_view bytes) {
  TRY(const pb::StatusAnswer in, parse<pb::StatusAnswer>(bytes));
  return AgentStatus{in.version(),
                     in.store(),
                     in.node(),
                     in.cache_in_use(),
                     in.own_blocks(),
                     in.known_affinities(),
                     in.served_from_cache(),
                     in.served_from_store(),
                     in.failed(),
                     in.commits(),
                     in.blocks_ahead()};
}

}  // namespace croft::wire::agent
