#include "edge/cni/host_local.h"

#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/quoted.h"
#include "edge/decision_log.h"
#include "engine/host_local.h"
#include "os/directory.h"
#include "wire/cni/resolv_conf.h"
#include "wire/host_local/config.h"

namespace croft::edge {
namespace {

namespace cni = wire::cni;
using cni::Checked;
using cni::HostLocalConfig;
using store::Holder;
using Failure = std::optional<cni::Error>;

constexpr std::size_t kResolvConfBytesMax = std::size_t{1} << 20;

/// Writes the log line of a command when it ends.
class Decision {
 public:
  Decision(const HostLocalWorld& world, const char* command, const HostLocalConfig& config, const Holder* holder)
      : world_(world) {
    if (world.log) line_.emplace(world.clock, subject_of(command, config, holder));
  }

  /// Logs the failure and turns it into a CNI error: the reference knows one code.
  cni::Error failed(const Error& error) {
    if (line_) world_.log(line_->ended("error", "error=" + in_quotes(error.message)));
    return {cni::Code::internal, error.message, error.details};
  }
  void succeeded(const std::string& what) {
    if (line_) world_.log(line_->ended("ok", what));
  }

 private:
  static std::string subject_of(const char* command, const HostLocalConfig& config, const Holder* holder) {
    std::string subject =
        fmt::format("host-local {} network={} dir={}", command, config.name, in_quotes_if_needed(config.data_dir));
    if (holder != nullptr) {
      subject += fmt::format(" container={} ifname={}", holder->container_id, holder->interface_name);
    }
    return subject;
  }

