#include "store/hostlocal/open_reservations.h"

#include <algorithm>
#include <cerrno>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "os/directory.h"
#include "os/file_lock.h"
#include "store/hostlocal/index.h"
#include "store/hostlocal/scanned_view.h"
#include "wire/host_local_files.h"

namespace croft::store::hostlocal {
namespace {

namespace files = wire::host_local;

/// A content is a container ID, a line end and an interface name; nothing an environment variable can carry is longer.
constexpr std::size_t kContentBytesMax = std::size_t{132} << 10;
constexpr std::size_t kCursorBytesMax = 256;
/// Where a content is written before it gets its name. One is enough: only who has the lock writes.
constexpr const char* kNewFile = ".croft.new";
constexpr unsigned kFileMode = 0600;
constexpr unsigned kLockMode = 0750;

std::string directory_path(const std::string& data_dir, const std::string& network) {
  return data_dir.ends_with('/') ? data_dir + network : data_dir + "/" + network;
}

/// The content a holder is found by.
std::string key_of(const Holder& holder, Match match) {
  const Holder sought = match == Match::exact ? holder : Holder{holder.container_id, ""};
  return std::string(files::holder_key(files::print_holder(sought)));
}

bool is_empty_file(const os::SmallFile& file) { return file.regular && file.content.empty(); }

class DirectoryReservations final : public Reservations {
 public:
  DirectoryReservations(std::string data_dir, std::string network, os::Directory directory, const Clock& clock)
      : data_dir_(std::move(data_dir)),
        network_(std::move(network)),
        directory_(std::move(directory)),
        clock_(clock),
        lock_(directory_.path_of(files::kLockFile), {.mode = kLockMode, .read_only = true}) {}
  DirectoryReservations(const DirectoryReservations&) = delete;
  DirectoryReservations& operator=(const DirectoryReservations&) = delete;
  /// The index is brought up to date while the lock is still held.
  ~DirectoryReservations() override { publish(); }

  [[nodiscard]] Result<void> lock(std::chrono::nanoseconds wait_max) { return lock_.lock_within(clock_, wait_max); }
  /// False when somebody removed or replaced the whole directory before it was locked.
  [[nodiscard]] Result<bool> is_at_its_path() const {
    TRY(const auto there, os::file_status(directory_.path()));
    TRY(const os::DirectoryStamp ours, directory_.stamp());
    return there && there->id == ours.id;
  }

  [[nodiscard]] Result<std::vector<Reservation>> held_by(const Holder& holder, Match match, Care care) override;
  [[nodiscard]] Result<std::optional<net::Address>> next_free(const net::AddressRange& range) override;
  [[nodiscard]] Result<bool> is_taken(const net::Address& address) override;
  [[nodiscard]] Result<std::optional<net::Address>> cursor(std::size_t set) override;
  [[nodiscard]] Result<std::optional<Reservation>> look_up(const net::Address& address) override;
  [[nodiscard]] Result<std::vector<Reservation>> list() override;
  [[nodiscard]] std::optional<Error> unreadable() const override { return unreadable_; }
  [[nodiscard]] Result<Reserved> reserve(const Holder& holder, std::span<const NewReservation> wanted) override;
  [[nodiscard]] Result<void> move_cursors(std::span<const NewReservation> to) override;
  [[nodiscard]] Result<void> release(std::span<const Reservation> reservations) override;
  [[nodiscard]] Result<void> settle() override { return directory_.sync(); }

 private:
  /// A file of the directory that has an address for a name, and is not one of the names an index can stand for.
  struct OddFile {
    net::Address address;
    std::string name;
  };

  [[nodiscard]] Result<Reservation> read_reservation(const net::Address& address, const std::string& name,
                                                     const os::SmallFile& file) const;
  [[nodiscard]] Result<void> need_view();
  void open_index();
  [[nodiscard]] Result<void> read_all();
  [[nodiscard]] Result<std::unique_ptr<ScannedView>> read_once();
  void read_into(ScannedView& view, const net::Address& address, const char* name);
  void forget();

