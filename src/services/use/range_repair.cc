#include "services/use/range_repair.h"

#include <algorithm>
#include <array>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "ipam/use/commit_once.h"
#include "ipam/use/each_record.h"
#include "register/address_claims.h"

namespace croft::engine {
namespace {

using core::audit::RangeRepair;
using store::Condition;

constexpr auto& kNames = core::audit::kRangeNames;

using Records = std::array<std::optional<store::Record>, kNames.size()>;

[[nodiscard]] Result<Records> read_records(const Context& context) {
  std::vector<store::Key> keys;
  for (const std::string_view name : kNames) keys.push_back(core::range_allocation_key(name));
  TRY(auto read, context.store.get_many(keys, deadline_of_use_case(context)));
  CROFT_ASSERT(read.size() == kNames.size());
  for (const auto& record : read) {
    if (record && !record->value) return fail(record->value.error());
  }
  Records records;
  std::ranges::move(read, records.begin());
  return records;
}

[[nodiscard]] Condition as_read(const std::optional<store::Record>& record) {
  return record ? Condition::if_revision(record->revision) : Condition::if_absent();
}

/// Who else has a claim on the address space, and the commit's part that makes another claim meanwhile a conflict.
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
struct Look {
  Records records;
  std::vector<core::audit::ServiceUse> services;
  std::vector<store::Revision> service_revisions;  ///< of each
  Claims claims;
  std::vector<core::ServiceCidrObject> cidrs;
  std::vector<core::IpAddressObject> objects;
  std::map<std::string, store::Revision> object_revisions;
};

/// The Services of both kinds: who is not seen has nothing, and loses what it holds.
[[nodiscard]] Result<void> read_services(const Context& context, Look& look) {
  const store::Capabilities can = context.store.capabilities();
  const auto add = [&](const store::Record& record, const core::Service& service, bool beside_kubernetes) {
    look.services.push_back(core::audit::use_of(service));
    look.services.back().beside_kubernetes = beside_kubernetes;
    look.service_revisions.push_back(record.revision);
  };
  TRY_VOID(for_each_record(context, {core::Kind::service, ""}, [&](const store::Record& record) {
    add(record, std::get<core::Service>(*record.value),
        can.foreign_writers && can.services != core::System::kubernetes);
  }));
  if (!can.foreign_writers) return {};
  const auto others = for_each_record(context, {core::Kind::foreign_service, ""}, [&](const store::Record& record) {
    add(record, std::get<core::ForeignService>(*record.value).service, can.services == core::System::kubernetes);
  });
  if (others) return {};
  return fail(others.error().in(fmt::format("{} Services hold values of the same ranges and could not be read",
                                            can.services == core::System::kubernetes ? "Croft's own" : "Kubernetes'")));
}

[[nodiscard]] bool is_empty(const Look& look) {
  return std::ranges::none_of(look.records, [](const auto& record) { return record.has_value(); }) &&
         look.services.empty() && look.cidrs.empty() && look.objects.empty();
}

[[nodiscard]] Result<Look> read_all(const Context& context, const RangeRepairOptions& options) {
  using For = core::AddressClaims::For;
  Look look;
  TRY(look.records, read_records(context));
  TRY(look.claims, read_claims(context, options.write ? For::to_claim : For::to_look));
  TRY_VOID(read_services(context, look));
  if (options.form == ClusterIpForm::bitmap) return look;
  TRY_VOID(for_each_record(context, {core::Kind::ip_address, ""}, [&](store::Record& record) {
    look.object_revisions[record.key.name] = record.revision;
    look.objects.push_back(std::get<core::IpAddressObject>(*std::move(record.value)));
  }));
  TRY_VOID(for_each_record(context, {core::Kind::service_cidr, ""}, [&](store::Record& record) {
    look.cidrs.push_back(std::get<core::ServiceCidrObject>(*std::move(record.value)));
  }));
  return look;
}

[[nodiscard]] std::string unpersisted(std::string_view name) {
  return fmt::format("unable to persist the updated service {} allocations: ",
                     name == core::kServiceNodePorts ? "port" : "IP");
}

class Pass {
 public:
  Pass(const Context& context, const RangeRepairOptions& options, RangeRepairMemory& memory,
       const std::function<void(const RangeRepairReport&)>& before_write)
      : context_(context), options_(options), memory_(memory), before_write_(before_write) {
    report_.applied = options.write;
  }

