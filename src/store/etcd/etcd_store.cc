#include "store/etcd/etcd_store.h"

#include <atomic>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "base/printable.h"
#include "base/texts.h"
#include "calico/etcd_records.h"
#include "store/calico/codec.h"
#include "store/etcd/format/api.h"
#include "store/etcd/store_parts.h"
#include "store/pause.h"

namespace croft::store {
namespace {

class EtcdStore final : public Store, public Pausable, public HasEpoch {
 public:
  EtcdStore(std::unique_ptr<etcd::Client> client, const Clock& clock, Random& random,
            std::unique_ptr<etcd::Registry> registry, OnOwnDenied own_denied)
      : client_(std::move(client)),
        random_(random),
        registry_(std::move(registry)),
        own_denied_(std::move(own_denied)),
        places_(registry_.get()),
        epoch_(*client_, random_, own_denied_ != nullptr),
        parts_{*client_, places_, epoch_, clock} {}

  [[nodiscard]] Result<void> for_each(const ListRequest& request, const Until& until, const Take& take) override {
    TRY_VOID(settle_own(until()));
    return etcd::for_each_record(parts_, request, until, take);
  }

  [[nodiscard]] Result<ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override {
    TRY_VOID(settle_own(deadline));
    return etcd::read_missing(parts_, wanted, deadline);
  }

  [[nodiscard]] Result<Revision> commit(std::span<const Write> writes, const WriteToken& token,
                                        Deadline deadline) override {
    return etcd::commit_writes(parts_, writes, token, is_filling_, deadline);
  }

  [[nodiscard]] Result<Fate> fate_of(std::span<const Write> writes, const WriteToken& token,
                                     Deadline deadline) override {
    return etcd::fate_of_commit(parts_, writes, token, deadline);
  }

  [[nodiscard]] Result<Revision> position(Deadline deadline) override { return etcd::position_now(parts_, deadline); }

  [[nodiscard]] Result<std::unique_ptr<Watch>> watch(const WatchScope& scope, Revision after, Deadline) override {
    for (const Key& key : scope.records) TRY_VOID(places_.check_kind(key.kind));
    for (const core::Listing& listing : scope.lists) TRY_VOID(places_.check_kind(listing.kind));
    return etcd::make_watch(parts_, *this, random_, scope, after);
  }

  [[nodiscard]] Result<std::unique_ptr<Turn>> take_turn(Deadline) override { return std::unique_ptr<Turn>(); }

  [[nodiscard]] Capabilities capabilities() const override {
    return {.atomic_commit = true,
            .foreign_writers = true,
            .lacks = registry_ != nullptr ? core::Kinds{Kind::name_space}
                                          : core::Kinds{Kind::name_space, Kind::service_cidr, Kind::range_allocation},
            .services =
                registry_ != nullptr && registry_->has(Kind::service) ? core::System::kubernetes : core::System::croft};
  }

  [[nodiscard]] std::uint64_t epoch() const override { return epoch_.number(); }
  [[nodiscard]] Result<void> begin_epoch(Deadline deadline) override { return epoch_.begin(deadline); }
  [[nodiscard]] Result<void> belong_to(const std::string& kube_system, Deadline deadline) override {
    return epoch_.belong_to(kube_system, deadline);
  }

  [[nodiscard]] Result<std::optional<StoredPause>> pause(Deadline deadline) override {
    return etcd::read_pause(*client_, deadline);
  }
  [[nodiscard]] Result<void> change_pause(const std::optional<StoredPause>& there,
                                          const std::optional<core::Pause>& next, Deadline deadline) override {
    return etcd::change_pause(*client_, there, next, deadline);
  }
  void fill() override { is_filling_ = true; }
  /// That there is no pause is a condition of each transaction.
  [[nodiscard]] std::chrono::seconds settling() const override { return std::chrono::seconds(0); }

 private:
  /// A store that only looks asks once whether Croft's own records may be read, as etcd refuses a read as a whole.
  [[nodiscard]] Result<void> settle_own(Deadline deadline) {
    if (!own_denied_) return {};
    const std::lock_guard lock(own_mutex_);
    if (std::exchange(is_own_settled_, true)) return {};
    auto own = wire::etcd::range_of_prefix(std::string(calico::own_root()));
    own.set_limit(1);
    own.set_keys_only(true);
    const auto seen = client_->range(own, deadline);
    if (seen) return {};
    is_own_settled_ = seen.error().code == ErrorCode::permission_denied;
    if (!is_own_settled_) return fail(seen.error());
    places_.leave_out_own();
    own_denied_(seen.error());
    return {};
  }