  /// What the view finds, read from the files; nothing when the index turns out to be wrong.
  [[nodiscard]] Result<std::optional<std::vector<Reservation>>> find_in_files(const std::string& key);

  [[nodiscard]] Result<Reserved> place(const NewReservation& wanted, const std::string& content);
  [[nodiscard]] Result<Reserved> rename_into_place(const std::string& name);
  [[nodiscard]] Result<Reserved> undo(std::span<const NewReservation> placed, Result<Reserved> outcome);
  [[nodiscard]] Result<void> move_cursor(const NewReservation& to);

  void publish();
  [[nodiscard]] Result<void> publish_changes(IndexView& view);
  [[nodiscard]] Result<void> publish_new(const ScannedView& view);
  [[nodiscard]] Result<os::DirectoryStamp> mark_directory();

  std::string data_dir_;
  std::string network_;
  os::Directory directory_;
  const Clock& clock_;
  os::FileLock lock_;

  // At most one of these two. An index is not opened again once it was found wrong.
  std::unique_ptr<IndexView> index_;
  std::unique_ptr<ScannedView> scanned_;
  bool index_is_wrong_ = false;
  std::optional<os::DirectoryStamp> scanned_at_;  ///< the stamp before and after all files were read
  std::vector<OddFile> odd_files_;                ///< with scanned_
  std::optional<Error> unreadable_;
  bool changed_ = false;

