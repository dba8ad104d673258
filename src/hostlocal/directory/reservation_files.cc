#include "hostlocal/directory/reservation_files.h"

#include <cerrno>
#include <chrono>
#include <string_view>

#include <fmt/format.h>

#include "cni/format/environment.h"
#include "hostlocal/format/files.h"

namespace croft::store::hostlocal {
namespace {

namespace files = wire::host_local;

/// A content is a container ID, a line end and an interface name; nothing an environment variable can carry is longer.
constexpr std::size_t kContentBytesMax = std::size_t{132} << 10;
constexpr std::size_t kCursorBytesMax = 256;
/// The beginning of the names that contents have before they get their own, where files without name are not known.
constexpr std::string_view kDraftStart = ".croft.new.";
/// An empty file younger than this may be one that a plugin of the old kind is about to write, should somebody have
/// removed the lock file under it.
constexpr std::chrono::seconds kEmptyAgeMin{10};
constexpr unsigned kFileMode = 0600;

}  // namespace

bool is_empty_file(const os::SmallFile& file) { return file.regular && file.content.empty(); }

std::optional<Holder> holder_of(const os::SmallFile& file) {
  if (!file.regular || file.cut) return std::nullopt;
  auto holder = files::parse_holder(file.content);
  return holder && wire::cni::is_cni_name(holder->container_id) ? std::move(holder) : std::nullopt;
}

Result<std::optional<os::SmallFile>> ReservationFiles::read(const std::string& name) const {
  return directory_.read(name.c_str(), kContentBytesMax);
}

Result<std::optional<os::SmallFile>> ReservationFiles::read_own(const std::string& name) const {
  return directory_.read_own(name.c_str(), kContentBytesMax);
}

Result<Reservation> ReservationFiles::reservation_of(const net::Address& address, const std::string& name,
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

bool ReservationFiles::is_takeable(const std::string& name, const os::SmallFile& file) const {
  if (!is_empty_file(file)) return false;
  const auto changed = directory_.modified(name.c_str());
  return changed && *changed && clock_.now().wall - **changed > kEmptyAgeMin;
}

Result<std::optional<net::Address>> ReservationFiles::cursor(std::size_t set) const {
  const std::string name = files::cursor_file_name(set);
  TRY(const auto file, directory_.read(name.c_str(), kCursorBytesMax));
  if (!file) return std::optional<net::Address>();
  if (!file->regular) return fail(os::path_error("read", directory_.path_of(name), EISDIR));
  return files::parse_cursor(file->content);
}

Result<os::DraftFile> ReservationFiles::prepare(const NewReservation& wanted, const std::string& content,
                                                std::size_t number) const {
  const std::string name = fmt::format("{}{}", kDraftStart, number);
  TRY(os::DraftFile draft, directory_.create_draft(name.c_str(), content, kFileMode));
  TRY_VOID(move_cursor(wanted));
  return draft;
}

Result<Reserved> ReservationFiles::place(const os::DraftFile& draft, const NewReservation& wanted) const {
  const std::string name = files::file_name(wanted.address);
  TRY(bool placed, directory_.name_draft(draft, name.c_str()));
  if (placed) return Reserved::done;
  TRY(const auto there, read(name));
  if (!there || !is_takeable(name, *there)) return Reserved::taken;
  TRY_VOID(directory_.remove(name.c_str()));
  TRY(placed, directory_.name_draft(draft, name.c_str()));
  return placed ? Reserved::done : Reserved::taken;
}

Result<void> ReservationFiles::move_cursor(const NewReservation& to) const {
  if (!to.set) return {};
  return directory_.overwrite(files::cursor_file_name(*to.set).c_str(), to.address.to_string(), kFileMode);
}

}  // namespace croft::store::hostlocal