  const std::unique_ptr<etcd::Client> client_;
  Random& random_;
  const std::unique_ptr<etcd::Registry> registry_;
  const OnOwnDenied own_denied_;
  std::mutex own_mutex_;
  bool is_own_settled_ = false;  ///< guarded by own_mutex_
  etcd::Places places_;          ///< settle_own() changes it, before the first read
  mutable etcd::Epoch epoch_;
  const etcd::CallContext parts_;
  std::atomic<bool> is_filling_ = false;  ///< Pausable::fill
};

}  // namespace

std::unique_ptr<Store> make_etcd_store(std::unique_ptr<etcd::Client> client, const Clock& clock, Random& random,
                                       std::unique_ptr<etcd::Registry> registry, OnOwnDenied own_denied) {
  return std::make_unique<EtcdStore>(std::move(client), clock, random, std::move(registry), std::move(own_denied));
}

}  // namespace croft::store

namespace croft::store::etcd {
namespace {

[[nodiscard]] Result<calico::Decoded> decode_sound(const Places& places, const Key& key, const wire::etcd::KeyValue& kv,
                                                   const std::optional<std::string>& beside) {
  const Registry* registry = places.registry_of(key.kind);
  if (registry == nullptr) return calico::decode(key, kv.key(), kv.value(), beside);
  TRY(Value value, registry->decode(key, kv.key(), kv.value()));
  return calico::Decoded{std::move(value), {}};
}

}  // namespace

calico::StoredBytes encode(const Places& places, const Value& value, const WriteToken& token, WallTime now) {
  const Registry* registry = places.registry_of(core::kind_of(value));
  if (registry == nullptr) return calico::encode(value, token, now);
  return {registry->encode(value), {}};
}

Result<Record> decode(const Places& places, const Key& key, const wire::etcd::KeyValue& kv,
                      const std::optional<std::string>& beside, EpochNumber epoch) {
  auto decoded = decode_sound(places, key, kv, beside);
  Record record;
  if (decoded) {
    record.value = std::move(decoded->value);
    record.token = decoded->token;
  } else {
    Error error = std::move(decoded).error();
    // A record of a newer version, or encrypted at rest by Kubernetes, is sound, but not for Croft to read as it is.
    const bool is_sound = error.code == ErrorCode::newer_version || error.code == ErrorCode::refused_by_configuration;
    if (!is_sound) error.code = ErrorCode::corrupt;
    record.value = fail(std::move(error));
    if (beside) record.calicos = calico::without_beside(key, kv.key(), kv.value());
  }
  record.key = key;
  record.revision = revision_in_epoch(epoch, kv.mod_revision());
  return record;
}

bool is_written_by(const Places& places, const Key& key, const Value& value, const WriteToken& token,
                   std::string_view stored) {
  const Registry* registry = places.registry_of(key.kind);
  if (registry == nullptr) return calico::is_written_by(key, value, token, stored);
  return registry->encode(value) == stored;
}

bool names_its_commit(const Places& places, const Write& write) {
  return places.registry_of(write.key.kind) == nullptr && calico::names_its_commit(write);
}

namespace {

using wire::etcd::Compare;
using wire::etcd::KeyValue;
using wire::etcd::range_of_key;

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
  return fail(ErrorCode::corrupt,
              "{} is damaged: nobody can tell whose register this is. Compare it with what runs, then write "
              "another with `croft store new-epoch` (docs/runbooks/backup-and-restore-etcd.md)",
              kEpochPlace);
}

/// A record that is not there equals no value.
[[nodiscard]] Compare is_still(const std::optional<std::string>& record) {
  return record ? wire::etcd::has_value(kEpochPlace, *record) : wire::etcd::absent(kEpochPlace);
}

[[nodiscard]] Error other_cluster(std::uint64_t recorded, std::uint64_t there) {
  return make_error(ErrorCode::unavailable,
                    "this etcd was restored, or is a copy: its register is of cluster {:x}, and this is cluster {:x}. "
                    "Follow docs/runbooks/backup-and-restore-etcd.md from step 5, then run `croft store new-epoch`",
                    recorded, there);
}

[[nodiscard]] Error changing() {
  return {ErrorCode::conflict, "the register's epoch is changed by others all the time; try again", {}};
}

}  // namespace

/// With mutex_ held.
void Epoch::follow_history() {
  if (std::exchange(history_, client_.history()) == history_) return;
  number_ = (number_ + 1) & kEpochNumberMax;
  seen_at_ = 0;
}

EpochNumber Epoch::number() {
  const std::lock_guard lock(mutex_);
  follow_history();
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
      if (record_ == record->value() && cluster_ == cluster) return {};
    }
    TRY(read, read_record(record->value()));
    if (read.cluster != cluster && !only_looks_) return fail(other_cluster(read.cluster, cluster));
  }
  const std::lock_guard lock(mutex_);
  follow_history();
  // Answers to several threads may come in another order than they were given.
  if (cluster == cluster_ && revision < seen_at_) return {};
  seen_at_ = revision;
  if (epoch_ != 0 && epoch_ != read.epoch) number_ = (number_ + 1) & kEpochNumberMax;
  record_ = record != nullptr ? std::optional(record->value()) : std::nullopt;
  epoch_ = read.epoch;
  cluster_ = cluster;
  return {};
}

