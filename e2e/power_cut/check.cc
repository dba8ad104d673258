// Cuts the power of a logged disk at random moments and looks what a store finds after it.
//
// check DISK_LOG ACKS DISK_BYTES WORK_DIRECTORY IMAGES SEED
//
// For each image: mount it (the file system replays its journal), open the store, which recovers its log, and require
// that its content is exactly the state after some number of commits, no less than were acknowledged before the cut.
// Prints one line an image that fails, and a summary. Exit code: 0 nothing lost, 1 losses found, 2 the rig itself
// failed.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "disk_log.h"
#include "os/clock.h"
#include "store/sqlite/sqlite_store.h"
#include "workload.h"

namespace croft::e2e {
namespace {

struct Acknowledgement {
  std::uint64_t commits;
  std::uint64_t log_bytes;
};

std::vector<Acknowledgement> read_acknowledgements(const std::string& path) {
  std::vector<Acknowledgement> all;
  std::ifstream file(path);
  for (Acknowledgement a{}; file >> a.commits >> a.log_bytes;) all.push_back(a);
  return all;
}

/// Mounts an image for as long as it lives.
class Mount {
 public:
  Mount(const std::string& image, std::string point) : point_(std::move(point)) {
    mounted_ = std::system(fmt::format("mount -o loop {} {}", image, point_).c_str()) == 0;
  }
  ~Mount() {
    if (mounted_ && std::system(("umount " + point_).c_str()) != 0) std::exit(2);
  }
  Mount(const Mount&) = delete;
  Mount& operator=(const Mount&) = delete;
  [[nodiscard]] bool is_mounted() const { return mounted_; }

 private:
  std::string point_;
  bool mounted_ = false;
};

using State = std::map<store::Key, store::Value>;

Result<State> read_all(store::Store& store, Deadline deadline) {
  State state;
  for (std::size_t kind = 0; kind < core::kKindCount; ++kind) {
    TRY(auto records, store.list({static_cast<store::Kind>(kind), {}, true}, deadline));
    for (auto& record : records) {
      if (!record.value) return fail(std::move(record.value).error());
      state.emplace(std::move(record.key), *std::move(record.value));
    }
  }
  return state;
}

/// The number of commits a state holds.
std::uint64_t commits_in(const State& state) {
  const auto it = state.find(core::pool_set_key());
  return it == state.end() ? 0 : std::get<core::PoolSet>(it->second).generation;
}

class Checker {
 public:
  Checker(const std::string& log_path, const std::string& acks_path, std::size_t disk_bytes, std::string work)
      : log_(log_path), acks_(read_acknowledgements(acks_path)), disk_bytes_(disk_bytes), work_(std::move(work)) {}

  int run(std::uint64_t images, std::uint64_t seed) {
    if (acks_.size() < 2) return 2;
    std::mt19937_64 random(seed);
    for (std::uint64_t n = 0; n < images; ++n) check_one(n, random);
    std::printf("power cut: seed %llu, %llu images, %zu different, %llu with sectors lost, %llu FAILED\n",
                static_cast<unsigned long long>(seed), static_cast<unsigned long long>(images), distinct_.size(),
                static_cast<unsigned long long>(with_losses_), static_cast<unsigned long long>(failed_));
    return failed_ == 0 ? 0 : 1;
  }

 private:
  void check_one(std::uint64_t n, std::mt19937_64& random) {
    // From the moment the empty store was acknowledged: before, nothing was promised.
    const std::size_t first = log_.events_within(acks_.front().log_bytes);
    const std::size_t cut = std::uniform_int_distribution<std::size_t>(first, log_.events().size())(random);
    const CutImage image(log_, disk_bytes_, cut, random);
    distinct_.insert(std::hash<std::string>{}(image.bytes()));
    with_losses_ += image.sectors_lost() > 0 ? 1 : 0;
    const auto problem = problem_of(image, promised_at(cut));
    if (!problem) return;
    ++failed_;
    std::printf("image %llu, cut behind event %zu of %zu, %llu later sectors on disk and %llu lost: %s\n",
                static_cast<unsigned long long>(n), cut, log_.events().size(),
                static_cast<unsigned long long>(image.sectors_kept()),
                static_cast<unsigned long long>(image.sectors_lost()), problem->c_str());
  }

  /// How many commits were acknowledged when the log had `cut` events.
  [[nodiscard]] std::uint64_t promised_at(std::size_t cut) const {
    std::uint64_t promised = 0;
    for (const Acknowledgement& a : acks_) {
      if (log_.events_within(a.log_bytes) <= cut) promised = a.commits;
    }
    return promised;
  }

  [[nodiscard]] std::optional<std::string> problem_of(const CutImage& image, std::uint64_t promised) const {
    const std::string path = work_ + "/image";
    std::ofstream(path, std::ios::binary) << image.bytes();
    const Mount mount(path, work_ + "/mount");
    if (!mount.is_mounted()) return "the file system can't be mounted";
    const Deadline deadline = Deadline::after(clock_.now(), std::chrono::seconds{60});
    const std::string file = work_ + "/mount/store/croft.db";
    const auto store = store::open_sqlite_store(file, {}, clock_, deadline);
    if (!store) return "the store can't be opened: " + store.error().message;
    if (const auto whole = store::check_sqlite_pages(file, clock_, deadline); !whole) return whole.error().message;
    const auto state = read_all(**store, deadline);
    if (!state) return "the store can't be read: " + state.error().message;
    const std::uint64_t found = commits_in(*state);
    if (found < promised) return fmt::format("{} commits of {} acknowledged ones", found, promised);
    if (*state != state_after(found)) return fmt::format("not the state after {} commits", found);
    const auto next = (*store)->commit(commit_number(found + 1), store::sample_token(found + 1), deadline);
    if (!next) return "the store takes no commit: " + next.error().message;
    return std::nullopt;
  }

  os::SystemClock clock_;
  DiskLog log_;
  std::vector<Acknowledgement> acks_;
  std::size_t disk_bytes_;
  std::string work_;
  std::set<std::size_t> distinct_;
  std::uint64_t with_losses_ = 0;
  std::uint64_t failed_ = 0;
};

}  // namespace
}  // namespace croft::e2e

int main(int argc, char** argv) {
  if (argc != 7) {
    std::fprintf(stderr, "usage: check DISK_LOG ACKS DISK_BYTES WORK_DIRECTORY IMAGES SEED\n");
    return 2;
  }
  const auto number = [&](int i) { return std::strtoull(argv[i], nullptr, 10); };
  return croft::e2e::Checker(argv[1], argv[2], number(3), argv[4]).run(number(5), number(6));
}
