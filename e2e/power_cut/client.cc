// The program whose machine loses power: makes commits on a store and notes, outside of the disk under test, how long
// the log of the disk was when each was acknowledged.
//
// client STORE DISK_LOG ACKS COMMITS [skip-one-sync-in N]
//
// Reopens the store now and then, so that logs are read back by lone processes, as a plugin's are. With
// `skip-one-sync-in` N not every sync is done: the planted fault that the rig must find.

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "os/clock.h"
#include "os/files.h"
#include "store/sqlite/sqlite_store.h"
#include "store/sqlite/test_watching_vfs.h"
#include "workload.h"

namespace croft::e2e {
namespace {

[[noreturn]] void die(const std::string& why) {
  std::fprintf(stderr, "client: %s\n", why.c_str());
  std::exit(1);
}

class Client {
 public:
  Client(std::string store_path, std::string log_path, const std::string& acks_path)
      : store_path_(std::move(store_path)), log_path_(std::move(log_path)), acks_(std::fopen(acks_path.c_str(), "w")) {
    if (acks_ == nullptr) die("cannot write " + acks_path);
  }
  ~Client() { std::fclose(acks_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void run(std::uint64_t commits) {
    acknowledge(0);
    for (std::uint64_t i = 1; i <= commits; ++i) {
      // 40 commits of a long-lived process, then 20 of short-lived ones.
      constexpr std::uint64_t kPeriod = 60;
      constexpr std::uint64_t kLongLived = 40;
      if (!store_ || i % kPeriod > kLongLived) reopen();
      const auto done = store_->commit(commit_number(i), store::sample_token(i), soon());
      if (!done) die(done.error().message);
      acknowledge(i);
    }
  }

 private:
  [[nodiscard]] Deadline soon() const { return Deadline::after(clock_.now(), std::chrono::seconds{60}); }

  void reopen() {
    store_.reset();
    auto opened = store::open_sqlite_store(store_path_, {.create = true}, clock_, soon());
    if (!opened) die(opened.error().message);
    store_ = *std::move(opened);
  }

  void acknowledge(std::uint64_t i) {
    if (!store_) reopen();
    const auto log = os::file_status(log_path_);
    if (!log || !*log) die("no log " + log_path_);
    std::fprintf(acks_, "%llu %llu\n", static_cast<unsigned long long>(i),
                 static_cast<unsigned long long>((*log)->bytes));
  }

  os::SystemClock clock_;
  std::string store_path_;
  std::string log_path_;
  std::FILE* acks_;
  std::unique_ptr<store::SqliteStore> store_;
};

}  // namespace
}  // namespace croft::e2e

int main(int argc, char** argv) {
  const bool has_fault = argc == 7 && std::string_view(argv[5]) == "skip-one-sync-in";
  if (argc != 5 && !has_fault) croft::e2e::die("usage: client STORE DISK_LOG ACKS COMMITS [skip-one-sync-in N]");
  if (has_fault) croft::store::install_watching_vfs().skip_one_sync_in = std::strtoull(argv[6], nullptr, 10);
  croft::e2e::Client(argv[1], argv[2], argv[3]).run(std::strtoull(argv[4], nullptr, 10));
}
