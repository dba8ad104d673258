#include "hostlocal/directory/open_reservations.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/assert.h"
#include "hostlocal/directory/reservation_files.h"
#include "hostlocal/directory/view_upkeep.h"
#include "hostlocal/format/files.h"
#include "os/directory.h"
#include "os/file_lock.h"

namespace croft::store::hostlocal {
namespace {

namespace files = wire::host_local;

constexpr unsigned kLockMode = 0750;

std::string directory_path(const std::string& data_dir, const std::string& network) {
  return data_dir == "/" ? data_dir + network : data_dir + "/" + network;
}

/// The content a holder is found by.
std::string key_of(const Holder& holder, Match match) {
  const Holder sought = match == Match::exact ? holder : Holder{holder.container_id, ""};
  return std::string(files::holder_key(files::print_holder(sought)));
}

/// The contract's operations: each asks the view where to look, believes only the files, and has the view follow what
/// it changed.
class DirectoryReservations final : public Reservations {
 public:
  DirectoryReservations(const std::string& data_dir, const std::string& network, os::Directory directory,
                        const Clock& clock)
      : clock_(clock),
        files_(std::move(directory), clock),
        upkeep_(data_dir, network, files_, clock),
        lock_(files_.directory().path_of(files::kLockFile), {.mode = kLockMode, .go_errors = true}) {}
  DirectoryReservations(const DirectoryReservations&) = delete;
  DirectoryReservations& operator=(const DirectoryReservations&) = delete;
  /// The index is brought up to date while the lock is still held.
  ~DirectoryReservations() override {
    if (lock_.is_held()) upkeep_.publish();
  }

  /// The first to lock a directory sees to it that its name is durable: whoever made it may have died before that.
  [[nodiscard]] Result<void> lock(std::chrono::nanoseconds wait_max) {
    TRY(const bool used_before, directory().exists(files::kLockFile.data()));
    if (!used_before) TRY_VOID(directory().sync_name());
    return lock_.lock_within(clock_, wait_max);
  }
  /// False when somebody removed or replaced the whole directory before it was locked.
  [[nodiscard]] Result<bool> is_at_its_path() const {
    TRY(const auto there, os::file_status(directory().path()));
    TRY(const os::DirectoryStamp ours, directory().stamp());
    return there && there->id == ours.id;
  }

  [[nodiscard]] Result<std::vector<Reservation>> held_by(const Holder& holder, Match match, Care care) override;
  [[nodiscard]] Result<std::optional<net::Address>> next_free(const net::AddressRange& range) override;
  [[nodiscard]] Result<bool> is_taken(const net::Address& address) override;
  [[nodiscard]] Result<std::optional<net::Address>> cursor(std::size_t set) override { return files_.cursor(set); }
  [[nodiscard]] Result<std::optional<Reservation>> look_up(const net::Address& address) override;
  [[nodiscard]] Result<std::vector<Reservation>> list() override;
  [[nodiscard]] std::optional<Error> unreadable() const override { return upkeep_.unreadable(); }
  [[nodiscard]] Result<Reserved> reserve(const Holder& holder, std::span<const NewReservation> wanted) override;
  [[nodiscard]] Result<void> move_cursors(std::span<const NewReservation> to) override;
  [[nodiscard]] Result<void> release(std::span<const Reservation> reservations) override;
  [[nodiscard]] Result<void> settle() override { return directory().sync(); }

 private:
  [[nodiscard]] const os::Directory& directory() const { return files_.directory(); }

  /// The reservations that the view finds, read from the files; nothing when the index turns out to be wrong.
  [[nodiscard]] Result<std::optional<std::vector<Reservation>>> find_in_files(View& view, const std::string& key);
  [[nodiscard]] Result<Reserved> undo(std::span<const NewReservation> placed, Result<Reserved> outcome);

