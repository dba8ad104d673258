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
#include "wire/cni/environment.h"
#include "wire/host_local/files.h"

namespace croft::store::hostlocal {
namespace {

namespace files = wire::host_local;

/// A content is a container ID, a line end and an interface name; nothing an environment variable can carry is longer.
constexpr std::size_t kContentBytesMax = std::size_t{132} << 10;
constexpr std::size_t kCursorBytesMax = 256;
/// What the names begin with that contents have before they get their own, where files without name are not known.
constexpr std::string_view kDraftStart = ".croft.new.";
/// An empty file younger than this may be one that a plugin of the old kind is about to write, should somebody have
/// removed the lock file under it.
constexpr std::chrono::seconds kEmptyAgeMin{10};
constexpr unsigned kFileMode = 0600;
constexpr unsigned kLockMode = 0750;

std::string directory_path(const std::string& data_dir, const std::string& network) {
  return data_dir == "/" ? data_dir + network : data_dir + "/" + network;
}

/// Who a file says holds its address. A text that is no CNI container ID is somebody's note: it names nobody.
std::optional<Holder> holder_of(const os::SmallFile& file) {
  if (!file.regular || file.cut) return std::nullopt;
  auto holder = files::parse_holder(file.content);
  return holder && wire::cni::is_cni_name(holder->container_id) ? std::move(holder) : std::nullopt;
}

/// The content a holder is found by.
std::string key_of(const Holder& holder, Match match) {
  const Holder sought = match == Match::exact ? holder : Holder{holder.container_id, ""};
  return std::string(files::holder_key(files::print_holder(sought)));
}

/// Kernels before 6.13 stamp with a clock that ticks every 1 to 10 ms: two changes in one tick have one stamp. What is
/// older than this has no such twin to come.
constexpr std::chrono::milliseconds kStampAgeMin{50};

/// Whether every change after this stamp was taken shows in the next one. A change sets both times to one value: where
/// they differ it is seen however soon it comes, else when the stamp's own tick is over. `before`: a time before the
/// stamp was taken.
bool shows_changes(const os::DirectoryStamp& stamp, WallTime before) {
  return stamp.modified_ns != stamp.changed_ns ||
         before.time_since_epoch() - std::chrono::nanoseconds(stamp.changed_ns) > kStampAgeMin;
}

bool is_empty_file(const os::SmallFile& file) { return file.regular && file.content.empty(); }

class DirectoryReservations final : public Reservations {
 public:
  DirectoryReservations(std::string data_dir, std::string network, os::Directory directory, const Clock& clock)
      : data_dir_(std::move(data_dir)),
        network_(std::move(network)),
        directory_(std::move(directory)),
        clock_(clock),
        lock_(directory_.path_of(files::kLockFile), {.mode = kLockMode, .go_errors = true}) {}
  DirectoryReservations(const DirectoryReservations&) = delete;
  DirectoryReservations& operator=(const DirectoryReservations&) = delete;
  /// The index is brought up to date while the lock is still held.
  ~DirectoryReservations() override { publish(); }

  /// The first to lock a directory sees to it that its name is durable: whoever made it may have died before that.
  [[nodiscard]] Result<void> lock(std::chrono::nanoseconds wait_max) {
    TRY(const bool used_before, directory_.exists(files::kLockFile.data()));
    if (!used_before) TRY_VOID(directory_.sync_name());
    return lock_.lock_within(clock_, wait_max);
  }
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

  [[nodiscard]] bool is_takeable(const char* name, const os::SmallFile& file) const;
  [[nodiscard]] Result<os::DraftFile> prepare(const NewReservation& wanted, const std::string& content,
                                              std::size_t number) const;
  [[nodiscard]] Result<Reserved> place(const os::DraftFile& draft, const NewReservation& wanted);
  [[nodiscard]] Result<Reserved> undo(std::span<const NewReservation> placed, Result<Reserved> outcome);
  [[nodiscard]] Result<void> move_cursor(const NewReservation& to) const;

  [[nodiscard]] bool is_worth_an_index(const ScannedView& view) const;
  void expect_unchanged();
  void mark_changed();
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
  std::vector<OddFile> odd_files_;  ///< with scanned_
  std::optional<Error> unreadable_;
  /// The stamp that the view is of: the one the index counts for, or the one before and after all files were read, then
  /// the one we marked the directory with. Absent: what the view says may be behind, and no index is written.
  std::optional<os::DirectoryStamp> seen_at_;
  bool changed_ = false;

