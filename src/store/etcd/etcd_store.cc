#include "store/etcd/etcd_store.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "store/epoch.h"
#include "store/etcd/parts.h"

namespace croft::store {
namespace {

class EtcdStore final : public Store, public Pausable, public HasEpoch {
 public:
  EtcdStore(std::unique_ptr<etcd::Client> client, const Clock& clock, Random& random,
            std::unique_ptr<etcd::Registry> registry, OwnDenied own_denied)
      : client_(std::move(client)),
        random_(random),
        registry_(std::move(registry)),
        own_denied_(std::move(own_denied)),
        places_(registry_.get()),
        epoch_(*client_, random_, own_denied_ != nullptr),
        parts_{*client_, places_, epoch_, clock} {}

  [[nodiscard]] Result<Page> list(const ListRequest& request, Deadline deadline) override {
    TRY_VOID(settle_own(deadline));
    return etcd::list_page(parts_, request, deadline);
  }

  [[nodiscard]] Result<ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override {
    TRY_VOID(settle_own(deadline));
    return etcd::read_wanted(parts_, wanted, deadline);
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
            .late_commits = true,
            .lacks = registry_ != nullptr
                         ? core::Kinds{Kind::name_space}
                         : core::Kinds{Kind::name_space, Kind::service_cidr, Kind::ip_address, Kind::range_allocation},
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
    auto own = etcd::RangeRequest::prefix(std::string(calico::own_root()));
    own.limit = 1;
    own.keys_only = true;
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
  const OwnDenied own_denied_;
  std::mutex own_mutex_;
  bool is_own_settled_ = false;  ///< guarded by own_mutex_
  etcd::Places places_;          ///< settle_own() changes it, before the first read
  mutable etcd::Epoch epoch_;
  const etcd::Parts parts_;
  std::atomic<bool> is_filling_ = false;  ///< Pausable::fill
};

}  // namespace

std::unique_ptr<Store> make_etcd_store(std::unique_ptr<etcd::Client> client, const Clock& clock, Random& random,
                                       std::unique_ptr<etcd::Registry> registry, OwnDenied own_denied) {
  return std::make_unique<EtcdStore>(std::move(client), clock, random, std::move(registry), std::move(own_denied));
}

}  // namespace croft::store
