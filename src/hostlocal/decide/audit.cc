#include "hostlocal/decide/audit.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/time_text.h"

namespace croft::core::host_local {
namespace {

using Kind = Finding::Kind;
using Netns = RuntimeAttachment::Netns;

/// The verdict on the life of one reservation's holder.
struct Verdict {
  enum class Life : std::uint8_t { alive, doubtful, gone } life = Life::gone;
  std::vector<std::string> evidence;

  void doubt(std::string why) {
    life = Life::doubtful;
    evidence.push_back(std::move(why));
  }
};

class Auditor {
 public:
  explicit Auditor(const Audit& audit) : audit_(audit), boot_(audit.now.wall - audit.now.since_boot) {
    for (const RuntimeAttachment& attachment : audit.life.attachments) {
      by_container_.emplace(attachment.owner.container_id, &attachment);
      for (const net::Address& address : attachment.addresses) by_address_.emplace(address, &attachment);
    }
    for (const UnreadableEntry& entry : audit.life.unreadable) add_unreadable(entry);
    for (const Reservation& reservation : audit.directory.reservations) {
      const auto where = audit.life.configured.find(reservation.address);
      if (!reservation.holder || where == audit.life.configured.end()) continue;
      living_.emplace(reservation.holder->container_id,
                      fmt::format("{} is configured on {}", reservation.file, where->second));
    }
  }

  std::vector<Finding> run() {
    for (const Reservation& reservation : audit_.directory.reservations) look_at(reservation);
    note_unseen();
    return std::move(findings_);
  }

 private:
  [[nodiscard]] std::chrono::nanoseconds age_of(WallTime written) const { return audit_.now.wall - written; }
  [[nodiscard]] bool is_young(WallTime written) const { return age_of(written) <= audit_.grace; }

  Finding& add(Kind kind, const Reservation& reservation, std::vector<std::string> evidence, std::string remedy) {
    findings_.push_back({kind, reservation.file, std::move(evidence), std::move(remedy), reservation, false, false});
    return findings_.back();
  }

  // ---- life

  /// No namespace outlives its boot. Only where the path does not tell: there is none, or it goes by the number of a
  /// process, which another one may have by now.
  [[nodiscard]] bool is_of_an_earlier_boot(const RuntimeAttachment& entry) const {
    const bool path_tells = !entry.netns_path.empty() && !entry.netns_path.starts_with("/proc/");
    return !path_tells && entry.written != WallTime() && entry.written < boot_;
  }

  void weigh(const RuntimeAttachment& entry, Verdict& verdict) const {
    if (verdict.life == Verdict::Life::alive) return;
    if (is_of_an_earlier_boot(entry)) {
      verdict.evidence.push_back(fmt::format("its cache entry {} is from before this boot", entry.file));
      return;
    }
    switch (entry.netns) {
      case Netns::present:
        verdict = {Verdict::Life::alive, {}};
        return;
      case Netns::gone:
        verdict.evidence.push_back(
            fmt::format("the network namespace {} of its cache entry {} is gone", entry.netns_path, entry.file));
        return;
      case Netns::unclear:
      case Netns::unmounted:
        verdict.doubt(entry.netns_path.empty()
                          ? fmt::format("its cache entry {} names no network namespace", entry.file)
                          : fmt::format("{}, the namespace of its cache entry {}, is something else or can't be looked "
                                        "at",
                                        entry.netns_path, entry.file));
    }
  }

  /// Names of networks and containers may have dashes too: every way to read the name counts.
  void add_unreadable(const UnreadableEntry& entry) {
    for (std::size_t dash = entry.name.find('-'); dash != std::string::npos; dash = entry.name.find('-', dash + 1)) {
      unreadable_.emplace(entry.name.substr(dash + 1), &entry);
    }
  }

  /// An entry that can't be read and may be about the holder, by its name; nullptr when there is none.
  [[nodiscard]] const UnreadableEntry* unreadable_about(const Holder& holder) const {
    const std::string name = fmt::format("{}-{}", holder.container_id, holder.interface_name);
    const auto found = unreadable_.lower_bound(name);
    if (found == unreadable_.end()) return nullptr;
    const bool matches = holder.interface_name.empty() ? found->first.starts_with(name) : found->first == name;
    return matches ? found->second : nullptr;
  }

