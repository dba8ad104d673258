#include "hostlocal/directory/directory_reservations.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/result.h"
#include "cni/format/environment.h"
#include "hostlocal/directory/index_file.h"
#include "hostlocal/format/config.h"
#include "os/directory.h"
#include "os/file_lock.h"

namespace croft::store::hostlocal {

namespace {

namespace files = wire::host_local;

/// A content is a container ID, a line end and an interface name; nothing an environment variable can carry is longer.
constexpr std::size_t kContentBytesMax = std::size_t{132} << 10;
constexpr std::size_t kCursorBytesMax = 256;
/// The beginning of the names that contents have before they get their own, where files without name are not known.
constexpr std::string_view kDraftStart = ".croft.new.";
/// The beginning of all names of Croft's that are no reservations.
constexpr std::string_view kTemporaryStart = ".croft";
/// An empty file younger than this may be one that a plugin of the old kind is about to write, should somebody have
/// removed the lock file under it.
constexpr std::chrono::seconds kEmptyAgeMin{10};
constexpr unsigned kFileMode = 0600;
constexpr unsigned kLockMode = 0750;

/// Whether a file has nothing in it: what a crash left, or what a plugin of the old kind is about to write.
bool is_empty_file(const os::SmallFile& file) { return file.regular && file.content.empty(); }

/// The holder of its address by a file's content. A text that is no CNI container ID is somebody's note: it names
/// nobody.
std::optional<Holder> holder_of(const os::SmallFile& file) {
  if (!file.regular || file.cut) return std::nullopt;
  auto holder = files::parse_holder(file.content);
  return holder && wire::cni::is_cni_name(holder->container_id) ? std::move(holder) : std::nullopt;
}

std::string directory_path(const std::string& data_dir, const std::string& network) {
  return data_dir == "/" ? data_dir + network : data_dir + "/" + network;
}

/// The content a holder is found by.
std::string key_of(const Holder& holder) { return std::string(files::holder_key(files::print_holder(holder))); }

/// Reads names of a directory into their places.
class DirectoryReader {
 public:
  explicit DirectoryReader(const os::Directory& directory) : directory_(directory) {}

  [[nodiscard]] Result<core::host_local::Directory> read() {
    constexpr std::size_t kFilesMax = 1'000'000;
    std::vector<std::string> names;
    TRY_VOID(directory_.for_each_name([&](const char* name) {
      names.emplace_back(name);
      return names.size() <= kFilesMax;
    }));
    if (names.size() > kFilesMax) {
      return fail(ErrorCode::invalid_argument, fmt::format("{} has more than {} files", directory_.path(), kFilesMax));
    }
    for (const std::string& name : names) TRY_VOID(see(name));
    std::ranges::sort(found_.reservations, [](const Reservation& a, const Reservation& b) {
      return std::tie(a.address, a.file) < std::tie(b.address, b.file);
    });
    std::ranges::sort(found_.cursors, {}, &core::host_local::Directory::Cursor::set);
    return std::move(found_);
  }

 private:
  [[nodiscard]] Result<void> see(const std::string& name) {
    if (const auto address = files::address_of_file(name)) return see_reservation(*address, name);
    if (const auto set = files::set_of_cursor_file(name)) return see_cursor(*set, name);
    if (name != files::kLockFile && !name.starts_with(kTemporaryStart)) found_.foreign.push_back(name);
    return {};
  }

  [[nodiscard]] Result<void> see_reservation(const net::Address& address, const std::string& name) {
    Reservation reservation{address, std::nullopt, {}, false, name};
    const auto file = directory_.read_own(name.c_str(), kContentBytesMax, &reservation.written);
    if (file && !*file) return {};
    if (!file && !found_.unreadable) found_.unreadable = file.error();
    if (file) reservation.holder = holder_of(**file);
    reservation.empty = file && is_empty_file(**file);
    found_.reservations.push_back(std::move(reservation));
    return {};
  }

