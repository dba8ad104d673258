#include "store/etcd/looks.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace croft::store::etcd {
namespace {

constexpr const char* kPlace = "/croft/v1/looks";
constexpr std::size_t kMarkLength = 17;  // with the end of its line
constexpr int kTriesMax = 16;

std::vector<std::string> lines_of(const std::string& value) {
  std::vector<std::string> lines;
  // What is no mark (another program's) is not kept.
  for (std::size_t at = 0; at + kMarkLength <= value.size() && lines.size() < Looks::kMarksMax; at += kMarkLength) {
    lines.push_back(value.substr(at, kMarkLength));
  }
  return lines;
}

}  // namespace

bool Looks::has_mine(const std::string& value) const {
  const auto lines = lines_of(value);
  return std::ranges::any_of(mine_, [&](const std::string& mark) { return std::ranges::count(lines, mark) > 0; });
}

std::string Looks::with(const std::string& mark, const std::string& value) const {
  std::string marks = mark;
  std::size_t count = 1;
  for (const std::string& line : lines_of(value)) {
    if (std::ranges::count(mine_, line) > 0 || ++count > kMarksMax) continue;
    marks += line;
  }
  return marks;
}

Result<std::uint64_t> Looks::renew(Kv& kv, Deadline deadline) {
  const std::lock_guard lock(mutex_);
  bool is_counted = false;
  for (int i = 0; i < kTriesMax; ++i) {
    TRY(const auto found, kv.range(RangeRequest::one(kPlace), deadline));
    const bool is_there = !found.kvs.empty();
    const std::string value = is_there ? found.kvs.front().value : std::string();
    if (!mine_.empty() && !has_mine(value) && !std::exchange(is_counted, true)) ++gone_;
    std::string mark = fmt::format("{:016x}\n", random_.next());
    TxnRequest request;
    request.compares = {is_there ? wire::etcd::Compare::unchanged(kPlace, found.kvs.front().mod_revision)
                                 : wire::etcd::Compare::absent(kPlace)};
    request.success.emplace_back(wire::etcd::PutRequest{kPlace, with(mark, value)});
    const auto done = kv.txn(request, deadline);
    if (!done && done.error().code != ErrorCode::unknown_outcome) return fail(done.error());
    if (done && !done->succeeded) continue;
    if (done) {
      mine_ = {std::move(mark)};
      return gone_;
    }
    mine_.push_back(std::move(mark));
  }
  return fail(ErrorCode::conflict, "others look at the register all the time; try again");
}

}  // namespace croft::store::etcd