  [[nodiscard]] Result<RangeRepairReport> run() {
    for (int tries = 0;; ++tries) {
      if (tries > 0) wait(tries - 1);
      TRY(look_, read_all(context_, options_));
      if (const std::uint64_t epoch = context_.store.epoch(); memory_.epoch != epoch) {
        memory_ = {};
        memory_.epoch = epoch;
      }
      if (is_empty(look_) && context_.store.capabilities().services == core::System::kubernetes) {
        return fail(ErrorCode::not_found,
                    "there is nothing of a Kubernetes here, no Service, no range, no IPAddress, no ServiceCIDR: is the "
                    "prefix that of the kube-apiservers' --etcd-prefix (croft: --etcd-prefix, in a store's URL "
                    "kubernetes=)?");
      }
      // Who is told before the first write is told of them too.
      report_.services = std::move(look_.services);
      decide();
      TRY_VOID(settle(tries + 1 == kRepairTriesMax));
      if (pending_.empty()) break;
    }
    if (options_.write && report_.objects) mend_objects();
    return std::move(report_);
  }

 private:
  void wait(int failures) {
    std::int64_t us = 10'000;
    for (int i = 0; i < failures; ++i) us *= 5;
    us += static_cast<std::int64_t>(context_.random.next() % static_cast<std::uint64_t>(us / 5 + 1)) - us / 10;
    std::this_thread::sleep_for(std::chrono::microseconds(us));
  }

  [[nodiscard]] const core::RangeAllocation* stored(std::size_t index) const {
    const auto& record = look_.records[index];
    return record ? &std::get<core::RangeAllocation>(*record->value) : nullptr;
  }

  void decide() {
    // What a try before decided, and could not store, rested on other records.
    pending_.clear();
    std::erase_if(report_.ranges, [&](const RangeRepair& one) { return !done_.contains(one.name); });
    const core::audit::FormInUse form = core::audit::form_in_use(options_.form, look_.records[0].has_value(),
                                                                 !look_.objects.empty(), !look_.cidrs.empty());
    report_.bitmaps_unseen = !sees_bitmaps();
    report_.objects = form.objects;
    report_.bitmap_beside = form.bitmap_beside;
    report_.stored.clear();
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      if (const core::RangeAllocation* range = stored(i)) report_.stored.emplace(kNames[i], *range);
    }
    const core::audit::RangesWanted wanted{options_.cidrs, options_.node_ports};
    const core::audit::RangesSeen seen = ranges_seen();
    if (!report_.objects && !sees_bitmaps()) {
      fail_range(core::kServiceIps,
                 {ErrorCode::refused_by_configuration,
                  "this cluster has no IPAddress and ServiceCIDR objects (Kubernetes 1.33 and newer do): the addresses "
                  "of its Services are in bitmaps, which no API shows; give --etcd-servers",
                  {}});
    } else if (!report_.objects || report_.bitmap_beside) {
      take_over(core::audit::decide_addresses(seen, wanted, report_.services, *look_.claims.all));
    }
    if (sees_bitmaps()) {
      take_over(core::audit::decide_node_ports(seen, wanted, report_.services));
    } else {
      look_at_unseen_ports(wanted);
    }
    report_.addresses.reset();
    if (report_.objects) {
      report_.addresses = core::audit::audit_ip_addresses(look_.objects, look_.cidrs, report_.services,
                                                          context_.clock.now().wall, leaked_for());
      remember_leaked();
    }
  }

  [[nodiscard]] bool sees_bitmaps() const {
    return !context_.store.capabilities().lacks.contains(core::Kind::range_allocation);
  }

  /// Nothing is known of the record of the node ports, so nothing of it is written.
  void look_at_unseen_ports(const core::audit::RangesWanted& wanted) {
    RangeRepair seen = core::audit::compare_node_ports(wanted.node_ports, report_.services);
    done_.insert(seen.name);
    std::erase_if(report_.ranges, [&](const RangeRepair& one) { return one.name == seen.name; });
    report_.ranges.push_back(std::move(seen));
  }

  /// For how long each object was seen as it is now, and leaked.
  [[nodiscard]] core::audit::LeakedFor leaked_for() const {
    core::audit::LeakedFor result;
    const auto now = context_.clock.now().since_boot;
    for (const auto& [address, seen] : memory_.objects) {
      const auto revision = look_.object_revisions.find(address);
      if (revision != look_.object_revisions.end() && revision->second == seen.revision) {
        result.emplace(address, now - seen.since);
      }
    }
    return result;
  }

