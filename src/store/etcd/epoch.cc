#include "store/etcd/epoch.h"

#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/net/echo.h"

namespace croft::store::etcd {
namespace {

using wire::etcd::Compare;
using wire::etcd::KeyValue;
using wire::etcd::PutRequest;

constexpr int kTriesMax = 16;
constexpr std::size_t kUidBytesMax = 64;

[[nodiscard]] std::string record_text(const EpochRecord& record) {
  return fmt::format("{:016x} {:x} {}", record.epoch, record.cluster, record.kube_system);
}

/// Takes the hexadecimal number that `text` begins with, and the space behind it; 0 where there is none.
[[nodiscard]] std::uint64_t take_number(std::string_view& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  const auto length = static_cast<std::size_t>(end - text.data());
  if (error != std::errc() || length == text.size() || text[length] != ' ') return 0;
  text.remove_prefix(length + 1);
  return number;
}

[[nodiscard]] Result<EpochRecord> read_record(std::string_view text) {
  EpochRecord record;
  record.epoch = take_number(text);
  record.cluster = take_number(text);
  record.kube_system = text;
  if (record.epoch != 0 && record.cluster != 0 && text.size() <= kUidBytesMax) return record;
  return fail(
      ErrorCode::corrupt,
      fmt::format("{} is damaged: nobody can tell whose register this is. Compare it with what runs, then write "
                  "another with `croft store new-epoch` (docs/runbooks/backup-and-restore-etcd.md)",
                  kEpochPlace));
}

/// A record that is not there equals no value.
[[nodiscard]] Compare is_still(const std::optional<std::string>& record) {
  return record ? Compare::is(kEpochPlace, *record) : Compare::absent(kEpochPlace);
}

[[nodiscard]] Error other_cluster(std::uint64_t recorded, std::uint64_t there) {
  return {
      ErrorCode::unavailable,
      fmt::format("this etcd was restored, or is a copy: its register is of cluster {:x}, and this is cluster {:x}. "
                  "Follow docs/runbooks/backup-and-restore-etcd.md from step 5, then run `croft store new-epoch`",
                  recorded, there),
      {}};
}

[[nodiscard]] Error changing() {
  return {ErrorCode::conflict, "the register's epoch is changed by others all the time; try again", {}};
}

}  // namespace

/// With mutex_ held.
void Epoch::fold_history() {
  if (std::exchange(history_, client_.history()) == history_) return;
  number_ = (number_ + 1) & kEpochNumberMax;
  seen_at_ = 0;
}

EpochNumber Epoch::number() {
  const std::lock_guard lock(mutex_);
  fold_history();
  return number_;
}

std::uint64_t Epoch::drawn() {
  const std::lock_guard lock(mutex_);
  return random_.next() | 1;
}

Result<void> Epoch::take(const KeyValue* record, std::uint64_t cluster, Revision revision) {
  EpochRecord read;
  if (record != nullptr) {
    {
      const std::lock_guard lock(mutex_);
      if (record_ == record->value && cluster_ == cluster) return {};
    }
    TRY(read, read_record(record->value));
    if (read.cluster != cluster && !only_looks_) return fail(other_cluster(read.cluster, cluster));
  }
  const std::lock_guard lock(mutex_);
  fold_history();
  // Answers to several threads may come in another order than they were given.
  if (cluster == cluster_ && revision < seen_at_) return {};
  seen_at_ = revision;
  if (epoch_ != 0 && epoch_ != read.epoch) number_ = (number_ + 1) & kEpochNumberMax;
  record_ = record != nullptr ? std::optional(record->value) : std::nullopt;
  epoch_ = read.epoch;
  cluster_ = cluster;
  return {};
}

Result<Epoch::Known> Epoch::look(Deadline deadline) {
  TRY(const RangeResponse found, client_.range(RangeRequest::one(kEpochPlace), deadline));
  TRY_VOID(take(found.kvs.empty() ? nullptr : &found.kvs.front(), found.cluster, found.revision));
  const std::lock_guard lock(mutex_);
  fold_history();
  return Known{number_, record_, cluster_};
}

Result<Epoch::Known> Epoch::of_writer(Deadline deadline) {
  {
    const std::lock_guard lock(mutex_);
    fold_history();
    if (record_) return Known{number_, record_, cluster_};
  }
  TRY(Known there, look(deadline));
  if (there.record) return there;
  // Whether it or another one is made, the next look tells.
  if (const auto made = replace(std::nullopt, {drawn(), there.cluster, {}}, deadline); !made) {
    return fail(Error(made.error()).in(kEpochPlace));
  }
  return look(deadline);
}

void Epoch::add_to(TxnRequest& txn, const Known& known) {
  txn.compares.push_back(is_still(known.record));
  txn.failure.emplace_back(RangeRequest::one(kEpochPlace));
}

Result<bool> Epoch::replace(const std::optional<std::string>& before, const EpochRecord& after, Deadline deadline) {
  TxnRequest txn;
  txn.compares.push_back(is_still(before));
  txn.success.emplace_back(PutRequest{kEpochPlace, record_text(after)});
  TRY(const TxnResponse done, client_.txn(txn, deadline));
  return done.succeeded;
}

Result<void> Epoch::begin(Deadline deadline) {
  for (int i = 0; i < kTriesMax; ++i) {
    TRY(const RangeResponse found, client_.range(RangeRequest::one(kEpochPlace), deadline));
    const auto before = found.kvs.empty() ? std::nullopt : std::optional(found.kvs.front().value);
    TRY(const bool is_done, replace(before, {drawn(), found.cluster, {}}, deadline));
    if (is_done) return {};
  }
  return fail(changing());
}

Result<void> Epoch::belong_to(const std::string& kube_system, Deadline deadline) {
  for (int i = 0; i < kTriesMax; ++i) {
    TRY(const Known there, of_writer(deadline));
    if (!there.record) return fail(changing());
    TRY(EpochRecord epoch, read_record(*there.record));
    if (epoch.kube_system == kube_system) return {};
    if (!epoch.kube_system.empty()) {
      return fail(
          ErrorCode::refused_by_configuration,
          fmt::format("the register is of the Kubernetes cluster whose kube-system has UID {}, and this one's "
                      "has {}: two clusters must not share one register. Name another etcd, or run `croft store "
                      "new-epoch` where the older cluster is gone",
                      net::echo(epoch.kube_system), net::echo(kube_system)));
    }
    epoch.kube_system = kube_system;
    // Whether it is done, the next round tells.
    if (const auto done = replace(there.record, epoch, deadline); !done) return fail(done.error());
    TRY_VOID(look(deadline));
  }
  return fail(changing());
}

}  // namespace croft::store::etcd