  [[nodiscard]] Result<void> see_cursor(std::size_t set, const std::string& name) {
    TRY(const auto file, directory_.read(name.c_str(), kCursorBytesMax));
    if (file) found_.cursors.push_back({set, file->regular ? files::parse_cursor(file->content) : std::nullopt});
    return {};
  }

  const os::Directory& directory_;
  core::host_local::Directory found_;
};

/// Kernels before 6.13 stamp with a clock that ticks every 1 to 10 ms: two changes in one tick have one stamp. An older
/// stamp has no such twin to come.
constexpr std::chrono::milliseconds kStampAgeMin{50};

/// Whether every change after this stamp was taken shows in the next one. A change sets both times to one value: where
/// they differ it is seen however soon it comes, else when the stamp's own tick is over. `before`: a time before the
/// stamp was taken.
bool shows_changes(const os::DirectoryStamp& stamp, WallTime before) {
  return stamp.modified_ns != stamp.changed_ns ||
         before.time_since_epoch() - std::chrono::nanoseconds(stamp.changed_ns) > kStampAgeMin;
}

/// The files in a network's directory: one for each address that is held, with its name, and one for each set's cursor.
/// They are the truth. Remembers nothing of them. `clock` must outlive the object. All errors as os::path_error.
class ReservationFiles {
 public:
  ReservationFiles(os::Directory directory, const Clock& clock) : directory_(std::move(directory)), clock_(clock) {}

  [[nodiscard]] const os::Directory& directory() const { return directory_; }

  // ---- reading

  /// Nothing when there is none.
  [[nodiscard]] Result<std::optional<os::SmallFile>> read(const std::string& name) const {
    return directory_.read(name.c_str(), kContentBytesMax);
  }
  /// The reservation that a file with this content is.
  [[nodiscard]] Result<Reservation> reservation_of(const net::Address& address, const std::string& name,
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
  /// Whether an empty file is what a crash left, and nobody's.
  [[nodiscard]] bool is_abandoned(const std::string& name, const os::SmallFile& file) const {
    if (!is_empty_file(file)) return false;
    const auto changed = directory_.modified(name.c_str());
    return changed && *changed && clock_.now().wall - **changed > kEmptyAgeMin;
  }
  [[nodiscard]] Result<std::optional<net::Address>> cursor(std::size_t set) const {
    const std::string name = files::cursor_file_name(set);
    TRY(const auto file, directory_.read(name.c_str(), kCursorBytesMax));
    if (!file) return std::optional<net::Address>();
    if (!file->regular) return fail(os::path_error("read", directory_.path_of(name), EISDIR));
    return files::parse_cursor(file->content);
  }

  // ---- writing; durable once the directory is synced

  /// All that can fail for want of space, before anything has a name: the content, and the cursor. `number`: a draft's
  /// own, of those that are there at once.
  [[nodiscard]] Result<os::DraftFile> prepare(const NewReservation& wanted, const std::string& content,
                                              std::size_t number) const {
    const std::string name = fmt::format("{}{}", kDraftStart, number);
    TRY(os::DraftFile draft, directory_.create_draft(name.c_str(), content, kFileMode));
    TRY_VOID(move_cursor(wanted));
    return draft;
  }
  /// Gives a draft its address for a name, unless somebody has that.
  [[nodiscard]] Result<Reserved> place(const os::DraftFile& draft, const NewReservation& wanted) const {
    const std::string name = files::file_name(wanted.address);
    TRY(bool placed, directory_.name_draft(draft, name.c_str()));
    if (placed) return Reserved::done;
    TRY(const auto there, read(name));
    if (!there || !is_abandoned(name, *there)) return Reserved::taken;
    TRY_VOID(directory_.remove(name.c_str()));
    TRY(placed, directory_.name_draft(draft, name.c_str()));
    return placed ? Reserved::done : Reserved::taken;
  }
  [[nodiscard]] Result<void> move_cursor(const NewReservation& to) const {
    return directory_.overwrite(files::cursor_file_name(to.set).c_str(), to.address.to_string(), kFileMode);
  }

 private:
  os::Directory directory_;
  const Clock& clock_;
};

/// The view of a directory while it is locked: where it comes from, up to when it is believed, and whether it becomes
/// an index for the next call. docs/adr/0005-host-local-index.md has the rules. `files` and `clock` must outlive the
/// object.
///
/// A writer of files calls expect_unchanged() right before, mark_changed() right behind, before the directory is
/// synced, and has the view follow; when in doubt about the files it calls forget().
class ViewUpkeep {
 public:
  /// A file of the directory that has an address for a name.
  struct AddressFile {
    net::Address address;
    std::string name;
  };

