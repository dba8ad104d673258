#include "hostlocal/commands/host_local_views.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/texts.h"
#include "base/time_text.h"
#include "cli/croft/json_output.h"

namespace croft::app {
namespace {

using core::AddressState;
using core::host_local::Range;
using core::host_local::RangeSet;
using HostLocalDirectory = core::host_local::Directory;
using HostLocalFinding = core::host_local::Finding;
using Json = nlohmann::ordered_json;
using net::U128;
using store::Reservation;

constexpr std::size_t kPictureHalvesMax = 512;  ///< four lines
constexpr std::size_t kForeignShownMax = 10;

// ---- what is shown

std::vector<std::string> notes_of(const Reservation& reservation, bool outside) {
  std::vector<std::string> notes;
  if (reservation.empty) notes.emplace_back("empty");
  if (!reservation.empty && !reservation.holder) notes.emplace_back("unreadable");
  if (reservation.holder && reservation.holder->interface_name.empty()) notes.emplace_back("no interface recorded");
  if (reservation.file != reservation.address.to_string()) notes.push_back("foreign name " + reservation.file);
  if (outside) notes.emplace_back("outside all ranges");
  return notes;
}

net::Count size_of(const RangeSet& set) {
  net::Count size;
  for (const Range& range : set.ranges()) {
    size += net::Count::of(range.addresses);
    if (range.contains(range.gateway)) size -= 1;
  }
  return size;
}

const HostLocalDirectory::Cursor* cursor_of(const HostLocalDirectory& directory, std::size_t set) {
  const auto found = std::find_if(directory.cursors.begin(), directory.cursors.end(),
                                  [&](const auto& cursor) { return cursor.set == set; });
  return found == directory.cursors.end() ? nullptr : &*found;
}

SetRow row_of(const HostLocalDirectory& directory, std::size_t place, const RangeSet& set) {
  SetRow row{place, &set, size_of(set), 0, std::nullopt};
  for (const Reservation& reservation : directory.reservations) {
    if (!reservation.empty && set.contains(reservation.address)) ++row.used;
  }
  if (const auto* cursor = cursor_of(directory, place)) row.cursor = *cursor;
  return row;
}

/// Without a configuration there is one row a cursor, and one at least: the count is of the whole directory.
std::vector<SetRow> rows_without_sets(const HostLocalDirectory& directory) {
  const auto used = std::count_if(directory.reservations.begin(), directory.reservations.end(),
                                  [](const Reservation& r) { return !r.empty; });
  std::vector<SetRow> rows;
  for (const auto& cursor : directory.cursors) {
    rows.push_back({cursor.set, nullptr, {}, static_cast<std::uint64_t>(used), cursor});
  }
  if (rows.empty()) rows.push_back({0, nullptr, {}, static_cast<std::uint64_t>(used), std::nullopt});
  return rows;
}

// ---- tables

std::string cursor_text(const SetRow& row) {
  if (!row.cursor) return "";
  return row.cursor->address ? row.cursor->address->to_string() : "unreadable";
}

std::string sets_table(const HostLocalList& list) {
  Table table({"SET", "RANGES", "USED", "FREE", "PERCENT", "CURSOR"});
  for (const SetRow& row : list.sets) {
    const bool known = row.ranges != nullptr;
    table.add({std::to_string(row.set), known ? row.ranges->to_string() : "", std::to_string(row.used),
               known ? row.free().to_string() : "", known ? fmt::format("{:.1f}%", row.percent()) : "",
               cursor_text(row)});
  }
  return table.to_string();
}

// ---- pictures

/// The addresses of a set in a row, cut into at most kPictureHalvesMax pieces of 2^shift each.
class SetPicture {
 public:
  explicit SetPicture(const RangeSet& set) : set_(set) {
    for (const Range& range : set.ranges()) {
      starts_.push_back(count_);
      count_ += range.addresses.last_offset() + 1;
    }
    while (U128(kPictureHalvesMax) < ((count_ - 1) >> shift_) + 1) ++shift_;
    states_.assign(static_cast<std::size_t>((((count_ - 1) >> shift_) + 1).lo), AddressState::free);
  }