  [[nodiscard]] View* view() { return index_ ? static_cast<View*>(index_.get()) : scanned_.get(); }
};

// ---------------------------------------------------------------- the view

void DirectoryReservations::forget() {
  index_.reset();
  scanned_.reset();
  scanned_at_.reset();
  odd_files_.clear();
  index_is_wrong_ = true;
}

void DirectoryReservations::open_index() {
  if (index_ || scanned_ || index_is_wrong_) return;
  const auto stamp = directory_.stamp();
  if (stamp) index_ = IndexView::open(index_path(data_dir_, network_), *stamp, clock_);
}

Result<void> DirectoryReservations::need_view() {
  open_index();
  if (index_ && index_->failed()) forget();
  if (index_ || scanned_) return {};
  return read_all();
}

/// Someone who does not ask for the lock may change the directory while it is read: then it is read again.
Result<void> DirectoryReservations::read_all() {
  constexpr int kRoundsMax = 3;
  for (int round = 0; round < kRoundsMax; ++round) {
    odd_files_.clear();
    unreadable_.reset();
    TRY(const os::DirectoryStamp before, directory_.stamp());
    TRY(scanned_, read_once());
    TRY(const os::DirectoryStamp after, directory_.stamp());
    scanned_at_ = before == after ? std::optional(after) : std::nullopt;
    if (scanned_at_) return {};
  }
  return {};
}

Result<std::unique_ptr<ScannedView>> DirectoryReservations::read_once() {
  auto view = std::make_unique<ScannedView>();
  // The names are listed once more to read the files, unless there are so few that they can be kept.
  std::vector<std::pair<net::Address, std::string>> few;
  bool all_kept = true;
  TRY_VOID(directory_.for_each_name([&](const char* name) {
    const auto address = files::address_of_file(name);
    if (!address) return true;
    view->see_address(*address);
    all_kept = all_kept && few.size() < kIndexedCountMin;
    if (all_kept) few.emplace_back(*address, name);
    return true;
  }));
  if (all_kept) {
    for (const auto& [address, name] : few) read_into(*view, address, name.c_str());
    return view;
  }
  TRY_VOID(directory_.for_each_name([&](const char* name) {
    const auto address = files::address_of_file(name);
    if (address) read_into(*view, *address, name);
    return true;
  }));
  return view;
}

/// A file that cannot be read is taken, by nobody we know.
void DirectoryReservations::read_into(ScannedView& view, const net::Address& address, const char* name) {
  const auto file = directory_.read(name, kContentBytesMax);
  const bool odd = files::file_name(address) != name;
  if (odd) {
    odd_files_.push_back({address, name});
    view.mark_unfit();
  }
  if (!file && !unreadable_) unreadable_ = file.error();
  if (!file || odd) return;
  if (!*file || is_empty_file(**file)) {
    view.see_nothing(address);
  } else if ((*file)->regular && !(*file)->cut) {
    view.see_content(address, content_hash(files::holder_key((*file)->content)));
  }
}

// ---------------------------------------------------------------- reading

Result<Reservation> DirectoryReservations::read_reservation(const net::Address& address, const std::string& name,
                                                            const os::SmallFile& file) const {
  Reservation reservation;
  reservation.address = address;
  reservation.file = name;
  reservation.empty = is_empty_file(file);
  if (file.regular && !file.cut) reservation.holder = files::parse_holder(file.content);
  TRY(const auto written, directory_.modified(name.c_str()));
  reservation.written = written.value_or(WallTime());
  return reservation;
}

Result<std::optional<std::vector<Reservation>>> DirectoryReservations::find_in_files(const std::string& key) {
  std::vector<Reservation> found;
  const std::uint32_t hash = content_hash(key);
  for (const net::Address& address : view()->with_hash(hash)) {
    const std::string name = files::file_name(address);
    TRY(const auto file, directory_.read(name.c_str(), kContentBytesMax));
    const std::string_view there = file && file->regular ? files::holder_key(file->content) : std::string_view();
    if (!view()->is_first_hand() && content_hash(there) != hash) return std::optional<std::vector<Reservation>>();
    if (there != key) continue;
    TRY(Reservation reservation, read_reservation(address, name, *file));
    found.push_back(std::move(reservation));
  }
  if (view()->failed()) return std::optional<std::vector<Reservation>>();
  for (const OddFile& odd : odd_files_) {
    TRY(const auto file, directory_.read(odd.name.c_str(), kContentBytesMax));
    if (!file || !file->regular || files::holder_key(file->content) != key) continue;
    TRY(Reservation reservation, read_reservation(odd.address, odd.name, *file));
    found.push_back(std::move(reservation));
  }
  return std::optional(std::move(found));
}

Result<std::vector<Reservation>> DirectoryReservations::held_by(const Holder& holder, Match match, Care care) {
  const std::string key = key_of(holder, match);
  TRY_VOID(need_view());
  TRY(auto found, find_in_files(key));
  const bool believed = found && (!found->empty() || care == Care::quick || view()->is_first_hand() ||
                                  view()->reservation_count() > kThoroughCountMax);
  if (believed) return *std::move(found);
  forget();
  TRY_VOID(need_view());
  TRY(found, find_in_files(key));
  return std::move(found).value_or(std::vector<Reservation>());
}

Result<std::optional<net::Address>> DirectoryReservations::next_free(const net::AddressRange& range) {
  TRY_VOID(need_view());
  auto free = view()->next_free(range.first(), range.last());
  if (!view()->failed()) return free;
  forget();
  TRY_VOID(need_view());
  return view()->next_free(range.first(), range.last());
}

Result<bool> DirectoryReservations::is_taken(const net::Address& address) {
  const std::string name = files::file_name(address);
  TRY(const bool exists, directory_.exists(name.c_str()));
  if (!exists) return false;
  const auto file = directory_.read(name.c_str(), kContentBytesMax);
  return !file || !*file || !is_empty_file(**file);
}

Result<std::optional<net::Address>> DirectoryReservations::cursor(std::size_t set) {
  TRY(const auto file, directory_.read(files::cursor_file_name(set).c_str(), kCursorBytesMax));
  if (!file) return std::optional<net::Address>();
  if (!file->regular) {
    return fail(os::path_error("read", directory_.path_of(files::cursor_file_name(set)), EISDIR));
  }
  return files::parse_cursor(file->content);
}

Result<std::optional<Reservation>> DirectoryReservations::look_up(const net::Address& address) {
  const std::string name = files::file_name(address);
  TRY(const auto file, directory_.read(name.c_str(), kContentBytesMax));
  if (!file) return std::optional<Reservation>();
  TRY(Reservation reservation, read_reservation(address, name, *file));
  return std::optional(std::move(reservation));
}

Result<std::vector<Reservation>> DirectoryReservations::list() {
  std::vector<Reservation> all;
  std::optional<Error> error;
  unreadable_.reset();
  TRY_VOID(directory_.for_each_name([&](const char* name) {
    const auto address = files::address_of_file(name);
    if (!address) return true;
    const auto file = directory_.read(name, kContentBytesMax);
    if (!file && !unreadable_) unreadable_ = file.error();
    if (file && !*file) return true;
    auto reservation = read_reservation(*address, name, file ? **file : os::SmallFile{false, false, {}});
    if (reservation) all.push_back(*std::move(reservation));
    if (!reservation) error = std::move(reservation).error();
    return !error;
  }));
  if (error) return fail(*error);
  std::sort(all.begin(), all.end(), [](const Reservation& a, const Reservation& b) {
    return std::tie(a.address, a.file) < std::tie(b.address, b.file);
  });
  return all;
}

// ---------------------------------------------------------------- writing

Result<void> DirectoryReservations::move_cursor(const NewReservation& to) {
  if (!to.set) return {};
  return directory_.overwrite(files::cursor_file_name(*to.set).c_str(), to.address.to_string(), kFileMode);
}

Result<void> DirectoryReservations::move_cursors(std::span<const NewReservation> to) {
  for (const NewReservation& cursor : to) TRY_VOID(move_cursor(cursor));
  return {};
}

Result<Reserved> DirectoryReservations::rename_into_place(const std::string& name) {
  TRY(const bool placed, directory_.rename_if_free(kNewFile, name.c_str()));
  if (placed) return Reserved::done;
  TRY(const auto there, directory_.read(name.c_str(), kContentBytesMax));
  if (!there || !is_empty_file(*there)) return Reserved::taken;
  TRY_VOID(directory_.rename_over(kNewFile, name.c_str()));
  return Reserved::done;
}

/// The cursor moves before the reservation is in place: when it can't be moved, nothing has to be taken back.
Result<Reserved> DirectoryReservations::place(const NewReservation& wanted, const std::string& content) {
  TRY_VOID(directory_.create_synced(kNewFile, content, kFileMode));
  auto placed = Result<Reserved>(Reserved::taken);
  if (const auto moved = move_cursor(wanted); !moved) {
    placed = fail(moved.error());
  } else {
    placed = rename_into_place(files::file_name(wanted.address));
  }
  if (placed && *placed == Reserved::done) return placed;
  static_cast<void>(directory_.remove(kNewFile));  // the next ADD would remove it too
  return placed;
}

Result<Reserved> DirectoryReservations::undo(std::span<const NewReservation> placed, Result<Reserved> outcome) {
  std::string left;
  for (const NewReservation& reservation : placed) {
    const auto removed = directory_.remove(files::file_name(reservation.address).c_str());
    if (!removed) left += "; " + removed.error().message;
  }
  if (!placed.empty()) {
    const auto synced = directory_.sync();
    if (!synced) left += "; " + synced.error().message;
  }
  forget();
  if (left.empty()) return outcome;
  Error error = outcome ? Error{ErrorCode::internal, "an address was taken meanwhile", {}} : outcome.error();
  error.message += left;
  return fail(std::move(error));
}

Result<Reserved> DirectoryReservations::reserve(const Holder& holder, std::span<const NewReservation> wanted) {
  open_index();
  const std::string content = files::print_holder(holder);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    auto placed = place(wanted[i], content);
    if (!placed && wanted[i].set) {
      placed = fail(placed.error().in(fmt::format("failed to allocate for range {}", *wanted[i].set)));
    }
    if (!placed || *placed == Reserved::taken) return undo(wanted.first(i), std::move(placed));
  }
  if (const auto synced = directory_.sync(); !synced) return undo(wanted, fail(synced.error()));
  changed_ = true;
  if (view() == nullptr) return Reserved::done;
  const std::uint32_t hash = content_hash(files::holder_key(content));
  for (const NewReservation& reservation : wanted) view()->add(reservation.address, hash);
  return Reserved::done;
}

Result<void> DirectoryReservations::release(std::span<const Reservation> reservations) {
  open_index();
  std::optional<Error> error;
  for (const Reservation& reservation : reservations) {
    const auto file = directory_.read(reservation.file.c_str(), kContentBytesMax);
    if (file && !*file) continue;
    const bool same = file && (reservation.empty ? is_empty_file(**file)
                                                 : files::parse_holder((*file)->content) == reservation.holder);
    if (file && !same) continue;
    changed_ = true;
    const auto removed = file ? directory_.remove(reservation.file.c_str()) : Result<bool>(fail(file.error()));
    if (!removed && !error) error = removed.error();
    if (!removed || !view() || !reservation.holder || reservation.empty) continue;
    view()->remove(reservation.address, content_hash(files::holder_key((*file)->content)));
  }
  const auto synced = directory_.sync();
  if (!synced && !error) error = synced.error();
  if (!error) return {};
  forget();
  return fail(*error);
}

// ---------------------------------------------------------------- the index

/// Gives the directory a time of modification that the kernel never does: one second before its time of change, which
/// the kernel keeps equal to it on every change of an entry.
Result<os::DirectoryStamp> DirectoryReservations::mark_directory() {
  constexpr std::int64_t kApartNs = 1'000'000'000;
  const std::int64_t mark = clock_.now().wall.time_since_epoch().count() - kApartNs;
  TRY(const os::DirectoryStamp stamp, directory_.set_modified(mark));
  if (stamp.modified_ns == mark && stamp.modified_ns != stamp.changed_ns) return stamp;
  return fail(ErrorCode::internal, "the file system rounds times");
}

Result<void> DirectoryReservations::publish_changes(IndexView& view) {
  TRY_VOID(view.write_changes());
  TRY(const os::DirectoryStamp stamp, mark_directory());
  return view.confirm(stamp);
}

Result<void> DirectoryReservations::publish_new(const ScannedView& view) {
  if (!changed_) {
    TRY(const os::DirectoryStamp now, directory_.stamp());
    if (scanned_at_ != now) return {};
  }
  TRY(const os::DirectoryStamp stamp, mark_directory());
  return write_index(data_dir_, network_, view, stamp, clock_.now());
}

/// Best effort: an index that is not there, or counts for another state, costs the next call a look at all files.
void DirectoryReservations::publish() {
  if (!lock_.is_held()) return;
  if (index_) {
    if (changed_ && !index_->failed() && index_->has_room()) static_cast<void>(publish_changes(*index_));
    return;
  }
  const bool worth_it = scanned_ && scanned_at_ && scanned_->is_fit_for_index() &&
                        scanned_->reservation_count() >= kIndexedCountMin && clock_.now().boot != BootId();
  if (worth_it && directory_.has_local_times()) static_cast<void>(publish_new(*scanned_));
}

}  // namespace

Result<std::unique_ptr<Reservations>> open_reservations(const std::string& data_dir, const std::string& network,
                                                        OpenMode mode, const Clock& clock,
                                                        std::chrono::nanoseconds lock_wait) {
  CROFT_ASSERT(!network.empty() && network.front() != '.' && network.find('/') == std::string::npos);
  const std::string path = directory_path(data_dir, network);
  constexpr int kReopenMax = 100;
  for (int attempt = 0; attempt < kReopenMax; ++attempt) {
    TRY(os::Directory directory, mode == OpenMode::make ? os::Directory::make(path) : os::Directory::open(path));
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