  ViewUpkeep(std::string data_dir, std::string network, const ReservationFiles& files, const Clock& clock)
      : data_dir_(std::move(data_dir)), network_(std::move(network)), files_(files), clock_(clock) {}

  /// The index as the view, if there is one that counts and there is no view yet.
  void open_index() {
    if (view_ || index_is_wrong_) return;
    const auto stamp = files_.directory().stamp();
    if (!stamp) return;
    view_ = View::open(index_path(data_dir_, network_), *stamp, clock_);
    if (view_) seen_at_ = *stamp;
  }
  /// A view, never null, until forget(): of the index that counts, else of all files, which are read then.
  [[nodiscard]] Result<View*> need_view() {
    open_index();
    if (view_ && view_->failed()) forget();
    if (!view_) TRY_VOID(read_all());
    return view_.get();
  }
  /// The one there is; null when nothing had to be looked at yet.
  [[nodiscard]] View* view() { return view_.get(); }
  /// The files that a view of all files leaves out: their names are not the ones an index can stand for.
  [[nodiscard]] const std::vector<AddressFile>& odd_files() const { return odd_files_; }
  /// Why a file could not be read when all were read last.
  [[nodiscard]] const std::optional<Error>& unreadable() const { return unreadable_; }
  /// Somebody else has read all files, with that outcome.
  void set_unreadable(std::optional<Error> unreadable) { unreadable_ = std::move(unreadable); }
  /// The view is not believed any more, and no index again.
  void forget() {
    view_.reset();
    seen_at_.reset();
    odd_files_.clear();
    index_is_wrong_ = true;
  }

  /// The state that must still hold, else the view is not to become an index.
  void expect_unchanged() {
    const auto now = files_.directory().stamp();
    if (!now || seen_at_ != *now) seen_at_.reset();
  }
  /// From here on every change by somebody else shows.
  void mark_changed() {
    changed_ = true;
    const bool index_follows = seen_at_ && view_ && (!view_->is_first_hand() || is_worth_an_index());
    seen_at_.reset();
    if (!index_follows) return;
    const auto marked = mark_directory();
    if (marked) seen_at_ = *marked;
  }

  /// Brings the index up to date, while the lock is still held. Best effort: an index that is not there, or counts for
  /// another state, costs the next call a look at all files.
  void publish() {
    if (!seen_at_ || !view_ || view_->failed()) return;
    const auto now = files_.directory().stamp();
    if (!now || *now != *seen_at_) return;
    const bool is_wanted =
        view_->is_first_hand() ? is_worth_an_index() && clock_.now().boot != BootId() : changed_ && view_->has_room();
    if (is_wanted) static_cast<void>(save());
  }