  void remember_leaked() {
    std::map<std::string, LeakedObject> objects;
    for (const std::string& address : report_.addresses->leaked) {
      const store::Revision revision = look_.object_revisions.at(address);
      const auto before = memory_.objects.find(address);
      const bool is_known = before != memory_.objects.end() && before->second.revision == revision;
      objects[address] = {revision, is_known ? before->second.since : context_.clock.now().since_boot};
    }
    memory_.objects = std::move(objects);
  }

  [[nodiscard]] core::audit::RangesSeen ranges_seen() const {
    core::audit::RangesSeen seen;
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      if (const core::RangeAllocation* range = stored(i)) seen.stored[i] = *range;
    }
    seen.leaks = memory_.ranges;
    return seen;
  }

  void take_over(core::audit::RangesDecided decided) {
    for (core::audit::RangeFailure& failure : decided.failures) fail_range(failure.range, std::move(failure.error));
    for (RangeRepair& repair : decided.repairs) take_over(std::move(repair));
  }

  void fail_range(std::string_view name, Error error) {
    if (!done_.insert(std::string(name)).second) return;
    ++report_.failed_tries[std::string(name)];
    report_.failures.push_back({std::string(name), std::move(error)});
  }

  /// Unless the range was done in a try before.
  void take_over(RangeRepair repair) {
    if (repair.failure) fail_range(repair.name, *repair.failure);
    if (done_.contains(repair.name)) return;
    pending_.insert(repair.name);
    report_.ranges.push_back(std::move(repair));
    std::ranges::sort(report_.ranges, {}, [](const RangeRepair& one) { return index_of(one.name); });
  }

  [[nodiscard]] static std::size_t index_of(std::string_view name) {
    return static_cast<std::size_t>(std::ranges::find(kNames, name) - kNames.begin());
  }

  [[nodiscard]] bool is_to_write(const RangeRepair& repair) const {
    return options_.write && (repair.write || repair.remove) &&
           !(report_.bitmap_beside && repair.name != core::kServiceNodePorts);
  }

  void count_conflict(const std::string& name) {
    ++report_.conflicts;
    ++report_.failed_tries[name];
  }

  void is_done(const RangeRepair& repair) {
    memory_.ranges[repair.name] = repair.leaks;
    done_.insert(repair.name);
    pending_.erase(repair.name);
  }

  /// Writes what is to be written. What is not counts only if the range is still the one that was read.
  [[nodiscard]] Result<void> settle(bool is_last) {
    bool is_told = false;
    bool is_unsure = false;
    for (const RangeRepair& repair : report_.ranges) {
      if (!pending_.contains(repair.name)) continue;
      if (!is_to_write(repair)) {
        is_unsure = true;
        continue;
      }
      if (!std::exchange(is_told, true) && before_write_) before_write_(report_);
      write(repair, is_last);
    }
    if (!is_unsure) return {};
    TRY(const Records now, read_records(context_));
    for (const RangeRepair& repair : report_.ranges) {
      if (!pending_.contains(repair.name) || is_to_write(repair)) continue;
      const std::size_t index = index_of(repair.name);
      const bool is_same = as_read(now[index]) == as_read(look_.records[index]);
      if (!is_same) count_conflict(repair.name);
      if (!is_same && is_last) report_.changed_meanwhile.push_back(repair.name);
      if (is_same || is_last) is_done(repair);
    }
    return {};
  }

  void write(const RangeRepair& repair, bool is_last) {
    std::vector<store::Write> writes;
    writes.push_back(
        {core::range_allocation_key(repair.name), std::nullopt, as_read(look_.records[index_of(repair.name)]), false});
    if (repair.write) writes.front().value = *repair.write;
    if (core::audit::is_moved(repair) && context_.store.capabilities().atomic_commit)
      writes.push_back(look_.claims.pool_set);
    const auto written = commit_once(context_, writes, deadline_of_use_case(context_));
    if (written) {
      report_.written.push_back(repair.name);
      return is_done(repair);
    }
    Error error = written.error();
    if (error.code == ErrorCode::conflict) {
      if (!is_last) return count_conflict(repair.name);
      ++report_.conflicts;
      error.code = ErrorCode::unavailable;
    }
    error.message = unpersisted(repair.name) + error.message;
    pending_.erase(repair.name);
    fail_range(repair.name, std::move(error));
  }

