#include "services/use/range_repair.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <span>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "ipam/use/transact.h"
#include "register/address_claims.h"

namespace croft::engine {
namespace {

using core::audit::RangeRepair;
using store::Condition;

constexpr auto& kNames = core::audit::kRangeNames;

using Records = std::map<std::string, store::Record, std::less<>>;  ///< by the names of ranges

[[nodiscard]] Result<Records> read_records(const Context& context, std::span<const std::string_view> names) {
  core::Missing wanted;
  for (const std::string_view name : names) wanted.records.insert(core::range_allocation_key(name));
  TRY(auto read, context.store.read(wanted, deadline_of_use_case(context)));
  Records records;
  for (std::optional<store::Record>& record : read.records) {
    if (!record) continue;
    if (!record->value) return fail(record->value.error());
    std::string name = record->key.name;
    records.emplace(std::move(name), *std::move(record));
  }
  return records;
}

[[nodiscard]] Condition condition_of(const Records& records, std::string_view name) {
  const auto record = records.find(name);
  return record != records.end() ? Condition::if_revision(record->second.revision) : Condition::if_absent();
}

/// The other claims on the address space, and the commit's part that makes another claim meanwhile a conflict.
struct Claims {
  std::optional<core::AddressClaims> all;
  store::Write pool_set;
};

[[nodiscard]] Result<Claims> read_claims(const Context& context, core::AddressClaims::For purpose) {
  Loader loader(context.store, deadline_of_use_case(context));
  std::optional<core::AddressClaims> claims;
  core::PlannedWrite pool_set;
  TRY_VOID(read_for(context.clock, loader, [&](core::Reader& reader) {
    pool_set = core::next_pool_set(reader);
    claims.emplace(reader, purpose);
  }));
  return Claims{std::move(claims), loader.conditional({std::move(pool_set)}).front()};
}

/// All that a pass decides by, in the order in which it must be read.
struct Reading {
  Records records;
  std::vector<core::audit::ServiceUse> services;
  Claims claims;
  bool has_objects = false;  ///< there are ServiceCIDRs
};

/// The Services of both kinds: one that is not seen has nothing, and loses what it holds.
[[nodiscard]] Result<void> read_services(const Context& context, Reading& reading) {
  const store::Capabilities can = context.store.capabilities();
  TRY_VOID(for_each_record(context, {core::Kind::service, ""}, [&](const store::Record& record) {
    reading.services.push_back(core::audit::use_of(std::get<core::Service>(*record.value)));
  }));
  if (!can.foreign_writers) return {};
  const auto others = for_each_record(context, {core::Kind::foreign_service, ""}, [&](const store::Record& record) {
    reading.services.push_back(core::audit::use_of(std::get<core::ForeignService>(*record.value).service));
  });
  if (others) return {};
  return fail(others.error().in(fmt::format("{} Services hold values of the same ranges and could not be read",
                                            can.services == core::System::kubernetes ? "Croft's own" : "Kubernetes'")));
}

class Pass {
 public:
  Pass(const Context& context, const RangeRepairOptions& options, RangeRepairMemory& memory)
      : context_(context), options_(options), memory_(memory), can_(context.store.capabilities()) {
    report_.applied = options.write;
  }

  [[nodiscard]] Result<RangeRepairReport> run() {
    TRY_VOID(shows_ranges(context_.store));
    bool is_open = true;
    for (int tries = 1; is_open; ++tries) {
      if (tries > 1) wait(tries - 2);
      TRY_VOID(read());
      is_open = false;
      for (RangeRepair& repair : decide()) {
        TRY(const bool is_done, settle(repair, tries == kRepairTriesMax));
        is_open |= !is_done;
      }
    }
    std::ranges::sort(report_.ranges, {}, [](const RangeRepair& one) { return std::ranges::find(kNames, one.name); });
    return std::move(report_);
  }

 private:
  void wait(int failures) {
    std::int64_t us = 10'000;
    for (int i = 0; i < failures; ++i) us *= 5;
    us += static_cast<std::int64_t>(context_.random.next() % static_cast<std::uint64_t>(us / 5 + 1)) - us / 10;
    std::this_thread::sleep_for(std::chrono::microseconds(us));
  }