Result<Epoch::Known> Epoch::look(Deadline deadline) {
  TRY(const RangeResponse found, client_.range(range_of_key(kEpochPlace), deadline));
  TRY_VOID(take(only_one(found), found.header().cluster_id(), found.header().revision()));
  const std::lock_guard lock(mutex_);
  follow_history();
  return Known{number_, record_, cluster_};
}

Result<Epoch::Known> Epoch::of_writer(Deadline deadline) {
  {
    const std::lock_guard lock(mutex_);
    follow_history();
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
  *txn.add_compare() = is_still(known.record);
  *txn.add_failure() = wire::etcd::to_get(range_of_key(kEpochPlace));
}

Result<bool> Epoch::replace(const std::optional<std::string>& before, const EpochRecord& after, Deadline deadline) {
  TxnRequest txn;
  *txn.add_compare() = is_still(before);
  *txn.add_success() = wire::etcd::to_put(kEpochPlace, record_text(after));
  TRY(const TxnResponse done, client_.txn(txn, deadline));
  return done.succeeded();
}

Result<void> Epoch::begin(Deadline deadline) {
  for (int i = 0; i < kTriesMax; ++i) {
    TRY(const RangeResponse found, client_.range(range_of_key(kEpochPlace), deadline));
    const KeyValue* there = only_one(found);
    const auto before = there == nullptr ? std::nullopt : std::optional(there->value());
    TRY(const bool is_done, replace(before, {drawn(), found.header().cluster_id(), {}}, deadline));
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
      return fail(ErrorCode::refused_by_configuration,
                  "the register is of the Kubernetes cluster whose kube-system has UID {}, and this one's "
                  "has {}: two clusters must not share one register. Name another etcd, or run `croft store "
                  "new-epoch` where the older cluster is gone",
                  echo(epoch.kube_system), echo(kube_system));
    }
    epoch.kube_system = kube_system;
    // Whether it is done, the next round tells.
    if (const auto done = replace(there.record, epoch, deadline); !done) return fail(done.error());
    TRY_VOID(look(deadline));
  }
  return fail(changing());
}

using core::Kind;

Result<void> Places::check_kind(Kind kind) const {
  if (core::traits_of(kind).system != core::System::kubernetes || registry_ != nullptr) return {};
  return fail(ErrorCode::invalid_argument,
              "this program has no part for Kubernetes' records in etcd ({}): use croft or croftd",
              core::name_of(kind));
}

bool Places::leaves_out(Kind kind) const {
  return !has_own_ && !calico::is_calicos(kind) && registry_of(kind) == nullptr;
}

std::optional<std::string> Places::place_beside(const core::Key& key) const {
  return has_own_ ? calico::place_beside(key) : std::nullopt;
}

std::optional<std::string> Places::places_beside(Kind kind) const {
  return has_own_ ? calico::places_beside(kind) : std::nullopt;
}

std::string Places::root_of(Kind kind) const {
  if (const Registry* registry = registry_of(kind)) return registry->root_of(kind);
  // Where Services are Kubernetes', Croft's own are the others, if they take from the same ranges.
  const bool is_own_service =
      kind == Kind::foreign_service && registry_ != nullptr && registry_->gives_to_own_services();
  if (is_own_service) kind = Kind::service;
  return calico::own_root_of(kind);
}

Result<std::string> Places::place_of(const core::Key& key) const {
  TRY_VOID(check_kind(key.kind));
  return calico::is_calicos(key.kind) ? wire::calico::place_of(key) : root_of(key.kind) + key.name;
}

std::optional<core::Key> Places::record_at(Kind kind, std::string_view place) const {
  if (calico::is_calicos(kind)) {
    auto key = wire::calico::record_at(place);
    return key && key->kind == kind && wire::calico::place_of(*key) == place ? std::move(key) : std::nullopt;
  }
  const std::string root = root_of(kind);
  if (!place.starts_with(root) || place.size() == root.size()) return std::nullopt;
  return core::Key{kind, std::string(place.substr(root.size()))};
}

std::optional<core::Key> Places::listed_at(Kind kind, std::string_view place) const {
  if (kind != Kind::block) return record_at(kind, place);
  auto key = wire::calico::record_at(place);
  return key && key->kind == kind ? std::move(key) : std::nullopt;
}

Result<std::vector<PlaceRange>> Places::ranges_of(const core::Listing& listing) const {
  TRY_VOID(check_kind(listing.kind));
  std::vector<PlaceRange> ranges;
  if (leaves_out(listing.kind)) return ranges;
  std::vector<std::string> prefixes{root_of(listing.kind) + listing.name_prefix};
  if (calico::is_calicos(listing.kind)) prefixes = wire::calico::places_of(listing);
  for (std::string& prefix : prefixes) {
    std::string end = wire::etcd::end_of_prefix(prefix);
    ranges.push_back({std::move(prefix), std::move(end)});
  }
  return ranges;
}

}  // namespace croft::store::etcd