  void mend_objects() {
    if (report_.addresses->mends.empty()) return;
    if (before_write_) before_write_(report_);
    // Objects are of Kubernetes' Services, whichever kind these are here.
    std::map<core::ServiceName, store::Revision> services;
    for (std::size_t i = 0; i < report_.services.size(); ++i) {
      const auto& service = report_.services[i];
      if (!service.beside_kubernetes) services.emplace(service.name, look_.service_revisions[i]);
    }
    const store::Capabilities can = context_.store.capabilities();
    const bool is_foreign = can.foreign_writers && can.services != core::System::kubernetes;
    std::set<std::string> undone;
    for (const core::audit::IpAddressMend& mend : report_.addresses->mends) undone.insert(mend.address);
    for (const core::audit::IpAddressMend& mend : report_.addresses->mends) {
      if (mend.remove && mend.make && !can.atomic_commit) {
        leave_to_kubernetes(mend.address);
        continue;
      }
      std::optional<store::Write> rests_on;
      if (mend.service) {
        const auto service = services.find(*mend.service);
        core::Key key = core::service_key(*mend.service);
        if (is_foreign) key = core::foreign_service_key(*mend.service);
        rests_on = store::Write{
            std::move(key), std::nullopt,
            service != services.end() ? Condition::if_revision(service->second) : Condition::if_absent(), true};
      }
      const auto done = mend_object(mend, rests_on);
      if (done) undone.erase(mend.address);
      if (done) continue;
      if (done.error().code == ErrorCode::conflict) {
        count_conflict(std::string(core::audit::kIpAddresses));
        report_.changed_meanwhile.push_back(mend.address);
        continue;
      }
      ++report_.failed_tries[std::string(core::audit::kIpAddresses)];
      report_.failures.push_back({std::string(core::audit::kIpAddresses), done.error()});
      break;
    }
    // What is told as mended is.
    for (auto& finding : report_.addresses->findings) {
      finding.mended = finding.mended && !undone.contains(finding.value);
    }
  }

  /// To delete an object and make it anew, with nothing in between, no API can. For a moment the address would be
  /// anybody's, and who takes it then keeps it beside its Service.
  void leave_to_kubernetes(const std::string& address) {
    for (auto& finding : report_.addresses->findings) {
      if (finding.value == address && finding.mended) {
        finding.message += ": left to the kube-apiservers, whose own repair does it within minutes";
      }
    }
  }

  /// Another object takes the place of one that is wrong, in one step: for a kube-apiserver an address without object
  /// is free, and would be another Service's at once. Only on a store that can (leave_to_kubernetes).
  [[nodiscard]] Result<void> mend_object(const core::audit::IpAddressMend& mend,
                                         const std::optional<store::Write>& rests_on) {
    const store::Key key = core::ip_address_key(mend.address);
    const auto commit = [&](store::Write write) -> Result<void> {
      std::vector<store::Write> writes{std::move(write)};
      if (rests_on) writes.push_back(*rests_on);
      if (rests_on && !context_.store.capabilities().atomic_commit) {
        // As near as it gets. Who takes the address in between finds the object there, or makes it.
        TRY_VOID(context_.store.commit({&*rests_on, 1}, {}, deadline_of_use_case(context_)));
        writes.pop_back();
      }
      TRY_VOID(commit_once(context_, writes, deadline_of_use_case(context_)));
      return {};
    };
    std::optional<store::Value> made;
    if (mend.make) {
      core::IpAddressObject object = *mend.make;
      object.created = context_.clock.now().wall;
      made = std::move(object);
    }
    if (!mend.remove) return commit({key, std::move(made), Condition::if_absent(), false});
    const Condition as_seen = Condition::if_revision(look_.object_revisions.at(mend.address));
    return commit({key, std::move(made), as_seen, false});
  }

  const Context& context_;
  const RangeRepairOptions& options_;
  RangeRepairMemory& memory_;
  const std::function<void(const RangeRepairReport&)>& before_write_;
  Look look_;
  RangeRepairReport report_;
  std::set<std::string> pending_;  ///< decided in this try, and not done
  std::set<std::string> done_;     ///< stored, found right, or given up
};

}  // namespace

std::vector<core::audit::RepairFinding> RangeRepairReport::findings() const {
  std::vector<core::audit::RepairFinding> all;
  for (const RangeRepair& range : ranges) all.insert(all.end(), range.findings.begin(), range.findings.end());
  if (addresses) all.insert(all.end(), addresses->findings.begin(), addresses->findings.end());
  return all;
}

Result<RangeRepairReport> repair_ranges(const Context& context, const RangeRepairOptions& options,
                                        RangeRepairMemory& memory,
                                        const std::function<void(const RangeRepairReport&)>& before_write) {
  return Pass(context, options, memory, before_write).run();
}

}  // namespace croft::engine