  [[nodiscard]] Result<void> read() {
    using For = core::AddressClaims::For;
    reading_ = {};
    TRY(reading_.records, read_records(context_, kNames));
    TRY(reading_.claims, read_claims(context_, options_.write ? For::to_claim : For::to_look));
    TRY_VOID(read_services(context_, reading_));
    TRY_VOID(for_each_record(context_, {core::Kind::service_cidr, ""},
                             [&](const store::Record&) { reading_.has_objects = true; }));
    if (const std::uint64_t epoch = context_.store.epoch(); memory_.epoch != epoch) {
      memory_ = {};
      memory_.epoch = epoch;
    }
    const bool is_empty = reading_.records.empty() && reading_.services.empty() && !reading_.has_objects;
    if (is_empty && can_.services == core::System::kubernetes) {
      return fail(ErrorCode::not_found,
                  "there is nothing of a Kubernetes here, no Service, no range, no ServiceCIDR: is the "
                  "prefix that of the kube-apiservers' --etcd-prefix (croft: --etcd-prefix, in a store's URL "
                  "kubernetes=)?");
    }
    report_.services = std::move(reading_.services);
    report_.stored.clear();
    for (const auto& [name, record] : reading_.records) {
      report_.stored.emplace(name, std::get<core::RangeAllocation>(*record.value));
    }
    return {};
  }

  /// The ranges that no try has settled yet.
  [[nodiscard]] std::vector<RangeRepair> decide() {
    report_.objects = reading_.has_objects;
    const core::audit::RangesSeen seen{report_.stored, memory_.ranges};
    std::vector<RangeRepair> repairs;
    if (!report_.objects) {
      repairs = core::audit::decide_addresses(seen, options_, report_.services, *reading_.claims.all);
    }
    std::ranges::move(core::audit::decide_node_ports(seen, options_, report_.services), std::back_inserter(repairs));
    std::erase_if(repairs, [this](const RangeRepair& one) { return done_.contains(one.name); });
    return repairs;
  }

  [[nodiscard]] Condition as_read(std::string_view name) const { return condition_of(reading_.records, name); }

  /// Writes a range, or sees that it still is as it was read. False: another try is to decide anew.
  [[nodiscard]] Result<bool> settle(RangeRepair& repair, bool is_last) {
    const bool is_to_write = options_.write && repair.write && !repair.failure;
    Result<void> settled;
    if (is_to_write) {
      settled = write(repair);
    } else if (!repair.failure) {
      const std::string_view name = repair.name;
      TRY(const Records now, read_records(context_, {&name, 1}));
      if (condition_of(now, name) != as_read(name)) settled = fail(ErrorCode::conflict, "");
    }
    const bool is_conflict = !settled && settled.error().code == ErrorCode::conflict;
    if (!settled) ++report_.failed_tries[repair.name];
    if (is_conflict && !is_last) return false;
    if (repair.failure) {
      ++report_.failed_tries[repair.name];
      report_.failures.push_back({repair.name, *repair.failure});
    } else if (!settled && is_to_write) {
      Error error = settled.error();
      if (is_conflict) error.code = ErrorCode::unavailable;
      error.message = fmt::format("unable to persist the updated service {} allocations: {}",
                                  repair.name == core::kServiceNodePorts ? "port" : "IP", error.message);
      report_.failures.push_back({repair.name, std::move(error)});
    } else {
      if (is_conflict) report_.changed_meanwhile.push_back(repair.name);
      memory_.ranges[repair.name] = repair.leaks;
    }
    done_.insert(repair.name);
    const bool is_looked_at = !repair.failure || repair.present || !repair.range.empty();
    if (is_looked_at) report_.ranges.push_back(std::move(repair));
    return true;
  }

  [[nodiscard]] Result<void> write(const RangeRepair& repair) {
    std::vector<store::Write> writes{
        {core::range_allocation_key(repair.name), *repair.write, as_read(repair.name), false}};
    if (core::audit::claims_new_range(repair) && can_.atomic_commit) writes.push_back(reading_.claims.pool_set);
    TRY_VOID(commit_once(context_, writes, deadline_of_use_case(context_)));
    report_.written.push_back(repair.name);
    return {};
  }

  const Context& context_;
  const RangeRepairOptions& options_;
  RangeRepairMemory& memory_;
  const store::Capabilities can_;
  Reading reading_;
  RangeRepairReport report_;
  std::set<std::string> done_;  ///< ranges stored, found right, or given up
};

}  // namespace

std::vector<core::audit::RepairFinding> RangeRepairReport::findings() const {
  std::vector<core::audit::RepairFinding> all;
  for (const RangeRepair& range : ranges) all.insert(all.end(), range.findings.begin(), range.findings.end());
  return all;
}

Result<void> shows_ranges(const store::Store& store) {
  if (!store.capabilities().lacks.contains(core::Kind::range_allocation)) return {};
  return fail(ErrorCode::refused_by_configuration,
              "the ranges of Services are bitmaps in the etcd of the kube-apiservers, which no API shows: give "
              "--etcd-servers. Addresses that are objects (Kubernetes 1.33 and newer) the kube-apiservers mend");
}

Result<RangeRepairReport> repair_ranges(const Context& context, const RangeRepairOptions& options,
                                        RangeRepairMemory& memory) {
  return Pass(context, options, memory).run();
}

}  // namespace croft::engine