  const HostLocalWorld& world_;
  std::optional<DecisionLine> line_;
};

[[nodiscard]] Result<cni::Dns> read_dns(const HostLocalConfig& config) {
  if (config.resolv_conf.empty()) return cni::Dns();
  TRY(const std::string text, os::read_named_file(config.resolv_conf, kResolvConfBytesMax));
  return wire::parse_resolv_conf(text);
}

[[nodiscard]] Result<cni::AddResult> assign(const HostLocalWorld& world, const HostLocalConfig& config,
                                            const Holder& holder) {
  cni::AddResult result;
  TRY(result.dns, read_dns(config));
  TRY(const auto reservations, world.make_reservations(config.data_dir, config.name));
  TRY(const auto picks,
      engine::assign_from_ranges(*reservations, {holder, config.sets, config.requested_addresses}, world.warn));
  for (const core::host_local::Pick& pick : picks) result.ips.push_back({pick.address, pick.gateway});
  result.routes = config.routes;
  return result;
}

/// Whether nothing can be made there, which is no reason to fail when there is nothing.
bool forbids_making(ErrorCode code) {
  return code == ErrorCode::read_only || code == ErrorCode::permission_denied || code == ErrorCode::storage_full;
}

/// A directory that is not there and cannot be made holds nothing.
[[nodiscard]] Result<std::vector<net::Address>> release(const HostLocalWorld& world, const HostLocalConfig& config,
                                                        const Holder& holder) {
  auto reservations = world.make_reservations(config.data_dir, config.name);
  if (!reservations && forbids_making(reservations.error().code)) {
    const auto existing = world.open_reservations(config.data_dir, config.name);
    if (!existing && existing.error().code == ErrorCode::not_found) return std::vector<net::Address>();
  }
  if (!reservations) return fail(reservations.error());
  return engine::release_from_ranges(**reservations, holder, config.set_count);
}

[[nodiscard]] Result<void> check_reserved(const HostLocalWorld& world, const HostLocalConfig& config,
                                          const Holder& holder) {
  TRY(const auto reservations, world.make_reservations(config.data_dir, config.name));
  std::vector<net::Address> previous;
  for (const net::AddressWithLength& address : config.previous_addresses)
    previous.push_back(address.address.unmapped());
  return engine::check_ranges(*reservations, holder, config.sets, previous);
}

[[nodiscard]] Result<engine::CollectedReservations> collect(const HostLocalWorld& world,
                                                            const HostLocalConfig& config) {
  if (!config.has_ipam || config.valid_attachments.presence != cni::ValidAttachments::Presence::given) {
    return engine::CollectedReservations();
  }
  // Before the lock is waited for: what was reserved meanwhile is young, the list does not know it.
  const Instant now = world.clock.now();
  const auto reservations = world.open_reservations(config.data_dir, config.name);
  if (!reservations && reservations.error().code == ErrorCode::not_found) return engine::CollectedReservations();
  if (!reservations) return fail(reservations.error());
  std::set<Holder> alive;
  for (const cni::Attachment& attachment : config.valid_attachments.entries) {
    alive.insert({attachment.container_id, attachment.interface_name});
  }
  return engine::collect_from_ranges(**reservations, alive, now);
}

[[nodiscard]] Result<void> ready(const HostLocalWorld& world, const HostLocalConfig& config) {
  TRY_VOID(world.check_directory(config.data_dir, config.name));
  if (!config.status_when_full) return {};
  TRY(const auto reservations, world.make_reservations(config.data_dir, config.name));
  return engine::check_not_full(*reservations, config.sets);
}

Checked<cni::AddResult> add(const HostLocalWorld& world, const HostLocalConfig& config, const Holder& holder) {
  Decision decision(world, "ADD", config, &holder);
  auto result = assign(world, config, holder);
  if (!result) return decision.failed(result.error());
  std::vector<net::Address> addresses;
  for (const cni::AssignedAddress& assigned : result->ips) addresses.push_back(assigned.address.address);
  decision.succeeded("addresses=" + list_of(addresses));
  return *std::move(result);
}

Failure del(const HostLocalWorld& world, const HostLocalConfig& config, const Holder& holder) {
  Decision decision(world, "DEL", config, &holder);
  const auto released = release(world, config, holder);
  if (!released) return decision.failed(released.error());
  decision.succeeded("released=" + list_of(*released));
  return {};
}

Failure check(const HostLocalWorld& world, const HostLocalConfig& config, const Holder& holder) {
  Decision decision(world, "CHECK", config, &holder);
  const auto reserved = check_reserved(world, config, holder);
  if (!reserved) return decision.failed(reserved.error());
  decision.succeeded("");
  return {};
}

Failure gc(const HostLocalWorld& world, const HostLocalConfig& config, const Holder&) {
  Decision decision(world, "GC", config, nullptr);
  const auto collected = collect(world, config);
  if (!collected) return decision.failed(collected.error());
  decision.succeeded(fmt::format("released={} kept_young={}", list_of(collected->released), collected->kept_young));
  return {};
}

Failure status(const HostLocalWorld& world, const HostLocalConfig& config, const Holder&) {
  Decision decision(world, "STATUS", config, nullptr);
  const auto able = ready(world, config);
  if (able) return {};  // asked every few seconds: only failures are worth a line
  return decision.failed(able.error());
}

/// A handler that decodes as much of the configuration as its command needs, then does its work.
template <class Work>
auto decoded(const HostLocalWorld& world, Work work) {
  return [&world, work](const CniRequest& request) -> decltype(work(world, HostLocalConfig(), Holder())) {
    const auto config = cni::decode_host_local_config(request.document, request.environment.args, request.command);
    if (!config) return config.error();
    return work(world, *config, Holder{request.environment.container_id, request.environment.interface_name});
  };
}

}  // namespace

CniPlugin host_local_plugin(const HostLocalWorld& world) {
  CniPlugin plugin;
  plugin.about = std::string("CNI host-local plugin ") + CROFT_VERSION;
  plugin.handlers.add = decoded(world, add);
  plugin.handlers.del = decoded(world, del);
  plugin.handlers.check = decoded(world, check);
  plugin.handlers.gc = decoded(world, gc);
  plugin.handlers.status = decoded(world, status);
  return plugin;
}

}  // namespace croft::edge