 private:
  /// Someone who does not ask for the lock may change the directory while it is read: then it is read again. A stamp
  /// that might not show that is replaced by a mark of ours first, if the view is to become an index.
  [[nodiscard]] Result<void> read_all() {
    constexpr int kRoundsMax = 3;
    for (int round = 0; round < kRoundsMax; ++round) {
      odd_files_.clear();
      unreadable_.reset();
      is_fit_for_index_ = true;
      const WallTime now = clock_.now().wall;
      TRY(const os::DirectoryStamp before, files_.directory().stamp());
      TRY(view_, read_once());
      TRY(const os::DirectoryStamp after, files_.directory().stamp());
      const bool proven = shows_changes(before, now);
      seen_at_ = before == after && proven ? std::optional(after) : std::nullopt;
      if (seen_at_) return {};
      if (before == after && (!is_worth_an_index() || !mark_directory())) return {};
    }
    return {};
  }
  [[nodiscard]] Result<std::unique_ptr<View>> read_once() {
    // Most names follow from the address: 60,000 of them would be half of the memory.
    std::vector<net::Address> taken;
    std::vector<AddressFile> others;
    TRY_VOID(files_.directory().for_each_name([&](const char* name) {
      const auto address = files::address_of_file(name);
      if (address && files::file_name(*address) == name) {
        taken.push_back(*address);
      } else if (address) {
        others.push_back({*address, name});
      }
      return true;
    }));
    auto view = std::make_unique<View>(taken);
    for (const net::Address& address : taken) read_into(*view, address, files::file_name(address).c_str());
    for (const auto& [address, name] : others) read_into(*view, address, name.c_str());
    return view;
  }
  /// A file that cannot be read is taken, by nobody we know.
  void read_into(View& view, const net::Address& address, const char* name) {
    const auto file = files_.read(name);
    if (!file && !unreadable_) unreadable_ = file.error();
    if (!file) return mark_unfit();
    if (files::file_name(address) != name) {
      odd_files_.push_back({address, name});
      return mark_unfit();
    }
    if (!*file) {
      const auto dangling = files_.directory().exists(name);
      if (dangling && !*dangling) view.see_nothing(address);
    } else if ((*file)->cut) {
      if (!unreadable_) {
        unreadable_ = Error{ErrorCode::internal, files_.directory().path_of(name) + ": too long to be read", {}};
      }
      mark_unfit();
    } else if (is_empty_file(**file)) {
      if (!files_.is_abandoned(name, **file)) return mark_unfit();  // it will be, and no index would notice
      view.see_nothing(address);
    } else if ((*file)->regular) {
      view.see_content(address, content_hash(files::holder_key((*file)->content)));
    }
  }
  /// There is something that an index has no words for.
  void mark_unfit() { is_fit_for_index_ = false; }

  [[nodiscard]] bool is_worth_an_index() const {
    return is_fit_for_index_ && view_->reservation_count() >= kIndexedCountMin && files_.directory().has_local_times();
  }
  [[nodiscard]] Result<void> save() {
    if (!changed_ && seen_at_->modified_ns == seen_at_->changed_ns) {
      TRY(seen_at_, mark_directory());
    }
    return view_->save(data_dir_, network_, *seen_at_, clock_.now());
  }
  /// Gives the directory a time of modification that the kernel never does. It is one second before its time of change,
  /// which the kernel keeps equal to it on every change of an entry.
  [[nodiscard]] Result<os::DirectoryStamp> mark_directory() {
    constexpr std::int64_t kApartNs = 1'000'000'000;
    const std::int64_t mark = clock_.now().wall.time_since_epoch().count() - kApartNs;
    TRY(const os::DirectoryStamp stamp, files_.directory().set_modified(mark));
    if (stamp.modified_ns == mark && stamp.modified_ns != stamp.changed_ns) return stamp;
    return fail(ErrorCode::internal, "the file system rounds times");
  }

  const std::string data_dir_;
  const std::string network_;
  const ReservationFiles& files_;
  const Clock& clock_;

  std::unique_ptr<View> view_;
  bool index_is_wrong_ = false;         ///< then it is not opened again
  bool is_fit_for_index_ = true;        ///< when all files were read last
  std::vector<AddressFile> odd_files_;  ///< with a view of all files
  std::optional<Error> unreadable_;
  /// The stamp that the view is of. It is the one the index counts for, or the one before and after all files were
  /// read, then the one we marked the directory with. Absent: what the view says may be behind, and no index is
  /// written.
  std::optional<os::DirectoryStamp> seen_at_;
  bool changed_ = false;
};

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

