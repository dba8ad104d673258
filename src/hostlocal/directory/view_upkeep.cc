#include "hostlocal/directory/view_upkeep.h"

#include <chrono>
#include <cstdint>

#include "hostlocal/format/files.h"

namespace croft::store::hostlocal {
namespace {

namespace files = wire::host_local;

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

}  // namespace

// ---------------------------------------------------------------- where the view comes from

void ViewUpkeep::forget() {
  index_.reset();
  scanned_.reset();
  seen_at_.reset();
  odd_files_.clear();
  index_is_wrong_ = true;
}

void ViewUpkeep::open_index() {
  if (index_ || scanned_ || index_is_wrong_) return;
  const auto stamp = files_.directory().stamp();
  if (!stamp) return;
  index_ = IndexView::open(index_path(data_dir_, network_), *stamp, clock_);
  if (index_) seen_at_ = *stamp;
}

Result<View*> ViewUpkeep::need_view() {
  open_index();
  if (index_ && index_->failed()) forget();
  if (view() == nullptr) TRY_VOID(read_all());
  return view();
}

/// Someone who does not ask for the lock may change the directory while it is read: then it is read again. A stamp that
/// might not show that is replaced by a mark of ours first, if the view is to become an index.
Result<void> ViewUpkeep::read_all() {
  constexpr int kRoundsMax = 3;
  for (int round = 0; round < kRoundsMax; ++round) {
    odd_files_.clear();
    unreadable_.reset();
    const WallTime now = clock_.now().wall;
    TRY(const os::DirectoryStamp before, files_.directory().stamp());
    TRY(scanned_, read_once());
    TRY(const os::DirectoryStamp after, files_.directory().stamp());
    const bool proven = shows_changes(before, now);
    seen_at_ = before == after && proven ? std::optional(after) : std::nullopt;
    if (seen_at_) return {};
    if (before == after && (!is_worth_an_index(*scanned_) || !mark_directory())) return {};
  }
  return {};
}

Result<std::unique_ptr<ScannedView>> ViewUpkeep::read_once() {
  auto view = std::make_unique<ScannedView>();
  // The names are listed once more to read the files, unless there are so few that they can be kept.
  std::vector<std::pair<net::Address, std::string>> few;
  bool all_kept = true;
  TRY_VOID(files_.directory().for_each_name([&](const char* name) {
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
  TRY_VOID(files_.directory().for_each_name([&](const char* name) {
    const auto address = files::address_of_file(name);
    if (address) read_into(*view, *address, name);
    return true;
  }));
  return view;
}

/// A file that cannot be read is taken, by nobody we know.
void ViewUpkeep::read_into(ScannedView& view, const net::Address& address, const char* name) {
  const auto file = files_.read(name);
  if (!file && !unreadable_) unreadable_ = file.error();
  if (!file) return view.mark_unfit();
  if (files::file_name(address) != name) {
    odd_files_.push_back({address, name});
    return view.mark_unfit();
  }
  if (!*file) {
    const auto dangling = files_.directory().exists(name);
    if (dangling && !*dangling) view.see_nothing(address);
  } else if ((*file)->cut) {
    if (!unreadable_) {
      unreadable_ = Error{ErrorCode::internal, files_.directory().path_of(name) + ": too long to be read", {}};
    }
    view.mark_unfit();
  } else if (is_empty_file(**file)) {
    if (!files_.is_takeable(name, **file)) return view.mark_unfit();  // it will be, and no index would notice
    view.see_nothing(address);
  } else if ((*file)->regular) {
    view.see_content(address, content_hash(files::holder_key((*file)->content)));
  }
}

// ---------------------------------------------------------------- what becomes of it

void ViewUpkeep::expect_unchanged() {
  const auto now = files_.directory().stamp();
  if (!now || seen_at_ != *now) seen_at_.reset();
}

void ViewUpkeep::mark_changed() {
  changed_ = true;
  const bool index_follows = seen_at_ && (index_ || (scanned_ && is_worth_an_index(*scanned_)));
  seen_at_.reset();
  if (!index_follows) return;
  const auto marked = mark_directory();
  if (marked) seen_at_ = *marked;
}

/// Gives the directory a time of modification that the kernel never does. It is one second before its time of change,
/// which the kernel keeps equal to it on every change of an entry.
Result<os::DirectoryStamp> ViewUpkeep::mark_directory() {
  constexpr std::int64_t kApartNs = 1'000'000'000;
  const std::int64_t mark = clock_.now().wall.time_since_epoch().count() - kApartNs;
  TRY(const os::DirectoryStamp stamp, files_.directory().set_modified(mark));
  if (stamp.modified_ns == mark && stamp.modified_ns != stamp.changed_ns) return stamp;
  return fail(ErrorCode::internal, "the file system rounds times");
}

Result<void> ViewUpkeep::publish_changes(IndexView& view) {
  TRY_VOID(view.write_changes());
  return view.confirm(*seen_at_);
}

Result<void> ViewUpkeep::publish_new(const ScannedView& view) {
  if (!changed_ && seen_at_->modified_ns == seen_at_->changed_ns) {
    TRY(seen_at_, mark_directory());
  }
  return write_index(data_dir_, network_, view, *seen_at_, clock_.now());
}

bool ViewUpkeep::is_worth_an_index(const ScannedView& view) const {
  return view.is_fit_for_index() && view.reservation_count() >= kIndexedCountMin &&
         files_.directory().has_local_times();
}

void ViewUpkeep::publish() {
  if (!seen_at_) return;
  const auto now = files_.directory().stamp();
  if (!now || *now != *seen_at_) return;
  if (index_) {
    if (changed_ && !index_->failed() && index_->has_room()) static_cast<void>(publish_changes(*index_));
  } else if (scanned_ && is_worth_an_index(*scanned_) && clock_.now().boot != BootId()) {
    static_cast<void>(publish_new(*scanned_));
  }
}

}  // namespace croft::store::hostlocal
