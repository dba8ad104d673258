#include "hostlocal/door/host_local.h"

#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/printable.h"
#include "cni/decision_log.h"
#include "cni/door/cni_call.h"
#include "cni/format/result.h"
#include "hostlocal/format/config.h"
#include "hostlocal/use/host_local.h"
#include "os/directory.h"

namespace croft::edge {
namespace {

namespace cni = wire::cni;
using cni::Checked;
using cni::HostLocalConfig;
using store::Holder;
using store::OpenMode;

constexpr std::size_t kResolvConfBytesMax = std::size_t{1} << 20;

[[nodiscard]] Result<cni::Dns> read_dns(const HostLocalConfig& config) {
  if (config.resolv_conf.empty()) return cni::Dns();
  TRY(const std::string text, os::read_named_file(config.resolv_conf, kResolvConfBytesMax));
  return wire::parse_resolv_conf(text);
}

/// Whether nothing can be made there, which is no reason to fail when there is nothing.
bool forbids_making(ErrorCode code) {
  return code == ErrorCode::read_only || code == ErrorCode::permission_denied || code == ErrorCode::storage_full;
}

class Call final : public CniCall {
 public:
  static Checked<HostLocalConfig> decode(const HostLocalWorld&, const CniRequest& request) {
    return cni::decode_host_local_config(request.network, request.environment.args, request.command);
  }

  Call(const HostLocalWorld& world, const CniRequest& request, HostLocalConfig config)
      : CniCall(world.clock, subject_of(request, config), world.log),
        world_(world),
        config_(std::move(config)),
        holder_{request.environment.container_id, request.environment.interface_name} {}

  [[nodiscard]] Result<Added> add() const {
    cni::AddResult result;
    TRY(result.dns, read_dns(config_));
    TRY(const auto reservations, open(OpenMode::create));
    TRY(const auto picks,
        engine::assign_from_ranges(*reservations, holder_, config_.sets, config_.requested_addresses, world_.warn));
    std::vector<net::Address> addresses;
    for (const core::host_local::Pick& pick : picks) {
      result.ips.push_back({pick.address, pick.gateway});
      addresses.push_back(pick.address.address);
    }
    result.routes = config_.routes;
    return Added{std::move(result), "addresses=" + list_of(addresses)};
  }
  [[nodiscard]] Result<std::string> del() const {
    TRY(const std::vector<net::Address> released, release());
    return "released=" + list_of(released);
  }
  [[nodiscard]] Result<std::string> check() const {
    TRY(const auto reservations, open(OpenMode::create));
    std::vector<net::Address> previous;
    for (const net::AddressWithLength& address : config_.previous_addresses) {
      previous.push_back(address.address.unmapped());
    }
    TRY_VOID(engine::check_ranges(*reservations, holder_, config_.sets, previous));
    return std::string();
  }
  [[nodiscard]] Result<std::string> gc() const {
    TRY(const engine::CollectedReservations collected, collect());
    return fmt::format("released={} kept_young={}", list_of(collected.released), collected.kept_young);
  }
  [[nodiscard]] Result<void> status() const {
    TRY_VOID(world_.check_directory(config_.data_dir, config_.name));
    if (!config_.status_when_full) return {};
    TRY(const auto reservations, open(OpenMode::create));
    return engine::check_not_full(*reservations, config_.sets);
  }

  // The reference knows one code.
  [[nodiscard]] static std::string failure_text(const Error& error) { return "error=" + in_quotes(error.message); }
  [[nodiscard]] static cni::Error cni_error(const Error& error) {
    return {cni::Code::internal, error.message, error.details};
  }

 private:
  static std::string subject_of(const CniRequest& request, const HostLocalConfig& config) {
    return fmt::format("host-local {} network={} dir={}{}", name_of(request.command), config.name,
                       in_quotes_if_needed(config.data_dir), attachment_text(request));
  }

  [[nodiscard]] Result<std::unique_ptr<store::Reservations>> open(OpenMode mode) const {
    return world_.open_reservations(config_.data_dir, config_.name, mode);
  }
  /// A directory that is not there and cannot be made holds nothing.
  [[nodiscard]] Result<std::vector<net::Address>> release() const {
    auto reservations = open(OpenMode::create);
    if (!reservations && forbids_making(reservations.error().code)) {
      const auto existing = open(OpenMode::existing);
      if (!existing && existing.error().code == ErrorCode::not_found) return std::vector<net::Address>();
    }
    if (!reservations) return fail(reservations.error());
    return engine::release_from_ranges(**reservations, holder_, config_.set_count);
  }
  [[nodiscard]] Result<engine::CollectedReservations> collect() const {
    if (!config_.has_ipam || config_.valid_attachments.presence != cni::ValidAttachments::Presence::given) {
      return engine::CollectedReservations();
    }
    // Before the lock is waited for: what was reserved meanwhile is young, the list does not know it.
    const Instant now = world_.clock.now();
    const auto reservations = open(OpenMode::existing);
    if (!reservations && reservations.error().code == ErrorCode::not_found) return engine::CollectedReservations();
    if (!reservations) return fail(reservations.error());
    std::set<Holder> alive;
    for (const cni::Attachment& attachment : config_.valid_attachments.entries) {
      alive.insert({attachment.container_id, attachment.interface_name});
    }
    return engine::collect_from_ranges(**reservations, alive, now);
  }

  const HostLocalWorld& world_;
  const HostLocalConfig config_;
  const Holder holder_;
};

}  // namespace

CniPlugin host_local_plugin(const HostLocalWorld& world) {
  CniPlugin plugin;
  plugin.about = std::string("CNI host-local plugin ") + CROFT_VERSION;
  plugin.handlers = handlers_of<Call>(world);
  return plugin;
}

}  // namespace croft::edge
