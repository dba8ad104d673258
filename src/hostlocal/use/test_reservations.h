#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hostlocal/reservations.h"

namespace croft::engine {

/// A host-local directory in memory, one for many openings, with faults on demand.
struct ReservationsData {
  std::map<net::Address, store::Reservation> files;
  std::map<std::size_t, net::Address> cursors;
  std::set<net::Address> taken_behind_our_back;  ///< nobody sees them until they are reserved
  std::optional<Error> unreadable;
  std::optional<Error> cursor_error, reserve_error, release_error, list_error;
  int settled = 0;

  void put(const net::Address& address, std::optional<store::Holder> holder, WallTime written = {}) {
    files[address] = {address, std::move(holder), written, false, address.to_string()};
  }
};

class FakeReservations final : public store::Reservations {
 public:
  explicit FakeReservations(ReservationsData& data) : data_(data) {}

  [[nodiscard]] Result<std::vector<store::Reservation>> held_by(const store::Holder& holder, store::Care) override {
    std::vector<store::Reservation> held;
    for (const auto& [address, reservation] : data_.files) {
      if (reservation.holder == holder) held.push_back(reservation);
    }
    return held;
  }
  [[nodiscard]] Result<std::optional<net::Address>> next_free(const net::AddressRange& range) override {
    for (net::Address address = range.first();; address = *address.next()) {
      if (!data_.files.contains(address)) return std::optional(address);
      if (address == range.last()) return std::optional<net::Address>();
    }
  }
  [[nodiscard]] Result<bool> is_taken(const net::Address& address) override { return data_.files.contains(address); }
  [[nodiscard]] Result<std::optional<net::Address>> cursor(std::size_t set) override {
    if (data_.cursor_error) return fail(*data_.cursor_error);
    const auto found = data_.cursors.find(set);
    return found == data_.cursors.end() ? std::nullopt : std::optional(found->second);
  }
  [[nodiscard]] Result<std::optional<store::Reservation>> look_up(const net::Address& address) override {
    const auto found = data_.files.find(address);
    return found == data_.files.end() ? std::nullopt : std::optional(found->second);
  }
  [[nodiscard]] Result<std::vector<store::Reservation>> list() override {
    if (data_.list_error) return fail(*data_.list_error);
    std::vector<store::Reservation> all;
    for (const auto& [address, reservation] : data_.files) all.push_back(reservation);
    return all;
  }
  [[nodiscard]] std::optional<Error> unreadable() const override { return data_.unreadable; }
  [[nodiscard]] Result<store::Reserved> reserve(const store::Holder& holder,
                                                std::span<const store::NewReservation> wanted) override {
    if (data_.reserve_error) return fail(*data_.reserve_error);
    for (const store::NewReservation& reservation : wanted) {
      if (data_.taken_behind_our_back.erase(reservation.address) == 0) continue;
      data_.put(reservation.address, store::Holder{"stranger", "eth0"});
      return store::Reserved::taken;
    }
    for (const store::NewReservation& reservation : wanted) data_.put(reservation.address, holder);
    return move_cursors(wanted) ? store::Reserved::done : store::Reserved::taken;
  }
  [[nodiscard]] Result<void> move_cursors(std::span<const store::NewReservation> to) override {
    for (const store::NewReservation& cursor : to) data_.cursors[cursor.set] = cursor.address;
    return {};
  }
  [[nodiscard]] Result<void> release(std::span<const store::Reservation> reservations) override {
    if (data_.release_error) return fail(*data_.release_error);
    for (const store::Reservation& reservation : reservations) data_.files.erase(reservation.address);
    return {};
  }
  [[nodiscard]] Result<void> settle() override {
    ++data_.settled;
    return {};
  }

 private:
  ReservationsData& data_;
};

}  // namespace croft::engine