  [[nodiscard]] View* view() { return index_ ? static_cast<View*>(index_.get()) : scanned_.get(); }
};

// ---------------------------------------------------------------- the view

void DirectoryReservations::forget() {
  index_.reset();
  scanned_.reset();
  seen_at_.reset();
  odd_files_.clear();
  index_is_wrong_ = true;
}

void DirectoryReservations::open_index() {
  if (index_ || scanned_ || index_is_wrong_) return;
  const auto stamp = directory_.stamp();
  if (!stamp) return;
  index_ = IndexView::open(index_path(data_dir_, network_), *stamp, clock_);
  if (index_) seen_at_ = *stamp;
}

Result<void> DirectoryReservations::need_view() {
  open_index();
  if (index_ && index_->failed()) forget();
  if (index_ || scanned_) return {};
  return read_all();
}

/// Someone who does not ask for the lock may change the directory while it is read: then it is read again. A stamp that
/// might not show that is replaced by a mark of ours first, if the view is to become an index.
Result<void> DirectoryReservations::read_all() {
  constexpr int kRoundsMax = 3;
  for (int round = 0; round < kRoundsMax; ++round) {
    odd_files_.clear();
    unreadable_.reset();
    const WallTime now = clock_.now().wall;
    TRY(const os::DirectoryStamp before, directory_.stamp());
    TRY(scanned_, read_once());
    TRY(const os::DirectoryStamp after, directory_.stamp());
    const bool proven = shows_changes(before, now);
    seen_at_ = before == after && proven ? std::optional(after) : std::nullopt;
    if (seen_at_) return {};
    if (before == after && (!is_worth_an_index(*scanned_) || !mark_directory())) return {};
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
    if (files::file_name(*address) == name) view->see_address(*address);
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
  if (!file && !unreadable_) unreadable_ = file.error();
  if (!file) return view.mark_unfit();
  if (files::file_name(address) != name) {
    odd_files_.push_back({address, name});
    return view.mark_unfit();
  }
  if (!*file) {
    const auto dangling = directory_.exists(name);
    if (dangling && !*dangling) view.see_nothing(address);
  } else if ((*file)->cut) {
    if (!unreadable_) unreadable_ = Error{ErrorCode::internal, directory_.path_of(name) + ": too long to be read", {}};
    view.mark_unfit();
  } else if (is_empty_file(**file)) {
    if (!is_takeable(name, **file)) return view.mark_unfit();  // it will be, and no index would notice
    view.see_nothing(address);
  } else if ((*file)->regular) {
    view.see_content(address, content_hash(files::holder_key((*file)->content)));
  }
}

/// Whether an empty file is what a crash left, and nobody's.
bool DirectoryReservations::is_takeable(const char* name, const os::SmallFile& file) const {
  if (!is_empty_file(file)) return false;
  const auto changed = directory_.modified(name);
  return changed && *changed && clock_.now().wall - **changed > kEmptyAgeMin;
}

// ---------------------------------------------------------------- reading

Result<Reservation> DirectoryReservations::read_reservation(const net::Address& address, const std::string& name,
                                                            const os::SmallFile& file) const {
  Reservation reservation;
  reservation.address = address;
  reservation.file = name;
  reservation.empty = is_empty_file(file);
  reservation.holder = holder_of(file);
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
  return !file || !*file || !is_takeable(name.c_str(), **file);
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
    if (!reservation) {
      error = std::move(reservation).error();
      return false;
    }
    all.push_back(*std::move(reservation));
    return true;
  }));
  if (error) return fail(*error);
  std::sort(all.begin(), all.end(), [](const Reservation& a, const Reservation& b) {
    return std::tie(a.address, a.file) < std::tie(b.address, b.file);
  });
  return all;
}

// ---------------------------------------------------------------- writing

Result<void> DirectoryReservations::move_cursor(const NewReservation& to) const {
  if (!to.set) return {};
  return directory_.overwrite(files::cursor_file_name(*to.set).c_str(), to.address.to_string(), kFileMode);
}

Result<void> DirectoryReservations::move_cursors(std::span<const NewReservation> to) {
  for (const NewReservation& cursor : to) TRY_VOID(move_cursor(cursor));
  return {};
}

/// All that can fail for want of space, before anything has a name: the content, and the cursor.
Result<os::DraftFile> DirectoryReservations::prepare(const NewReservation& wanted, const std::string& content,
                                                     std::size_t number) const {
  const std::string name = fmt::format("{}{}", kDraftStart, number);
  TRY(os::DraftFile draft, directory_.create_draft(name.c_str(), content, kFileMode));
  TRY_VOID(move_cursor(wanted));
  return draft;
}