  [[nodiscard]] Result<std::vector<Reservation>> held_by(const Holder& holder, Care care) override {
    const std::string key = key_of(holder);
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
  [[nodiscard]] Result<std::optional<net::Address>> next_free(const net::AddressRange& range) override {
    TRY(auto* view, upkeep_.need_view());
    auto free = view->next_free(range.first(), range.last());
    if (!view->failed()) return free;
    upkeep_.forget();
    TRY(view, upkeep_.need_view());
    return view->next_free(range.first(), range.last());
  }
  [[nodiscard]] Result<bool> is_taken(const net::Address& address) override {
    const std::string name = files::file_name(address);
    TRY(const bool exists, directory().exists(name.c_str()));
    if (!exists) return false;
    const auto file = files_.read(name);
    return !file || !*file || !files_.is_abandoned(name, **file);
  }
  [[nodiscard]] Result<std::optional<net::Address>> cursor(std::size_t set) override { return files_.cursor(set); }
  [[nodiscard]] Result<std::optional<Reservation>> look_up(const net::Address& address) override {
    const std::string name = files::file_name(address);
    TRY(const auto file, files_.read(name));
    if (!file) return std::optional<Reservation>();
    TRY(Reservation reservation, files_.reservation_of(address, name, *file));
    return std::optional(std::move(reservation));
  }
  [[nodiscard]] Result<std::vector<Reservation>> list() override {
    TRY(auto all, DirectoryReader(directory()).read());
    upkeep_.set_unreadable(std::move(all.unreadable));
    return std::move(all.reservations);
  }
  [[nodiscard]] std::optional<Error> unreadable() const override { return upkeep_.unreadable(); }
  [[nodiscard]] Result<Reserved> reserve(const Holder& holder, std::span<const NewReservation> wanted) override {
    upkeep_.open_index();
    const std::string content = files::print_holder(holder);
    std::vector<os::DraftFile> drafts;
    std::size_t done = 0;
    const auto failed = [&](const Error& error, const NewReservation& at) {
      return undo(wanted.first(done), fail(error.in(fmt::format("failed to allocate for range {}", at.set))));
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
  [[nodiscard]] Result<void> move_cursors(std::span<const NewReservation> to) override {
    for (const NewReservation& cursor : to) TRY_VOID(files_.move_cursor(cursor));
    return {};
  }
  [[nodiscard]] Result<void> release(std::span<const Reservation> reservations) override {
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
  [[nodiscard]] Result<void> settle() override { return directory().sync(); }

 private:
  [[nodiscard]] const os::Directory& directory() const { return files_.directory(); }

  /// The reservations that the view finds, read from the files; nothing when the index turns out to be wrong.
  [[nodiscard]] Result<std::optional<std::vector<Reservation>>> find_in_files(View& view, const std::string& key) {
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
    for (const ViewUpkeep::AddressFile& odd : upkeep_.odd_files()) {
      TRY(const auto file, files_.read(odd.name));
      if (!file || !file->regular || files::holder_key(file->content) != key) continue;
      TRY(Reservation reservation, files_.reservation_of(odd.address, odd.name, *file));
      found.push_back(std::move(reservation));
    }
    return std::optional(std::move(found));
  }
  [[nodiscard]] Result<Reserved> undo(std::span<const NewReservation> placed, Result<Reserved> outcome) {
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

  const Clock& clock_;
  const ReservationFiles files_;
  ViewUpkeep upkeep_;
  os::FileLock lock_;
};

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

Result<core::host_local::Directory> read_directory(const std::string& path) {
  TRY(const os::Directory directory, os::Directory::open(path));
  return DirectoryReader(directory).read();
}

Result<void> check_directory(const std::string& data_dir, const std::string& network) {
  TRY(const os::Directory directory, os::Directory::make(directory_path(data_dir, network)));
  return directory.check_writable();
}

}  // namespace croft::store::hostlocal