  const Clock& clock_;
  const ReservationFiles files_;
  ViewUpkeep upkeep_;
  os::FileLock lock_;
};

// ---------------------------------------------------------------- reading

Result<std::optional<std::vector<Reservation>>> DirectoryReservations::find_in_files(View& view,
                                                                                     const std::string& key) {
  std::vector<Reservation> found;
  const std::uint32_t hash = content_hash(key);
  for (const net::Address& address : view.with_hash(hash)) {
    const std::string name = files::file_name(address);
    TRY(const auto file, files_.read(name));
    const std::string_view there = file && file->regular ? files::holder_key(file->content) : std::string_view();
    if (!view.is_first_hand() && content_hash(there) != hash) return std::optional<std::vector<Reservation>>();
    if (there != key) continue;
    TRY(Reservation reservation, files_.reservation_of(address, name, *file));
    found.push_back(std::move(reservation));
  }
  if (view.failed()) return std::optional<std::vector<Reservation>>();
  for (const ViewUpkeep::OddFile& odd : upkeep_.odd_files()) {
    TRY(const auto file, files_.read(odd.name));
    if (!file || !file->regular || files::holder_key(file->content) != key) continue;
    TRY(Reservation reservation, files_.reservation_of(odd.address, odd.name, *file));
    found.push_back(std::move(reservation));
  }
  return std::optional(std::move(found));
}

Result<std::vector<Reservation>> DirectoryReservations::held_by(const Holder& holder, Match match, Care care) {
  const std::string key = key_of(holder, match);
  TRY(auto* view, upkeep_.need_view());
  TRY(auto found, find_in_files(*view, key));
  const bool believed = found && (!found->empty() || care == Care::quick || view->is_first_hand() ||
                                  view->reservation_count() > kThoroughCountMax);
  if (believed) return *std::move(found);
  upkeep_.forget();
  TRY(view, upkeep_.need_view());
  TRY(found, find_in_files(*view, key));
  return std::move(found).value_or(std::vector<Reservation>());
}

Result<std::optional<net::Address>> DirectoryReservations::next_free(const net::AddressRange& range) {
  TRY(auto* view, upkeep_.need_view());
  auto free = view->next_free(range.first(), range.last());
  if (!view->failed()) return free;
  upkeep_.forget();
  TRY(view, upkeep_.need_view());
  return view->next_free(range.first(), range.last());
}

Result<bool> DirectoryReservations::is_taken(const net::Address& address) {
  const std::string name = files::file_name(address);
  TRY(const bool exists, directory().exists(name.c_str()));
  if (!exists) return false;
  const auto file = files_.read(name);
  return !file || !*file || !files_.is_takeable(name, **file);
}

Result<std::optional<Reservation>> DirectoryReservations::look_up(const net::Address& address) {
  const std::string name = files::file_name(address);
  TRY(const auto file, files_.read(name));
  if (!file) return std::optional<Reservation>();
  TRY(Reservation reservation, files_.reservation_of(address, name, *file));
  return std::optional(std::move(reservation));
}

Result<std::vector<Reservation>> DirectoryReservations::list() {
  std::vector<Reservation> all;
  std::optional<Error> error;
  std::optional<Error> unreadable;
  const auto listed = directory().for_each_name([&](const char* name) {
    const auto address = files::address_of_file(name);
    if (!address) return true;
    const auto file = files_.read_own(name);
    if (!file && !unreadable) unreadable = file.error();
    if (file && !*file) return true;
    auto reservation = files_.reservation_of(*address, name, file ? **file : os::SmallFile{false, false, {}});
    if (!reservation) {
      error = std::move(reservation).error();
      return false;
    }
    all.push_back(*std::move(reservation));
    return true;
  });
  upkeep_.set_unreadable(std::move(unreadable));
  if (!listed) return fail(listed.error());
  if (error) return fail(*error);
  std::sort(all.begin(), all.end(), [](const Reservation& a, const Reservation& b) {
    return std::tie(a.address, a.file) < std::tie(b.address, b.file);
  });
  return all;
}

// ---------------------------------------------------------------- writing

Result<void> DirectoryReservations::move_cursors(std::span<const NewReservation> to) {
  for (const NewReservation& cursor : to) TRY_VOID(files_.move_cursor(cursor));
  return {};
}

Result<Reserved> DirectoryReservations::undo(std::span<const NewReservation> placed, Result<Reserved> outcome) {
  std::string left;
  for (const NewReservation& reservation : placed) {
    const auto removed = directory().remove(files::file_name(reservation.address).c_str());
    if (!removed) left += "; " + removed.error().message;
  }
  if (!placed.empty()) {
    const auto synced = directory().sync();
    if (!synced) left += "; " + synced.error().message;
  }
  upkeep_.forget();
  if (left.empty()) return outcome;
  Error error = outcome ? Error{ErrorCode::internal, "an address was taken meanwhile", {}} : outcome.error();
  error.message += left;
  return fail(std::move(error));
}

Result<Reserved> DirectoryReservations::reserve(const Holder& holder, std::span<const NewReservation> wanted) {
  upkeep_.open_index();
  const std::string content = files::print_holder(holder);
  std::vector<os::DraftFile> drafts;
  std::size_t done = 0;
  const auto failed = [&](const Error& error, const NewReservation& at) {
    return undo(wanted.first(done),
                fail(at.set ? error.in(fmt::format("failed to allocate for range {}", *at.set)) : error));
  };
  for (const NewReservation& reservation : wanted) {
    auto draft = files_.prepare(reservation, content, drafts.size());
    if (!draft) return failed(draft.error(), reservation);
    drafts.push_back(*std::move(draft));
  }
  upkeep_.expect_unchanged();
  for (; done < wanted.size(); ++done) {
    auto placed = files_.place(drafts[done], wanted[done]);
    if (!placed) return failed(placed.error(), wanted[done]);
    if (*placed == Reserved::taken) return undo(wanted.first(done), Reserved::taken);
  }
  upkeep_.mark_changed();
  if (const auto synced = directory().sync(); !synced) return undo(wanted, fail(synced.error()));
  View* view = upkeep_.view();
  if (view == nullptr) return Reserved::done;
  const std::uint32_t hash = content_hash(files::holder_key(content));
  for (const NewReservation& reservation : wanted) view->add(reservation.address, hash);
  return Reserved::done;
}

Result<void> DirectoryReservations::release(std::span<const Reservation> reservations) {
  upkeep_.open_index();
  std::optional<Error> error;
  const auto note = [&error](const Error& found) {
    if (!error) error = found;
  };
  std::vector<std::pair<const Reservation*, std::uint32_t>> ready;
  for (const Reservation& reservation : reservations) {
    const auto file = files_.read(reservation.file);
    if (!file) note(file.error());
    if (!file || !*file) continue;
    const bool same = reservation.empty ? is_empty_file(**file) : holder_of(**file) == reservation.holder;
    if (same) ready.emplace_back(&reservation, content_hash(files::holder_key((*file)->content)));
  }
  upkeep_.expect_unchanged();
  for (auto& [reservation, hash] : ready) {
    const auto removed = directory().remove(reservation->file.c_str());
    if (!removed) note(removed.error());
    if (!removed) reservation = nullptr;
  }
  if (!ready.empty()) upkeep_.mark_changed();
  if (const auto synced = directory().sync(); !synced) note(synced.error());
  if (error) {
    upkeep_.forget();
    return fail(*error);
  }
  View* view = upkeep_.view();
  if (view == nullptr) return {};
  for (const auto& [reservation, hash] : ready) {
    const bool canonical = reservation->file == files::file_name(reservation->address);
    if (reservation->holder && canonical) view->remove(reservation->address, hash);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Reservations>> open_reservations(const std::string& data_dir, const std::string& network,
                                                        OpenMode mode, const Clock& clock,
                                                        std::chrono::nanoseconds lock_wait) {
  CROFT_ASSERT(!network.empty() && network.front() != '.' && network.find('/') == std::string::npos);
  const std::string path = directory_path(data_dir, network);
  constexpr int kReopenMax = 100;
  for (int attempt = 0; attempt < kReopenMax; ++attempt) {
    TRY(os::Directory directory, mode == OpenMode::create ? os::Directory::make(path) : os::Directory::open(path));
    auto reservations = std::make_unique<DirectoryReservations>(data_dir, network, std::move(directory), clock);
    const auto locked = reservations->lock(lock_wait);
    const bool gone = !locked && locked.error().code == ErrorCode::not_found;
    if (!locked && !gone) return fail(locked.error());
    if (gone) continue;
    TRY(const bool current, reservations->is_at_its_path());
    if (current) return std::unique_ptr<Reservations>(std::move(reservations));
  }
  return fail(ErrorCode::unavailable, fmt::format("{} is removed again and again; stop what removes it", path));
}

Result<void> check_directory(const std::string& data_dir, const std::string& network) {
  TRY(const os::Directory directory, os::Directory::make(directory_path(data_dir, network)));
  return directory.check_writable();
}

}  // namespace croft::store::hostlocal
