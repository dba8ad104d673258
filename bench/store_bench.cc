// What a store costs: the question behind the commits of docs/promises.md#budgets, which other budgets are measured
// against. Prints one line a measurement, with syncs and transactions counted beside the time, and the disk's own sync
// time, because on a slow disk the syncs are what a user pays.
//
// store_bench [DIRECTORY]   the disk to measure; default: the current directory

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "os/clock.h"
#include "os/file_descriptor.h"
#include "register/format/records.h"
#include "report.h"
#include "store/sqlite/sqlite_store.h"
#include "store/sqlite/test_watching_vfs.h"
#include "store/test_records.h"

namespace croft::store {
namespace {

using Microseconds = std::chrono::duration<double, std::micro>;

const os::SystemClock kWallClock;
DiskWatch& watch = install_watching_vfs();

Deadline soon() { return Deadline::after(kWallClock.now(), std::chrono::seconds{60}); }

std::unique_ptr<SqliteStore> open_store(const std::string& path) {
  auto store = open_sqlite_store(path, {.create = true}, kWallClock, soon());
  if (store) return *std::move(store);
  std::fprintf(stderr, "%s\n", store.error().message.c_str());
  std::exit(1);
}

/// Medians and tails of `rounds` runs, in microseconds.
void report(const char* id, const char* what, int rounds, const std::function<void(int)>& run,
            const std::string& note = {}) {
  std::vector<double> times;
  const std::uint64_t syncs = watch.syncs;
  for (int i = 0; i < rounds; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run(i);
    times.push_back(Microseconds(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  const double syncs_each = static_cast<double>(watch.syncs - syncs) / rounds;
  bench::report(fmt::format("{:<58} p50 {:>8.0f} us  p99 {:>8.0f} us  {:>5.2f} syncs  {}", what,
                            times[times.size() / 2], times[times.size() * 99 / 100], syncs_each, note),
                {.id = fmt::format("store.{}", id),
                 .what = what,
                 .value = times[times.size() / 2],
                 .unit = "us",
                 .note = fmt::format("{:.2f} syncs", syncs_each)});
}

void check(bool done) {
  if (!done) std::exit(1);
}

void disk_itself(const std::string& directory) {
  const std::string path = directory + "/plain";
  const os::FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  const std::vector<char> block(32 << 10, 'x');
  constexpr int kPlaces = 64;
  const auto write = [&](int i) {
    check(::pwrite(file.get(), block.data(), block.size(), (i % kPlaces) * std::ssize(block)) > 0);
  };
  for (int i = 0; i < kPlaces; ++i) write(i);
  check(::fsync(file.get()) == 0);
  report("disk", "the disk: fdatasync of 32 KiB overwritten in place", 500, [&](int i) {
    write(i);
    check(::fdatasync(file.get()) == 0);
  });
}

std::vector<Write> full_block_add(int i) {
  auto writes =
      sample_add(static_cast<std::uint32_t>(i % 50), 60 + static_cast<std::uint32_t>(i % 4), Condition::always());
  writes[1].condition = Condition::always();
  return writes;
}

void commits(const std::string& directory) {
  const std::string path = directory + "/croft.db";
  const auto store = open_store(path);
  report("commit", "commit, long-lived: 20 KB block and handle", 2000,
         [&](int i) { check(store->commit(full_block_add(i), sample_token(1), soon()).has_value()); });
}

void lone_commits(const std::string& directory) {
  const std::string path = directory + "/croft.db";
  const Key key = core::block_key(sample_cidr(0));
  report("read.alone", "open, read block, close: nobody else has it open", 500,
         [&](int) { check(open_store(path)->get(key, soon()).has_value()); });
  report("commit.alone", "open, read block, commit, close: nobody else has it open", 500, [&](int i) {
    const auto store = open_store(path);
    check(store->get(key, soon()).has_value());
    check(store->commit(full_block_add(i), sample_token(1), soon()).has_value());
  });
  const auto other = open_store(path);
  report("commit.beside", "the same while another process has it open", 500, [&](int i) {
    const auto store = open_store(path);
    check(store->get(key, soon()).has_value());
    check(store->commit(full_block_add(i), sample_token(1), soon()).has_value());
  });
}

void group_commit(const std::string& directory, int threads) {
  const auto store = open_store(directory + fmt::format("/group{}.db", threads));
  constexpr int kEach = 50;
  const std::uint64_t syncs = watch.syncs;
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        const Write write{core::handle_key(fmt::format("{}.{}", t, i)),
                          core::Handle{fmt::format("{}.{}", t, i), {}, false}, Condition::if_absent()};
        check(store->commit({&write, 1}, sample_token(1), soon()).has_value());
      }
    });
  }
  for (auto& worker : workers) worker.join();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double count = kEach * threads;
  const double syncs_each = static_cast<double>(watch.syncs - syncs) / count;
  const std::string what = fmt::format("group commit, {} threads", threads);
  bench::report(fmt::format("{:<58} {:>8.0f} commits/s  {:>5.2f} syncs a commit", what, count / seconds, syncs_each),
                {.id = fmt::format("store.group.{}", threads),
                 .what = what,
                 .value = count / seconds,
                 .unit = "/s",
                 .note = fmt::format("{:.2f} syncs a commit", syncs_each)});
}

void lists(const std::string& directory) {
  const auto store = open_store(directory + "/many.db");
  constexpr std::uint32_t kBlocks = 16384;
  for (std::uint32_t i = 0; i < kBlocks; i += 64) {
    std::vector<Write> writes;
    for (std::uint32_t k = i; k < i + 64; ++k)
      writes.push_back({core::block_key(sample_cidr(k)), sample_block(k, 16), Condition::always()});
    check(store->commit(writes, sample_token(1), soon()).has_value());
  }
  const auto all = [&](bool keys_only) {
    check(store
              ->for_each(
                  {Kind::block, "", kListLimitMax, keys_only}, [] { return soon(); },
                  [](Record&) { return Result<void>(); })
              .has_value());
  };
  report("list.keys", "list the keys of 16384 blocks of 5 KB", 20, [&](int) { all(true); });
  report("list.blocks", "list the blocks themselves", 3, [&](int) { all(false); });
}

void records() {
  const core::Block block = sample_block(0, 64);
  const Key key = core::block_key(block.cidr);
  const std::string bytes = wire::encode_record(block);
  report(
      "encode", "encode a full /26 block", 2000, [&](int) { check(!wire::encode_record(block).empty()); },
      fmt::format("{} bytes", bytes.size()));
  report("decode", "decode and check it", 2000, [&](int) { check(wire::decode_record(key, bytes).has_value()); });
}

void run(const std::string& below) {
  std::string directory = below + "/store-bench-XXXXXX";
  check(::mkdtemp(directory.data()) != nullptr);
  records();
  disk_itself(directory);
  commits(directory);
  lone_commits(directory);
  for (const int threads : {1, 8, 64}) group_commit(directory, threads);
  lists(directory);
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace croft::store

int main(int argc, char** argv) { croft::store::run(argc > 1 ? argv[1] : "."); }
