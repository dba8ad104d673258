// The budgets that concern host-local (docs/promises.md#budget-host-local), with Debian's binary measured beside in the
// same run.
//
// usage: host_local_bench BIN_DIR [DIRECTORY]   (what is synced goes to DIRECTORY's disk, by default the current one)
//
// Each program has a data directory of its own with the same reservations, written as plain files as the reference
// writes them. The time without syncs is the time on a tmpfs.

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include <fmt/format.h>

#include "floors.h"
#include "processes.h"
#include "report.h"

namespace croft::bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* kReference = "/usr/lib/cni/host-local";
constexpr std::array kSizes{0, 250, 1'000, 10'000, 60'000};  // 250: a node with all its pods
constexpr std::array kCommands{"ADD", "CHECK", "DEL"};
constexpr int kRounds = 200;
// docs/promises.md#budget-host-local
constexpr double kAboveEmptyBudget = 0.10;
constexpr double kFlatBudget = 1.3;
constexpr std::uint32_t kFirst = (10U << 24) + (64U << 16) + 2;  // 10.64.0.2, behind the gateway

void must(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "host_local_bench: %s\n", what.c_str());
  std::exit(1);
}

std::string thousands(int n) { return n < 1'000 ? std::to_string(n) : fmt::format("{},{:03}", n / 1'000, n % 1'000); }

std::string address_text(std::uint32_t address) {
  return fmt::format("{}.{}.{}.{}", address >> 24, address >> 16 & 255, address >> 8 & 255, address & 255);
}

std::string container_id(std::uint64_t number) { return fmt::format("{:064x}", number); }

/// How often both programs take turns, and how many rounds the slow reference has a turn. Turns, and not rounds: a
/// program that has just read a thousand files leaves nothing in the processor's caches to the next one.
struct Turns {
  int count;
  int of_reference;
};
Turns turns(int held) {
  if (held <= 1'000) return {20, 5};
  return held <= 10'000 ? Turns{20, 1} : Turns{5, 1};
}

/// A data directory; "net" in it has some reservations.
class DataDir {
 public:
  explicit DataDir(fs::path path, bool dual_stack = false) : path_(std::move(path)), dual_stack_(dual_stack) {}

  void fill(std::uint32_t held) {
    fs::create_directories(path_ / "net");
    for (std::uint32_t i = 0; i < held; ++i)
      write(address_text(kFirst + i), fmt::format("{}\r\neth0", container_id(kFilled + i)));
    if (held > 0) write("last_reserved_ip.0", address_text(kFirst + held - 1));
    next_ = kFirst + held;
    const int fd = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(fd >= 0 && ::syncfs(fd) == 0, "sync of what was filled");  // its writing back is not part of the measurement
    ::close(fd);
  }

  [[nodiscard]] Call call(const std::string& program, const std::string& command, const std::string& container,
                          const std::string& previous = "") const {
    const char* const six = dual_stack_ ? R"(,[{"subnet":"fd64::/64"}])" : "";
    const std::string config = fmt::format(
        R"({{"cniVersion":"1.0.0","name":"net"{},"ipam":{{"type":"host-local","dataDir":"{}","ranges":[[{{"subnet":"10.64.0.0/14"}}]{}]}}}})",
        previous, path_.string(), six);
    return {{program},
            {"CNI_COMMAND=" + command, "CNI_CONTAINERID=" + container, "CNI_NETNS=/var/run/netns/none",
             "CNI_IFNAME=eth0", "CNI_PATH=/usr/lib/cni", "CROFT_LOG_DIRECTORY=none"},
            config};
  }

  /// One ADD, CHECK and DEL of a new container: their times, in the order of kCommands.
  std::array<Milliseconds, 3> round(const std::string& program) {
    const std::string container = container_id(++containers_);
    // The cursor goes on by one with each ADD.
    const std::string previous =
        fmt::format(R"(,"prevResult":{{"cniVersion":"1.0.0","ips":[{{"address":"{}/14","gateway":"10.64.0.1"}}]}})",
                    address_text(next_++));
    std::array<Milliseconds, 3> times;
    for (std::size_t i = 0; i < kCommands.size(); ++i) {
      const Call one = call(program, kCommands[i], container, i == 1 ? previous : "");
      times[i] = time_of([&] { must(run(one) == 0, fmt::format("{} {}", program, kCommands[i])); });
    }
    return times;
  }

  /// The time of one ADD that stays.
  Milliseconds add(const std::string& program) {
    ++next_;
    const Call one = call(program, "ADD", new_container());
    return time_of([&] { must(run(one) == 0, program + " ADD"); });
  }

  void remove_last(const std::string& program) {
    must(run(call(program, "DEL", container_id(containers_))) == 0, program + " DEL");
  }

  /// An ADD by another program than the one measured; a file as the reference writes it when there is no reference.
  void change(const std::string& reference) {
    if (!reference.empty()) {
      must(run(call(reference, "ADD", container_id(++containers_))) == 0, "ADD of the reference");
      return;
    }
    ++containers_;
    write(address_text(kFirst + (1U << 17) + static_cast<std::uint32_t>(containers_)),
          container_id(containers_) + "\r\neth0");
  }

  [[nodiscard]] std::string new_container() { return container_id(++containers_); }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  static constexpr std::uint64_t kFilled = 0xf00000000;

  void write(const std::string& name, const std::string& content) const {
    std::ofstream file(path_ / "net" / name, std::ios::binary);
    file << content;
    file.close();
    must(!file.fail(), "cannot write " + (path_ / "net" / name).string());
  }

  fs::path path_;
  bool dual_stack_;
  std::uint64_t containers_ = 0;
  std::uint32_t next_ = kFirst;
};

struct Medians {
  std::array<Milliseconds, 3> own{};
  std::array<Milliseconds, 3> reference{};
  Milliseconds new_file{};  ///< what the disk took meanwhile to make a small file durable
};

Milliseconds sync_new_file(const fs::path& directory) {
  const std::string path = (directory / "synced").string();
  const std::string content(container_id(0) + "\r\neth0");
  const Milliseconds time = time_of([&] {
    const int fd = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    must(fd >= 0 && ::write(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size()) &&
             ::fsync(fd) == 0 && ::close(fd) == 0,
         "cannot write " + path);
  });
  fs::remove(path);
  return time;
}

class Bench {
 public:
  Bench(std::string bin, const fs::path& directory)
      : bin_(std::move(bin)), disk_(directory / "croft-host-local-bench"), memory_(make_memory()) {
    fs::remove_all(disk_);
    fs::create_directories(disk_ / "cni");
    program_ = (disk_ / "cni" / "host-local").string();
    fs::create_symlink(fs::absolute(bin_ + "/host-local"), program_);
    if (fs::exists(kReference)) reference_ = kReference;
  }
  ~Bench() {
    fs::remove_all(disk_);
    if (!memory_.empty()) fs::remove_all(memory_);
  }

  void run_all() {
    if (reference_.empty())
      not_measured("host_local.reference", "Debian's host-local", fmt::format("there is no {}", kReference));
    fmt::print("{:<58}{:>9.3f} ms\n", "fdatasync of 4 KiB, this disk (p50)", disk_sync(disk_).count());
    empty_ = empty_process(bin_);
    fmt::print("{:<58}{:>9.3f} ms\n", "empty static process (p50)", empty_.count());
    if (memory_.empty()) {
      not_measured("host_local.tmpfs", "host-local without the disk", "there is no tmpfs at /dev/shm");
    } else {
      all_sizes(memory_, "tmpfs", true);
    }
    all_sizes(disk_, "disk", false);
    peak_memory();
    for (const bool dual_stack : {false, true}) syncs(dual_stack);
  }

 private:
  /// A directory on a tmpfs; empty when there is none.
  static fs::path make_memory() {
    struct statfs status {};
    if (::statfs("/dev/shm", &status) != 0 || status.f_type != TMPFS_MAGIC) return {};
    std::string path = "/dev/shm/croft-host-local-bench-XXXXXX";
    must(::mkdtemp(path.data()) != nullptr, "mkdtemp in /dev/shm");
    return path;
  }

  void all_sizes(const fs::path& place, const char* where, bool is_without_syncs) {
    std::optional<Medians> at_zero;
    for (const int held : kSizes) {
      DataDir own(place / fmt::format("own-{}", held));
      DataDir reference(place / fmt::format("reference-{}", held));
      own.fill(static_cast<std::uint32_t>(held));
      if (!reference_.empty()) reference.fill(static_cast<std::uint32_t>(held));
      const Milliseconds first = own.add(program_);
      own.remove_last(program_);
      const Medians medians = measure(own, reference, held);
      for (std::size_t i = 0; i < kCommands.size(); ++i) print_row(medians, at_zero, i, held, where, is_without_syncs);
      if (!is_without_syncs) {
        fmt::print("{:<58}{:>9.3f} ms\n",
                   fmt::format("  a new file, written and synced, {} held, {}", thousands(held), where),
                   medians.new_file.count());
      }
      changed_by_the_reference(own, held, where, first);
      if (!at_zero) at_zero = medians;
      fs::remove_all(own.path());
      fs::remove_all(reference.path());
    }
  }

  /// Both programs in turn, so that what else the machine does meets both.
  [[nodiscard]] Medians measure(DataDir& own, DataDir& reference, int held) const {
    std::array<std::vector<Milliseconds>, 3> own_times, reference_times;
    static_cast<void>(own.round(program_));
    const auto take = [](DataDir& data, const std::string& program, auto& all) {
      const auto times = data.round(program);
      for (std::size_t k = 0; k < times.size(); ++k) all[k].push_back(times[k]);
    };
    std::vector<Milliseconds> new_files;
    const Turns plan = turns(held);
    for (int turn = 0; turn < plan.count; ++turn) {
      for (int i = 0; i < kRounds / plan.count; ++i) take(own, program_, own_times);
      for (int i = 0; i < 5; ++i) new_files.push_back(sync_new_file(own.path()));
      if (reference_.empty()) continue;
      for (int i = 0; i < plan.of_reference; ++i) take(reference, reference_, reference_times);
    }
    Medians medians;
    medians.new_file = median(new_files);
    for (std::size_t k = 0; k < kCommands.size(); ++k) {
      medians.own[k] = median(own_times[k]);
      if (!reference_.empty()) medians.reference[k] = median(reference_times[k]);
    }
    return medians;
  }

  void print_row(const Medians& medians, const std::optional<Medians>& at_zero, std::size_t i, int held,
                 const char* where, bool is_without_syncs) const {
    fmt::print("{:<58}{:>9.3f} ms", fmt::format("host-local {}, {} held, {}", kCommands[i], thousands(held), where),
               medians.own[i].count());
    // On a disk others write too; the row below the three tells how fast it was.
    if (at_zero) {
      fmt::print("   {:.2f} x at 0 held{}", medians.own[i] / at_zero->own[i], is_without_syncs ? ", budget 1.3" : "");
    }
    if (!reference_.empty()) {
      const bool has_budget = !at_zero && is_without_syncs && i != 1;
      fmt::print("{} {:.3f} x the reference{} ({:.3f} ms)", at_zero ? ";" : "  ", medians.own[i] / medians.reference[i],
                 is_without_syncs ? "" : ", which never syncs", medians.reference[i].count());
      if (has_budget) {
        fmt::print("; its time above an empty process {:.3f} x, budget {}",
                   (medians.own[i] - empty_) / medians.reference[i], kAboveEmptyBudget);
      }
    }
    fmt::print("\n");
    record_row(medians, at_zero, i, held, where, is_without_syncs);
  }

  /// The budgets are of the times without the disk: an empty range beside the reference, others beside the empty one.
  void record_row(const Medians& medians, const std::optional<Medians>& at_zero, std::size_t i, int held,
                  const char* where, bool is_without_syncs) const {
    const Milliseconds own = medians.own[i], reference = medians.reference[i];
    Row row{.id = fmt::format("host_local.{}.{}.{}", where, kCommands[i], held),
            .what = fmt::format("host-local {}, {} held, {}", kCommands[i], thousands(held), where),
            .value = own.count(),
            .unit = "ms"};
    if (!reference_.empty()) {
      row.peer = Figure{"Debian's host-local", reference.count()};
      if (!is_without_syncs) row.note = "the peer never syncs";
    }
    if (at_zero) {
      row.limit = Figure{"its own empty range", at_zero->own[i].count()};
      row.ratio = ratio_to(row, *row.limit);
      if (is_without_syncs) row.budget = ratio_at_most(kFlatBudget);
    } else {
      row.limit = Figure{"an empty static process", empty_.count()};
      if (row.peer) {
        row.ratio = Ratio{(own - empty_) / reference, "Debian's host-local, of the time above an empty static process"};
        if (is_without_syncs && i != 1) row.budget = ratio_at_most(kAboveEmptyBudget);
      }
    }
    record(row);
  }

  /// One rebuild of the index, apart: the first ADD after an ADD of the reference, and the second.
  void changed_by_the_reference(DataDir& own, int held, const char* where, Milliseconds without_index) const {
    std::vector<Milliseconds> firsts, seconds;
    for (int i = 0; i < turns(held).count; ++i) {
      own.change(reference_);
      firsts.push_back(own.add(program_));
      seconds.push_back(own.add(program_));
    }
    fmt::print("{:<58}{:>9.3f} ms   the next one {:.3f} ms; the first ADD of all, without an index, {:.3f} ms\n",
               fmt::format("  first ADD after one of the reference, {} held, {}", thousands(held), where),
               median(firsts).count(), median(seconds).count(), without_index.count());
  }

  void peak_memory() const {
    DataDir data((memory_.empty() ? disk_ : memory_) / "peak");
    data.fill(kSizes.back());
    const auto peak_of_add = [&](const std::string& program) {
      Call measured = data.call(program, "ADD", data.new_container());
      measured.words.insert(measured.words.begin(), bin_ + "/../bench/peak_memory");
      std::string kib;
      must(run_with_errors(measured, kib) == 0, "ADD");
      return std::atol(kib.c_str());
    };
    long usual = 0, rebuild = 0;
    for (int i = 0; i < 5; ++i) {
      data.change({});
      rebuild = std::max(rebuild, peak_of_add(program_));
      usual = std::max(usual, peak_of_add(program_));
    }
    std::optional<Figure> peer;
    if (!reference_.empty()) {
      peer = Figure{"Debian's host-local", static_cast<double>(peak_of_add(reference_)) / 1024.0};
    }
    const auto row = [&](const std::string& id, const std::string& what, long kib) {
      const Row one{.id = "host_local.memory." + id,
                    .what = fmt::format("peak memory of an ADD, {} held{}", thousands(kSizes.back()), what),
                    .value = static_cast<double>(kib) / 1024.0,
                    .unit = "MiB",
                    .peer = peer,
                    .budget = at_most(6)};
      report(fmt::format("{:<58}{:>9.2f} MiB  budget {}", one.what, one.value, one.budget->limit), one);
    };
    const Row size{.id = "host_local.size",
                   .what = "size of host-local",
                   .value = static_cast<double>(fs::file_size(program_)) / 1e6,
                   .unit = "MB",
                   .budget = at_most(2)};
    report(fmt::format("{:<58}{:>9.2f} MB  budget {}", size.what, size.value, size.budget->limit), size);
    row("add", "", usual);
    row("rebuild", ", with a rebuild", rebuild);
    if (peer) fmt::print("{:<58}{:>9.2f} MiB\n", "peak memory of an ADD of the reference", peer->value);
    fs::remove_all(data.path());
  }

  void syncs(bool dual_stack) const {
    constexpr int kCalls = 20;
    DataDir data(disk_ / (dual_stack ? "syncs-two" : "syncs-one"), dual_stack);
    const std::string sets = dual_stack ? ", dual stack" : "";
    const auto count = [&](const std::string& command, const std::string& container) {
      Call traced = data.call(program_, command, container);
      const std::string trace = (disk_ / "trace").string();
      traced.words = {"strace", "-f", "-o", trace, "-e", "trace=fsync,fdatasync,sync_file_range,syncfs,sync,msync",
                      program_};
      if (run(traced) != 0) return -1;
      int syncs = 0;
      std::ifstream lines(trace);
      for (std::string line; std::getline(lines, line);) syncs += line.find("sync") != std::string::npos ? 1 : 0;
      return syncs;
    };
    const int first = count("ADD", "first");
    if (first < 0) {
      not_measured(dual_stack ? "host_local.syncs.dual" : "host_local.syncs", "syncs of host-local" + sets,
                   "strace is not installed or may not trace");
      return;
    }
    int adds = 0, dels = 0;
    for (int i = 0; i < kCalls; ++i) {
      const std::string container = data.new_container();
      adds += count("ADD", container);
      dels += count("DEL", container);
    }
    const auto row = [&](const std::string& id, const std::string& what, double value, std::optional<Budget> budget) {
      const Row one{.id = fmt::format("host_local.syncs{}.{}", dual_stack ? ".dual" : "", id),
                    .what = what + sets,
                    .value = value,
                    .unit = "syncs",
                    .budget = budget};
      report(
          fmt::format("{:<58}{:>9.2f}{}", one.what, value, budget ? fmt::format("      budget {}", budget->limit) : ""),
          one);
    };
    row("first", "syncs of a node's first ADD", first, {});
    row("ADD", fmt::format("syncs an ADD (mean of {})", kCalls), static_cast<double>(adds) / kCalls, at_most(3));
    row("DEL", fmt::format("syncs a DEL (mean of {})", kCalls), static_cast<double>(dels) / kCalls, at_most(1));
  }

  std::string bin_;
  fs::path disk_;
  fs::path memory_;
  std::string program_;
  std::string reference_;  ///< empty: not installed
  Milliseconds empty_{};
};

}  // namespace
}  // namespace croft::bench

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: host_local_bench BIN_DIR [DIRECTORY]\n");
    return 2;
  }
  croft::bench::Bench(argv[1], std::filesystem::absolute(argc > 2 ? argv[2] : ".")).run_all();
  return 0;
}