  /// Everything of the container counts, whatever the network and interface: the container lives as one.
  void ask_cache(const Reservation& reservation, Verdict& verdict) const {
    std::set<const RuntimeAttachment*> entries;
    const auto [first, last] = by_address_.equal_range(reservation.address);
    for (auto i = first; i != last; ++i) {
      if (i->second->owner.network == audit_.network) entries.insert(i->second);
    }
    if (reservation.holder) {
      const auto [begin, end] = by_container_.equal_range(reservation.holder->container_id);
      for (auto i = begin; i != end; ++i) entries.insert(i->second);
    }
    for (const RuntimeAttachment* entry : entries) weigh(*entry, verdict);
    if (verdict.life == Verdict::Life::alive) return;
    const UnreadableEntry* unreadable = reservation.holder ? unreadable_about(*reservation.holder) : nullptr;
    if (unreadable != nullptr) verdict.doubt("its cache entry can't be read: " + unreadable->what);
    if (entries.empty() && unreadable == nullptr) {
      verdict.evidence.emplace_back("the runtime's cache has no entry about it");
    }
  }

  /// Where another address of the same container is configured; nullptr when none is.
  [[nodiscard]] const std::string* other_address_of(const Reservation& reservation) const {
    if (!reservation.holder) return nullptr;
    const auto found = living_.find(reservation.holder->container_id);
    return found == living_.end() ? nullptr : &found->second;
  }

  [[nodiscard]] Verdict judge(const Reservation& reservation) const {
    if (audit_.life.configured.contains(reservation.address)) return {Verdict::Life::alive, {}};
    Verdict verdict;
    verdict.evidence.push_back(
        fmt::format("configured in none of the {} network namespaces looked at", audit_.life.namespaces));
    ask_cache(reservation, verdict);
    if (verdict.life == Verdict::Life::alive) return verdict;
    if (const auto* other = other_address_of(reservation)) {
      verdict.doubt(fmt::format("the container lives: its address {}", *other));
    }
    if (!audit_.life.unseen.empty()) verdict.doubt("not everything could be looked at: " + audit_.life.unseen.front());
    verdict.evidence.push_back(fmt::format("written {} ago, {}{}", age_text(age_of(reservation.written)),
                                           rfc3339_rounded_up(reservation.written),
                                           reservation.written < boot_ ? ", before this boot" : ""));
    return verdict;
  }

  // ---- reservations

  void look_at(const Reservation& reservation) {
    if (is_young(reservation.written)) return;
    const Verdict verdict = judge(reservation);
    if (!reservation.holder) return look_at_nobodys(reservation, verdict);
    switch (verdict.life) {
      case Verdict::Life::gone:
        return prove(add(Kind::leak, reservation, evidence_of(*reservation.holder, verdict), kRemove));
      case Verdict::Life::doubtful:
        add(Kind::undecided, reservation, evidence_of(*reservation.holder, verdict),
            "it is kept; look whether the container lives (`crictl pods`, `docker ps`), then delete the file");
        return;
      case Verdict::Life::alive:
        return;
    }
  }

  static std::vector<std::string> evidence_of(const Holder& holder, const Verdict& verdict) {
    std::vector<std::string> evidence{
        holder.interface_name.empty()
            ? fmt::format("held by container {}, interface not recorded", holder.container_id)
            : fmt::format("held by container {}, interface {}", holder.container_id, holder.interface_name)};
    evidence.insert(evidence.end(), verdict.evidence.begin(), verdict.evidence.end());
    return evidence;
  }

  void prove(Finding& finding) const {
    finding.proven = true;
    finding.before_boot = finding.reservation->written < boot_;
  }