  void mark(const net::Address& address, AddressState state) {
    const auto range = set_.find(address);
    if (!range) return;
    const U128 offset = address.value() - set_.ranges()[*range].addresses.first().value() + starts_[*range];
    states_[static_cast<std::size_t>((offset >> shift_).lo)] = state;
  }

  [[nodiscard]] std::string text(bool colour) const {
    return draw(states_, colour) + "  " +
           (is_exact() ? legend(colour)
                       : fmt::format("half a character stands for 2^{} addresses, filled when one is held\n", shift_));
  }
  [[nodiscard]] bool is_exact() const { return shift_ == 0; }

 private:
  const RangeSet& set_;
  std::vector<U128> starts_;
  U128 count_;
  int shift_ = 0;
  std::vector<AddressState> states_;
};

std::string picture_of(const SetRow& row, const std::vector<ReservationRow>& reservations, bool colour) {
  if (row.used == 0) return fmt::format("set {}: nothing is held\n", row.set);
  SetPicture picture(*row.ranges);
  for (const Range& range : row.ranges->ranges()) {
    if (picture.is_exact()) picture.mark(range.gateway, AddressState::reserved);
  }
  for (const ReservationRow& r : reservations) {
    if (!r.reservation.empty) picture.mark(r.reservation.address, AddressState::held);
  }
  return fmt::format("set {}:\n{}", row.set, picture.text(colour));
}

// ---- JSON

Json reservation_json(const ReservationRow& row) {
  const auto& holder = row.reservation.holder;
  const auto* cached = row.attachment;
  return {{"kind", "reservation"},
          {"address", row.reservation.address.to_string()},
          {"containerId", text_or_null(holder ? holder->container_id : "")},
          {"ifname", text_or_null(holder ? holder->interface_name : "")},
          {"pod", text_or_null(row.pod())},
          {"namespace", text_or_null(row.name_space())},
          {"netns", text_or_null(cached != nullptr ? cached->netns_path : "")},
          {"written", rfc3339_rounded_up(row.reservation.written)},
          {"ageSeconds", std::chrono::duration_cast<std::chrono::seconds>(row.age).count()},
          {"notes", row.notes}};
}

Json set_json(const SetRow& row, const std::string& source) {
  std::vector<std::string> ranges;
  if (row.ranges != nullptr) {
    for (const Range& range : row.ranges->ranges()) ranges.push_back(range.addresses.to_string());
  }
  const bool known = row.ranges != nullptr;
  return {{"kind", "set"},
          {"set", row.set},
          {"ranges", known ? Json(ranges) : Json()},
          {"size", known ? count_json(row.size) : Json()},
          {"used", row.used},
          {"free", known ? count_json(row.free()) : Json()},
          {"percent", known ? Json(row.percent()) : Json()},
          {"cursor", row.cursor && row.cursor->address ? Json(row.cursor->address->to_string()) : Json()},
          {"source", text_or_null(source)}};
}

}  // namespace

double SetRow::percent() const {
  const double whole = size.as_double();
  return whole == 0 ? 100 : static_cast<double>(used) * 100 / whole;
}

HostLocalList list_of(const HostLocalDirectory& directory, const std::vector<core::RuntimeAttachment>& attachments,
                      const std::string& network, const std::vector<RangeSet>& sets, WallTime now) {
  HostLocalList list;
  const auto by_holder = core::host_local::attachments_of(attachments, network);
  for (const Reservation& r : directory.reservations) {
    const bool inside = std::any_of(sets.begin(), sets.end(), [&](const RangeSet& s) { return s.contains(r.address); });
    list.reservations.push_back({r, r.holder ? core::host_local::find_attachment(by_holder, *r.holder) : nullptr,
                                 now - r.written, notes_of(r, !sets.empty() && !inside)});
  }
  for (std::size_t i = 0; i < sets.size(); ++i) list.sets.push_back(row_of(directory, i, sets[i]));
  if (sets.empty()) list.sets = rows_without_sets(directory);
  list.foreign = directory.foreign;
  return list;
}

std::string ReservationRow::pod() const { return attachment != nullptr ? attachment->pod.name : ""; }
std::string ReservationRow::name_space() const { return attachment != nullptr ? attachment->pod.namespace_name : ""; }

Table reservation_table(const HostLocalList& list, const ReservationColumns& columns) {
  std::vector<std::string> headings = {"ADDRESS", "CONTAINER", "IFNAME", "POD"};
  if (columns.age) headings.emplace_back("AGE");
  headings.emplace_back("NOTES");
  Table table(std::move(headings), {"WRITTEN", "NETNS"}, columns.wide);
  for (const ReservationRow& row : list.reservations) {
    const auto& holder = row.reservation.holder;
    // The first 13 characters tell containers apart, as runtimes print them.
    std::vector<std::string> cells = {
        row.reservation.address.to_string(),
        holder ? holder->container_id.substr(0, columns.wide ? std::string::npos : 13) : "",
        holder ? holder->interface_name : "", row.pod().empty() ? "" : row.name_space() + "/" + row.pod()};
    if (columns.age) cells.push_back(core::host_local::age_text(row.age));
    cells.push_back(joined(row.notes));
    cells.push_back(rfc3339_rounded_up(row.reservation.written));
    cells.push_back(row.attachment != nullptr ? row.attachment->netns_path : "");
    table.add(std::move(cells));
  }
  return table;
}

std::string sets_text(const HostLocalList& list, bool colour) {
  std::string text = sets_table(list);
  text += list.source.empty()
              ? "no configuration of this network was found: the ranges are not known; --config names it\n"
              : fmt::format("ranges of {}\n", list.source);
  for (const SetRow& row : list.sets) {
    if (row.ranges != nullptr) text += "\n" + picture_of(row, list.reservations, colour);
  }
  if (list.foreign.empty()) return text;
  const std::size_t shown = std::min(kForeignShownMax, list.foreign.size());
  text += "\nother files: " + joined({list.foreign.begin(), list.foreign.begin() + static_cast<std::ptrdiff_t>(shown)});
  return text + (shown < list.foreign.size() ? fmt::format(" and {} more\n", list.foreign.size() - shown) : "\n");
}

Data json_of(const HostLocalList& list) {
  std::vector<Json> objects;
  for (const ReservationRow& row : list.reservations) objects.push_back(reservation_json(row));
  for (const SetRow& row : list.sets) objects.push_back(set_json(row, list.source));
  return Data(objects);
}

std::string text_of(const std::vector<HostLocalFinding>& findings) {
  std::string text;
  for (const HostLocalFinding& finding : findings) {
    text += fmt::format("{}: {}\n", core::host_local::name_of(finding.kind), finding.subject);
    for (const std::string& evidence : finding.evidence) text += "  " + evidence + "\n";
    if (!finding.remedy.empty()) text += "  remedy: " + finding.remedy + "\n";
  }
  return text;
}

Data json_of(const std::vector<HostLocalFinding>& findings) {
  return Data(array_json(findings, [](const HostLocalFinding& finding) -> Json {
    const auto& holder = finding.reservation ? finding.reservation->holder : std::nullopt;
    return {{"finding", core::host_local::name_of(finding.kind)},
            {"subject", finding.subject},
            {"address", finding.reservation ? Json(finding.reservation->address.to_string()) : Json()},
            {"containerId", text_or_null(holder ? holder->container_id : "")},
            {"ifname", text_or_null(holder ? holder->interface_name : "")},
            {"proven", finding.proven},
            {"beforeBoot", finding.before_boot},
            {"evidence", finding.evidence},
            {"remedy", text_or_null(finding.remedy)}};
  }));
}

}  // namespace croft::app
