#include "services/use/service.h"

#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/assert.h"
#include "ipam/use/each_record.h"
#include "services/decide/validation.h"

namespace croft::engine {
namespace {

/// Replaces `parsed` by what the record's range says, if there is one.
template <class T, class Parse>
[[nodiscard]] Result<void> read_range(const core::Reader& reader, std::string_view name, T& parsed, Parse parse) {
  const auto* record = reader.find(core::range_allocation_key(name));
  if (record == nullptr) return {};
  auto range = parse(record->range);
  if (!range) {
    return fail(ErrorCode::corrupt, fmt::format("the range of the record {}: {}", name, range.error().message));
  }
  parsed = *range;
  return {};
}

[[nodiscard]] Result<net::Prefix> parse_cidr(const std::string& text) {
  TRY(const auto cidr, core::service::ServiceCidr::parse(text));
  return cidr.cidr();
}

/// The ranges as far as they are known; the reader tells what of them is not.
[[nodiscard]] Result<core::ServiceRanges> ranges_in(core::Reader& reader) {
  core::ServiceRanges ranges;
  TRY(ranges.cidrs, core::service::parse_service_cidrs(""));
  TRY(ranges.node_ports, core::service::parse_node_port_flag(""));
  const auto has = [&](std::string_view name) { return reader.get(core::range_allocation_key(name)) != nullptr; };
  ranges.cidrs.defaulted = !has(core::kServiceIps);
  static_cast<void>(has(core::kSecondaryServiceIps));
  static_cast<void>(has(core::kServiceNodePorts));
  TRY_VOID(read_range(reader, core::kServiceIps, ranges.cidrs.primary, parse_cidr));
  TRY_VOID(read_range(reader, core::kSecondaryServiceIps, ranges.cidrs.secondary, parse_cidr));
  TRY_VOID(read_range(reader, core::kServiceNodePorts, ranges.node_ports, core::service::NodePortRange::parse));
  return ranges;
}

/// Decides by the ranges that are chosen: `plan(ranges)`.
template <class Plan>
core::Step<core::ServiceAnswer> with_ranges(const core::Snapshot& snapshot, const RangeChoice& choice, Plan plan) {
  core::Reader reader(snapshot);
  Result<core::ServiceRanges> ranges = core::ServiceRanges{};
  if (!choice.cidrs || !choice.node_ports) ranges = ranges_in(reader);
  if (reader.missing().damaged) return reader.missing();
  if (!ranges) return ranges.error();
  if (choice.cidrs) ranges->cidrs = *choice.cidrs;
  if (choice.node_ports) ranges->node_ports = *choice.node_ports;
  ranges->may_make = choice.may_make;
  auto step = plan(*ranges);
  if (reader.complete()) return step;
  // Together with what the change itself asks for.
  core::Missing wanted = reader.missing();
  if (auto* more = std::get_if<core::Missing>(&step)) {
    wanted.records.merge(more->records);
    wanted.lists.merge(more->lists);
    wanted.keys.merge(more->keys);
  }
  return wanted;
}

/// Who is about to write decides once; the bitmap of a /12 is not read twice.
TurnTaking turn_of(const core::ServiceOptions& options) {
  return options.dry_run ? TurnTaking::before_writing : TurnTaking::first;
}

const core::Service* service_named(core::Reader& reader, const core::ServiceName& name) {
  const bool is_name = core::check_service_name(name).empty();
  return is_name ? reader.get(core::service_key(name)) : nullptr;
}

/// Whether the Service that has a name is the one that had it when the call first found one.
class Same {
 public:
  [[nodiscard]] bool is(const core::Service* now) {
    if (!first_ && now != nullptr) first_ = *now;
    return !first_ || (now != nullptr && now->uid == first_->uid && now->created == first_->created);
  }
  [[nodiscard]] const std::optional<core::Service>& first() const { return first_; }