  void look_at_nobodys(const Reservation& reservation, const Verdict& verdict) {
    if (!reservation.empty) {
      add(Kind::unreadable_file, reservation, {"it is no file, is too long, names no container or can't be read"},
          "see what it is; nobody will get the address");
      return;
    }
    std::vector<std::string> evidence{"the file is empty: it names no holder"};
    if (verdict.life == Verdict::Life::alive) {
      const auto where = audit_.life.configured.find(reservation.address);
      evidence.push_back(where == audit_.life.configured.end() ? "a living attachment of the cache has the address"
                                                               : "the address is configured on " + where->second);
      add(Kind::empty_file, reservation, std::move(evidence), "it is kept; end the container that has the address");
      return;
    }
    evidence.insert(evidence.end(), verdict.evidence.begin(), verdict.evidence.end());
    const bool gone = verdict.life == Verdict::Life::gone;
    auto& finding = add(Kind::empty_file, reservation, std::move(evidence), gone ? kRemove : "it is kept");
    if (gone) prove(finding);
  }

  void note_unseen() {
    if (audit_.life.unseen.empty()) return;
    findings_.push_back({Kind::not_all_seen, "this machine", audit_.life.unseen,
                         audit_.in_container
                             ? "look as root on the node itself"
                             : "look as root on the node itself; --in-container where this container is the node",
                         std::nullopt, false, false});
  }

  static constexpr const char* kRemove = "`croft host-local repair --apply` removes it";

  const Audit& audit_;
  WallTime boot_;
  std::multimap<std::string, const RuntimeAttachment*> by_container_;
  std::multimap<net::Address, const RuntimeAttachment*> by_address_;
  std::multimap<std::string, const UnreadableEntry*> unreadable_;  ///< by the ends of its name behind a dash
  std::map<std::string, std::string> living_;                      ///< containers with an address that is configured
  std::vector<Finding> findings_;
};

}  // namespace

std::string_view name_of(Kind kind) {
  constexpr std::array<std::string_view, 5> kNames = {"leak", "empty_file", "unreadable_file", "undecided",
                                                      "not_all_seen"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::vector<Finding> audit_host_local(const Audit& audit) { return Auditor(audit).run(); }

AttachmentsByHolder attachments_of(const std::vector<RuntimeAttachment>& attachments, const std::string& network) {
  AttachmentsByHolder found;
  for (const RuntimeAttachment& a : attachments) {
    if (a.owner.network == network) found[{a.owner.container_id, a.owner.interface_name}] = &a;
  }
  return found;
}

const RuntimeAttachment* find_attachment(const AttachmentsByHolder& attachments, const Holder& holder) {
  const auto found = attachments.lower_bound(holder);
  if (found == attachments.end() || found->first.container_id != holder.container_id) return nullptr;
  return holder.interface_name.empty() || found->first == holder ? found->second : nullptr;
}

std::vector<Finding> proven_by_both(const std::vector<Finding>& first, const std::vector<Finding>& second) {
  std::map<std::string, const Finding*> before;
  for (const Finding& finding : first) {
    if (finding.proven) before[finding.reservation->file] = &finding;
  }
  std::vector<Finding> both;
  for (const Finding& finding : second) {
    if (!finding.proven) continue;
    const auto there = before.find(finding.reservation->file);
    if (there != before.end() && there->second->reservation == finding.reservation) both.push_back(finding);
  }
  return both;
}

Result<void> check_share(const std::vector<Finding>& proven, std::size_t reservations, double share) {
  const auto counted = static_cast<std::size_t>(
      std::count_if(proven.begin(), proven.end(), [](const Finding& f) { return !f.before_boot; }));
  if (static_cast<double>(counted) <= share * static_cast<double>(reservations)) return {};
  return fail(ErrorCode::refused_for_safety,
              fmt::format("{} of {} reservations would go that were written since this boot, more than a share of {}; "
                          "nothing was removed",
                          counted, reservations, share));
}

std::string age_text(std::chrono::nanoseconds age) {
  using std::chrono::seconds;
  constexpr std::array<std::pair<std::int64_t, char>, 4> kUnits = {{{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}}};
  std::int64_t rest = std::max<std::int64_t>(0, std::chrono::duration_cast<seconds>(age).count());
  std::string text;
  for (const auto& [unit, letter] : kUnits) {
    if (text.empty() && rest < unit && unit > 1) continue;
    const bool is_second = !text.empty();
    if (!is_second || rest >= unit) text += fmt::format("{}{}", rest / unit, letter);
    if (is_second) break;
    rest %= unit;
  }
  return text;
}

}  // namespace croft::core::host_local
