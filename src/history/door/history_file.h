#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/net/prefix.h"
#include "base/result.h"
#include "history/decide/forecast.h"
#include "history/decide/holding.h"
#include "history/use/recorder.h"
#include "os/file_lock.h"

struct sqlite3;
struct sqlite3_stmt;

namespace croft::edge {

/// Where commands look for a history that is not named.
inline constexpr const char* kHistoryPath = "/var/lib/croft/history.db";
/// A forecast looks so far back.
inline constexpr std::chrono::hours kForecastPast{8 * 24};

/// How much of a history is kept.
struct HistoryBounds {
  std::chrono::hours retention{90 * 24};
  std::int64_t bytes_max = std::int64_t{4} << 30;  ///< of the file, without what is free in it
};

/// A question of holdings. Those that touch the time between `from` and `until` are meant.
struct HistoryQuestion {
  std::optional<net::Address> address{};
  std::string pod{};  ///< its name, of any namespace where none is given
  std::string namespace_name{};
  std::string node{};
  std::optional<WallTime> from{}, until{};
  std::size_t limit = 1000;
};

/// A history in a SQLite file of its own (docs/formats/history.md). Holdings that ended are rows that are added and,
/// once they are too old or too many, deleted; nothing else changes them. A row of those is 100 to 160 bytes.
///
/// One process writes, which a lock beside the file (`.lock`) sees to; others read meanwhile. For one thread. Errors of
/// every call: as store/sqlite/database.h maps them, naming the file.
class HistoryFile final : public engine::HistoryLog {
 public:
  /// Made where it is absent, for its user alone (0600); its directory has to be there. Error also: corrupt for a file
  /// of another program; deadline_exceeded while another process writes it.
  [[nodiscard]] static Result<std::unique_ptr<HistoryFile>> open(const std::string& path, const HistoryBounds& bounds);
  /// Error also: not_found.
  [[nodiscard]] static Result<std::unique_ptr<HistoryFile>> open_to_read(const std::string& path);
  ~HistoryFile() override;

  [[nodiscard]] Result<State> state() override;
  [[nodiscard]] Result<void> write(const engine::HistoryEntry& entry) override;

  [[nodiscard]] Result<core::history::Reach> reach();
  [[nodiscard]] Result<core::history::Answer> holder_at(const net::Address& address, WallTime at) {
    return holder_at(address, core::history::Moment::at(at));
  }
  /// Sure only where it is the same all the time from `when.after` to `when.by`.
  [[nodiscard]] Result<core::history::Answer> holder_at(const net::Address& address, const core::history::Moment& when);
  /// The holders of the addresses of a range at a moment.
  struct Holders {
    struct One {
      net::Address address;
      bool is_sure = false;  ///< false: it may have been held, or not
    };
    std::vector<One> held;  ///< ascending
    std::string open;       ///< why the others, or some of them, may have been held; empty: they were not
  };
  /// Error also: invalid_argument where more than `count_max` addresses were held, or looking took longer than 2 s.
  [[nodiscard]] Result<Holders> holders_at(const net::Prefix& range, WallTime at, std::size_t count_max);
  /// By their begin; open ones among them. At most `limit`, the latest.
  [[nodiscard]] Result<std::vector<core::history::Holding>> holdings(const HistoryQuestion& question);
  /// Those of all blocks that touch the time, ascending.
  [[nodiscard]] Result<std::vector<core::history::Gap>> gaps(WallTime from, WallTime until);
  /// How many addresses of each pool that is there were in use, ascending by time.
  [[nodiscard]] Result<std::map<std::string, std::vector<core::history::Use>>> uses(WallTime since);
  /// One for each pool that is there, by what was counted in the last kForecastPast.
  [[nodiscard]] Result<std::map<std::string, core::history::Forecast>> forecasts(WallTime now);

 private:
  class Query;
  HistoryFile(std::string path, const HistoryBounds& bounds)
      : path_(std::move(path)), bounds_(bounds), lock_(path_ + ".lock") {}
  [[nodiscard]] Result<void> open(int flags);
  [[nodiscard]] Error error_of(int code, const char* doing) const;
  [[nodiscard]] Result<void> run(const char* sql);
  [[nodiscard]] Result<std::int64_t> number(const char* sql);
  [[nodiscard]] Result<void> make_tables();
  [[nodiscard]] Result<std::int64_t> id_of(const std::string& text);
  [[nodiscard]] Result<void> write_all(const engine::HistoryEntry& entry);
  [[nodiscard]] Result<void> write_begun(const core::history::Begun& begun);
  [[nodiscard]] Result<void> write_ended(const core::history::Ended& ended);
  [[nodiscard]] Result<void> write_unseen(const engine::UnseenBlock& unseen);
  [[nodiscard]] Result<void> write_uses(const engine::HistoryEntry& entry);
  /// Some of what is too old or too much, so that nobody waits long for it.
  [[nodiscard]] Result<void> drop_some(WallTime now, std::int64_t added);
  /// Deletes those of the first rows that ended before.
  [[nodiscard]] Result<void> drop_ended(std::int64_t rows, std::int64_t before);
  [[nodiscard]] Result<std::optional<core::history::Gap>> gap_of(const net::Address& address,
                                                                 const core::history::Moment& when);
  [[nodiscard]] Result<Holders> look_at(const net::Prefix& range, WallTime at, std::size_t count_max);
  [[nodiscard]] Result<void> take(const std::string& where, const HistoryQuestion& question, bool is_open,
                                  std::vector<core::history::Holding>& found);

  const std::string path_;
  const HistoryBounds bounds_;
  os::FileLock lock_;  ///< of the writer
  sqlite3* db_ = nullptr;
  std::int64_t alive_ = 0;                           ///< that a writer wrote last, or found
  std::map<std::string, sqlite3_stmt*> statements_;  ///< by their text
  std::map<std::string, std::int64_t> ids_;          ///< of texts, those that were asked for lately
};

}  // namespace croft::edge
