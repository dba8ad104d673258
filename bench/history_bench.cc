// How large a history is, and how long a question takes: at most 1.5 GiB and 50 ms with 10 million holders.
//
// usage: history_bench DIR [MILLIONS]     MILLIONS of holders, 10 by default, as 1,000 nodes and 3,000 ReplicaSets make
// them. Made in DIR, where a history of the same number is asked again.

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <sqlite3.h>

#include "base/clock.h"
#include "history/door/history_file.h"
#include "os/files.h"
#include "os/process.h"

namespace croft {
namespace {

using edge::HistoryFile;

constexpr std::uint32_t kAddresses = 250'000;
constexpr int kQuestions = 200;
const edge::HistoryBounds kKeepAll{std::chrono::hours(24 * 3650), std::int64_t{1} << 40};
const WallTime kBegin{std::chrono::seconds(1768471200)};

net::Address address_of(std::uint32_t number) { return net::Address::v4(0x0a000000 + number % kAddresses); }
WallTime time_of(std::uint64_t number) { return kBegin + std::chrono::milliseconds(700 * number); }
/// By a look each half second, as a recorder sees it.
core::history::Moment seen_at(std::uint64_t number) {
  return {time_of(number) - std::chrono::milliseconds(500), time_of(number)};
}
std::string pod_of(std::uint64_t number) {
  return fmt::format("service-{}-7d9f8b6c5-{:05x}", number % 3000, number * 2654435761 % 0xfffff);
}

core::history::Begun begun_of(std::uint64_t number) {
  core::history::Begun begun;
  begun.holding.address = address_of(static_cast<std::uint32_t>(number * 7919 % kAddresses));
  begun.holding.pool = "default-ipv4";
  begun.holding.holder = {fmt::format("node-{}", number % 1000),
                          fmt::format("team-{}", number % 40),
                          pod_of(number),
                          fmt::format("{:08x}-1234-4abc-8def-{:012x}", number & 0xffffffff, number * 40503),
                          "k8s-pod-network",
                          fmt::format("{:064x}", number * 2654435761),
                          "eth0",
                          ""};
  begun.holding.begin = seen_at(number);
  begun.print = number;
  return begun;
}

engine::HistoryEntry entry_of(std::uint64_t first, std::uint64_t behind) {
  engine::HistoryEntry entry;
  core::history::Changes& changes = entry.changes.emplace_back();
  for (std::uint64_t number = first; number < behind; ++number) {
    changes.begun.push_back(begun_of(number));
    // Whoever had the address before has let it go just now.
    changes.ended.push_back({changes.begun.back().holding.address, seen_at(number)});
  }
  entry.alive = time_of(behind);
  return entry;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void say(const std::string& text) { static_cast<void>(os::write_standard_output(text + "\n")); }

/// How many pages a connection remembers. An index over ten million rows has each new one somewhere else: with few
/// pages the disk is all that would be measured.
[[nodiscard]] bool remember_pages(const std::string& path, int count) {
  sqlite3* db = nullptr;
  bool is_done = sqlite3_open(path.c_str(), &db) == SQLITE_OK;
  const std::string sql = fmt::format("PRAGMA default_cache_size={}", count);
  is_done = is_done && sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
  sqlite3_close(db);
  return is_done;
}

[[nodiscard]] Result<void> fill(const std::string& path, std::uint64_t count) {
  constexpr int kPages = 400'000;
  constexpr std::uint64_t kBatch = 200'000;
  const bool is_large = remember_pages(path, kPages);
  TRY(auto file, HistoryFile::open(path, kKeepAll));
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t number = 0; number < count; number = std::min(number + kBatch, count)) {
    TRY_VOID(file->write(entry_of(number, std::min(number + kBatch, count))));
    say(fmt::format("{:.1f} of {:.1f} million holders, {:.0f} s", static_cast<double>(number + kBatch) / 1e6,
                    static_cast<double>(count) / 1e6, seconds_since(begin)));
  }
  file.reset();  // the log becomes part of the file
  if (is_large && !remember_pages(path, 0)) return fail(ErrorCode::internal, "PRAGMA default_cache_size");
  return {};
}

/// As a recorder writes while many come and go.
[[nodiscard]] Result<void> write_more(const std::string& path, std::uint64_t count) {
  constexpr std::uint64_t kBatch = 1000, kBatches = 20;
  TRY(const auto file, HistoryFile::open(path, kKeepAll));
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; i < kBatches; ++i) {
    TRY_VOID(file->write(entry_of(count + i * kBatch, count + (i + 1) * kBatch)));
  }
  say(fmt::format("written on by {} at a time: {:.0f} holders a second", kBatch,
                  static_cast<double>(kBatches * kBatch) / seconds_since(begin)));
  return {};
}

/// Asks `kQuestions` of them. The time of the processor is what a quiet machine would show.
[[nodiscard]] Result<void> ask(const char* what, std::uint64_t count,
                               const std::function<Result<std::size_t>(std::uint64_t)>& question) {
  SeededRandom random(1);
  std::vector<double> took, processor;
  std::size_t rows = 0;
  for (int i = 0; i < kQuestions; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const std::clock_t clock = std::clock();
    TRY(rows, question(random.next() % count));
    took.push_back(seconds_since(begin) * 1000);
    processor.push_back(static_cast<double>(std::clock() - clock) * 1000 / CLOCKS_PER_SEC);
  }
  std::ranges::sort(took);
  std::ranges::sort(processor);
  const std::size_t middle = took.size() / 2;
  say(fmt::format("{:<26} {:>8.2f} ms at the median, {:>8.2f} at most; {:>8.2f} and {:>8.2f} of processor; {} rows",
                  what, took[middle], took.back(), processor[middle], processor.back(), rows));
  return {};
}

[[nodiscard]] Result<void> run(const std::string& directory, std::uint64_t count) {
  const std::string path = fmt::format("{}/history-{}.db", directory, count);
  TRY(auto status, os::file_status(path));
  if (!status) {
    TRY_VOID(fill(path, count));
    TRY(status, os::file_status(path));
    say(fmt::format("{} holders: {:.2f} GiB, {:.0f} bytes each", count, static_cast<double>(status->bytes) / (1 << 30),
                    static_cast<double>(status->bytes) / static_cast<double>(count)));
    TRY_VOID(write_more(path, count));
  }
  TRY(const auto file, HistoryFile::open_to_read(path));
  const auto in_range = [&](int length) {
    return [&, length](std::uint64_t number) -> Result<std::size_t> {
      const auto range = net::Prefix::containing(begun_of(number).holding.address, length);
      TRY(const auto holders, file->holders_at(range, time_of(number), kAddresses));
      return holders.held.size();
    };
  };
  const auto rows_of = [&](const edge::HistoryQuestion& question) -> Result<std::size_t> {
    TRY(const auto found, file->holdings(question));
    return found.size();
  };
  TRY_VOID(ask("who ADDRESS", count, [&](std::uint64_t number) -> Result<std::size_t> {
    const auto at = time_of(number) + std::chrono::seconds(1);
    TRY(const auto answer, file->holder_at(begun_of(number).holding.address, at));
    return answer.holdings.size();
  }));
  TRY_VOID(ask("history ADDRESS", count, [&](std::uint64_t number) {
    edge::HistoryQuestion question;
    question.address = begun_of(number).holding.address;
    return rows_of(question);
  }));
  TRY_VOID(ask("history POD", count, [&](std::uint64_t number) {
    edge::HistoryQuestion question;
    question.pod = pod_of(number);
    return rows_of(question);
  }));
  TRY_VOID(ask("history NODE", count, [&](std::uint64_t number) {
    edge::HistoryQuestion question;
    question.node = fmt::format("node-{}", number % 1000);
    return rows_of(question);
  }));
  TRY_VOID(ask("history NODE, one hour", count, [&](std::uint64_t number) {
    edge::HistoryQuestion question;
    question.node = fmt::format("node-{}", number % 1000);
    question.from = time_of(number);
    question.until = time_of(number) + std::chrono::hours(1);
    return rows_of(question);
  }));
  TRY_VOID(ask("the map of a /24 at a time", count, in_range(24)));
  return ask("the map of a /16 at a time", count, in_range(16));
}

}  // namespace
}  // namespace croft

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const auto millions = argc > 2 ? std::strtod(argv[2], nullptr) : 10;
  const auto done = croft::run(argv[1], static_cast<std::uint64_t>(millions * 1e6));
  if (!done) static_cast<void>(croft::os::write_standard_error(done.error().message + "\n"));
  return done ? 0 : 1;
}