Result<Reserved> DirectoryReservations::place(const os::DraftFile& draft, const NewReservation& wanted) {
  const std::string name = files::file_name(wanted.address);
  TRY(bool placed, directory_.name_draft(draft, name.c_str()));
  if (placed) return Reserved::done;
  TRY(const auto there, directory_.read(name.c_str(), kContentBytesMax));
  if (!there || !is_takeable(name.c_str(), *there)) return Reserved::taken;
  TRY_VOID(directory_.remove(name.c_str()));
  TRY(placed, directory_.name_draft(draft, name.c_str()));
  return placed ? Reserved::done : Reserved::taken;
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
  std::vector<os::DraftFile> drafts;
  std::size_t done = 0;
  const auto failed = [&](const Error& error, const NewReservation& at) {
    return undo(wanted.first(done),
                fail(at.set ? error.in(fmt::format("failed to allocate for range {}", *at.set)) : error));
  };
  for (const NewReservation& reservation : wanted) {
    auto draft = prepare(reservation, content, drafts.size());
    if (!draft) return failed(draft.error(), reservation);
    drafts.push_back(*std::move(draft));
  }
  expect_unchanged();
  for (; done < wanted.size(); ++done) {
    auto placed = place(drafts[done], wanted[done]);
    if (!placed) return failed(placed.error(), wanted[done]);
    if (*placed == Reserved::taken) return undo(wanted.first(done), Reserved::taken);
  }
  mark_changed();
  if (const auto synced = directory_.sync(); !synced) return undo(wanted, fail(synced.error()));
  if (view() == nullptr) return Reserved::done;
  const std::uint32_t hash = content_hash(files::holder_key(content));
  for (const NewReservation& reservation : wanted) view()->add(reservation.address, hash);
  return Reserved::done;
}

Result<void> DirectoryReservations::release(std::span<const Reservation> reservations) {
  open_index();
  std::optional<Error> error;
  const auto note = [&error](const Error& found) {
    if (!error) error = found;
  };
  std::vector<std::pair<const Reservation*, std::uint32_t>> ready;
  for (const Reservation& reservation : reservations) {
    const auto file = directory_.read(reservation.file.c_str(), kContentBytesMax);
    if (!file) note(file.error());
    if (!file || !*file) continue;
    const bool same = reservation.empty ? is_empty_file(**file) : holder_of(**file) == reservation.holder;
    if (same) ready.emplace_back(&reservation, content_hash(files::holder_key((*file)->content)));
  }
  expect_unchanged();
  for (auto& [reservation, hash] : ready) {
    const auto removed = directory_.remove(reservation->file.c_str());
    if (!removed) note(removed.error());
    if (!removed) reservation = nullptr;
  }
  if (!ready.empty()) mark_changed();
  if (const auto synced = directory_.sync(); !synced) note(synced.error());
  if (error) {
    forget();
    return fail(*error);
  }
  for (const auto& [reservation, hash] : ready) {
    const bool canonical = reservation->file == files::file_name(reservation->address);
    if (view() != nullptr && reservation->holder && canonical) view()->remove(reservation->address, hash);
  }
  return {};
}

// ---------------------------------------------------------------- the index

/// Right before our own change: what the view says must still be so, else it is not to become an index.
void DirectoryReservations::expect_unchanged() {
  const auto now = directory_.stamp();
  if (!now || seen_at_ != *now) seen_at_.reset();
}

/// Right behind our own change, before it is synced: from here on every change by somebody else shows.
void DirectoryReservations::mark_changed() {
  changed_ = true;
  const bool index_follows = seen_at_ && (index_ || (scanned_ && is_worth_an_index(*scanned_)));
  seen_at_.reset();
  if (!index_follows) return;
  const auto marked = mark_directory();
  if (marked) seen_at_ = *marked;
}

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
  return view.confirm(*seen_at_);
}

Result<void> DirectoryReservations::publish_new(const ScannedView& view) {
  if (!changed_ && seen_at_->modified_ns == seen_at_->changed_ns) {
    TRY(seen_at_, mark_directory());
  }
  return write_index(data_dir_, network_, view, *seen_at_, clock_.now());
}

bool DirectoryReservations::is_worth_an_index(const ScannedView& view) const {
  return view.is_fit_for_index() && view.reservation_count() >= kIndexedCountMin && directory_.has_local_times();
}

/// Best effort: an index that is not there, or counts for another state, costs the next call a look at all files.
void DirectoryReservations::publish() {
  if (!lock_.is_held() || !seen_at_) return;
  const auto now = directory_.stamp();
  if (!now || *now != *seen_at_) return;
  if (index_) {
    if (changed_ && !index_->failed() && index_->has_room()) static_cast<void>(publish_changes(*index_));
  } else if (scanned_ && is_worth_an_index(*scanned_) && clock_.now().boot != BootId()) {
    static_cast<void>(publish_new(*scanned_));
  }
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