 private:
  std::optional<core::Service> first_;
};

/// Before anything is decided, so that nobody is told of a range or a name instead.
[[nodiscard]] Result<void> check_services_are_own(const Context& context) {
  if (context.store.capabilities().services != core::System::kubernetes) return {};
  return fail(ErrorCode::read_only, "the Services of this store are Kubernetes' own and read-only here: use kubectl");
}

}  // namespace

Result<core::ServiceAnswer> create_service(const Context& context, const core::Service& wanted,
                                           const RangeChoice& ranges, const core::ServiceOptions& options) {
  TRY_VOID(check_services_are_own(context));
  return transact(context, turn_of(options), [&](const core::Snapshot& snapshot, const Instant& now) {
    return with_ranges(snapshot, ranges, [&](const core::ServiceRanges& known) {
      return core::plan_create_service(snapshot, wanted, known, options, now, context.random);
    });
  });
}

Result<core::ServiceAnswer> update_service(const Context& context, const core::Service& wanted,
                                           const RangeChoice& ranges, const core::ServiceOptions& options,
                                           const std::optional<store::Revision>& as_of) {
  TRY_VOID(check_services_are_own(context));
  std::optional<core::Service> as_read;
  if (as_of) {
    TRY(auto stored, get_service(context, wanted.name));
    if (!stored) return core::ServiceAnswer(core::refuse_not_found(wanted.name));
    if (stored->revision != *as_of) return core::ServiceAnswer(core::refuse_stale(wanted.name));
    // From here on the value stands for the revision: whoever writes the same value again changes nothing.
    as_read = std::move(stored->service);
  }
  // Who is changed is who has the name at the first look: after a lost reply another may have it, or nobody.
  Same same;
  using Answer = core::ServiceAnswer;
  return transact(context, turn_of(options), [&](const core::Snapshot& snapshot, const Instant&) -> core::Step<Answer> {
    core::Reader reader(snapshot);
    const auto* now = service_named(reader, wanted.name);
    if (!reader.complete()) return reader.missing();
    if (now != nullptr && !same.is(now)) return core::Plan<Answer>{core::refuse_stale(wanted.name), {}};
    return with_ranges(snapshot, ranges, [&](const core::ServiceRanges& known) {
      return core::plan_update_service(snapshot, wanted, as_read, known, options, context.random);
    });
  });
}

Result<core::ServiceAnswer> delete_service(const Context& context, const core::ServiceName& name,
                                           const core::ServiceOptions& options) {
  TRY_VOID(check_services_are_own(context));
  // Likewise; gone is what it was to be.
  Same same;
  using Answer = core::ServiceAnswer;
  return transact(context, turn_of(options), [&](const core::Snapshot& snapshot, const Instant&) -> core::Step<Answer> {
    core::Reader reader(snapshot);
    const auto* now = service_named(reader, name);
    if (!reader.complete()) return reader.missing();
    if (!same.is(now)) return core::Plan<Answer>{Answer(core::ServiceChanged{*same.first(), {}}), {}};
    return core::plan_delete_service(snapshot, name, options, context.random);
  });
}

Result<std::optional<StoredService>> get_service(const Context& context, const core::ServiceName& name) {
  if (!core::check_service_name(name).empty()) return std::optional<StoredService>();  // and no key either
  TRY(auto record, get_sound(context, core::service_key(name), deadline_of_use_case(context)));
  if (!record) return std::optional<StoredService>();
  return std::optional(StoredService{std::get<core::Service>(*std::move(record->value)), record->revision});
}

Result<std::vector<StoredService>> list_services(const Context& context, const std::string& name_space) {
  std::vector<StoredService> services;
  const bool is_possible = name_space.empty() || core::check_service_name({name_space, "a"}).empty();
  if (!is_possible) return services;
  const core::Listing listing{core::Kind::service, name_space.empty() ? "" : name_space + "/"};
  TRY_VOID(for_each_record(
      context, listing,
      [&](store::Record& record) {
        services.push_back({std::get<core::Service>(*std::move(record.value)), record.revision});
      },
      OnDamage::skip));
  return services;
}

Result<core::ServiceRanges> stored_service_ranges(const Context& context) {
  Loader loader(context.store, deadline_of_use_case(context));
  Result<core::ServiceRanges> ranges = core::ServiceRanges{};
  TRY_VOID(read_for(context.clock, loader, [&](core::Reader& reader) { ranges = ranges_in(reader); }));
  return ranges;
}

}  // namespace croft::engine
