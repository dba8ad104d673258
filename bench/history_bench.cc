// How large a history is, and how long a question takes (docs/promises.md#floors).
//
// usage: history_bench DIR [MILLIONS]     MILLIONS of holders, 10 by default, as 1,000 nodes and 3,000 ReplicaSets make
// them

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "history/door/history_file.h"
#include "os/files.h"
#include "os/process.h"

namespace croft {
namespace {

using edge::HistoryFile;

constexpr std::uint32_t kAddresses = 250'000;
constexpr int kQuestions = 200;
const WallTime kBegin{std::chrono::seconds(1768471200)};

net::Address address_of(std::uint32_t number) { return net::Address::v4(0x0a000000 + number % kAddresses); }
WallTime time_of(std::uint64_t number) { return kBegin + std::chrono::milliseconds(700 * number); }
std::string pod_of(std::uint64_t number) {
  return fmt::format("service-{}-7d9f8b6c5-{:05x}", number % 3000, number * 2654435761 % 0xfffff);
}

core::history::Begun begun_of(std::uint64_t number) {
  core::history::Begun begun;
  begun.holding.address = address_of(static_cast<std::uint32_t>(number * 7919));
  begun.holding.pool = "default-ipv4";
  begun.holding.holder = {fmt::format("node-{}", number % 1000),
                          fmt::format("team-{}", number % 40),
                          pod_of(number),
                          fmt::format("{:08x}-1234-4abc-8def-{:012x}", number & 0xffffffff, number * 40503),
                          "k8s-pod-network",
                          fmt::format("{:064x}", number * 2654435761),
                          "eth0",
                          ""};
  begun.holding.begin = core::history::Moment::at(time_of(number));
  begun.print = number;
  return begun;
}

double longest_ms(const std::function<Result<void>(std::uint64_t)>& ask, std::uint64_t count) {
  SeededRandom random(1);
  double longest = 0;
  for (int i = 0; i < kQuestions; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    if (const auto done = ask(random.next() % count); !done) std::abort();
    longest =
        std::max(longest, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  return longest;
}

Result<void> run(const std::string& directory, std::uint64_t count) {
  const std::string path = directory + "/history.db";
  TRY(auto file, HistoryFile::open(path, {std::chrono::hours(24 * 3650), std::int64_t{1} << 40}));
  const auto begin = std::chrono::steady_clock::now();
  constexpr std::uint64_t kBatch = 5000;
  for (std::uint64_t number = 0; number < count;) {
    engine::HistoryEntry entry;
    core::history::Changes& changes = entry.changes.emplace_back();
    for (const std::uint64_t end = std::min(number + kBatch, count); number < end; ++number) {
      // Whoever had the address before has let it go just now.
      changes.ended.push_back({begun_of(number).holding.address, core::history::Moment::at(time_of(number))});
      changes.begun.push_back(begun_of(number));
    }
    entry.alive = time_of(number);
    TRY_VOID(file->write(entry));
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  file.reset();  // the log becomes part of the file
  TRY(const auto status, os::file_status(path));
  TRY(const auto read, HistoryFile::open_to_read(path));
  const auto at = [&](std::uint64_t number) -> Result<void> {
    TRY_VOID(read->holder_at(begun_of(number).holding.address, time_of(number) + std::chrono::seconds(1)));
    return {};
  };
  const auto of_pod = [&](std::uint64_t number) -> Result<void> {
    edge::HistoryQuestion question;
    question.pod = pod_of(number);
    TRY_VOID(read->holdings(question));
    return {};
  };
  const auto of_node = [&](std::uint64_t number) -> Result<void> {
    edge::HistoryQuestion question;
    question.node = fmt::format("node-{}", number % 1000);
    TRY_VOID(read->holdings(question));
    return {};
  };
  const std::string text = fmt::format(
      "{} holders: {:.2f} GiB, {:.0f} bytes each, written at {:.0f} a second\nlongest of {} questions: who {:.1f} ms, "
      "a pod {:.1f} ms, a node (1,000 rows) {:.1f} ms\n",
      count, static_cast<double>(status->bytes) / (1 << 30),
      static_cast<double>(status->bytes) / static_cast<double>(count), static_cast<double>(count) / seconds, kQuestions,
      longest_ms(at, count), longest_ms(of_pod, count), longest_ms(of_node, count));
  static_cast<void>(os::write_standard_output(text));
  return {};
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
