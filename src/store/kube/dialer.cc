#include "store/kube/dialer.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/net/address.h"

namespace croft::store::kube {
namespace {

using wire::kube::KubeAccess;
using wire::kube::KubeServer;

/// Of a page of a list, and what else is asked for meanwhile.
constexpr std::size_t kUnreadBytesMax = std::size_t{32} << 20;

bool is_numeric(const std::string& host) { return net::Address::parse(host).has_value(); }

/// The name a server's certificate must have; empty: its address.
std::string certificate_name(const KubeAccess& access, const KubeServer& server) {
  if (!access.tls_server_name.empty()) return access.tls_server_name;
  return is_numeric(server.host) ? std::string() : server.host;
}

os::TlsFiles tls_files(const KubeAccess& access, const KubeServer& server) {
  os::TlsFiles files;
  files.ca_file = access.ca.file;
  files.ca_pem = access.ca.data;
  files.certificate_file = access.certificate.file;
  files.certificate_pem = access.certificate.data;
  files.key_file = access.key.file;
  files.key_pem = access.key.data;
  files.server_name = certificate_name(access, server);
  return files;
}

}  // namespace

Result<void> Dialer::check(const ClientOptions& options) {
  const KubeAccess& access = options.access;
  if (access.servers.empty() || access.servers.size() > wire::kube::kKubeServersMax) {
    return fail(invalid_argument(fmt::format("Kubernetes needs 1 to {} API servers, not {}",
                                             wire::kube::kKubeServersMax, access.servers.size())));
  }
  for (const KubeServer& server : access.servers) {
    const std::string name = server.text();
    if (server.secure != access.servers.front().secure) {
      return fail(invalid_argument(fmt::format("{}: some servers are https and others are not", name)));
    }
    if (!server.secure && access.has_identity()) {
      return fail(invalid_argument(fmt::format("{} is no https: no token and no certificate goes there", name)));
    }
    if (server.secure && !options.make_security) {
      return fail(invalid_argument(fmt::format("{}: this program has no part for https", name)));
    }
    if (server.secure && !access.ca.is_set()) return fail(invalid_argument(fmt::format("{} needs a CA", name)));
    if (!is_numeric(server.host) && !options.look_up) {
      return fail(invalid_argument(fmt::format(
          "{}: names are not looked up here; write the server's numeric address, and its name as tls-server-name",
          name)));
    }
  }
  return {};
}

Dialer::Dialer(const ClientOptions& options, const Clock& clock)
    : look_up_(options.look_up),
      dial_timeout_(options.dial_timeout),
      clock_(clock),
      aside_until_(options.access.servers.size()) {
  for (const KubeServer& server : options.access.servers) {
    places_.push_back({server, server.secure ? options.make_security(tls_files(options.access, server)) : nullptr});
  }
}

Result<std::shared_ptr<os::Http2Connection>> Dialer::dial_one(const Place& place, Deadline deadline) {
  const KubeServer& server = place.server;
  std::vector<std::string> addresses{server.host};
  if (!is_numeric(server.host)) {
    auto found = look_up_(server.host, deadline);
    if (!found) return fail(found.error().in(server.text()));
    addresses = *std::move(found);
  }
  Error last{ErrorCode::unavailable, fmt::format("{} has no address", server.text()), {}};
  for (const std::string& address : addresses) {
    ++dials_;
    const os::Endpoint endpoint{os::Endpoint::Kind::tcp, server.secure, address, server.port, {}};
    auto transport = os::connect_transport(endpoint, place.security.get(), clock_, deadline);
    if (transport) {
      os::Http2Options options;
      options.settings_timeout = dial_timeout_;
      options.unread_bytes_max = kUnreadBytesMax;
      return os::Http2Connection::make(*std::move(transport), server.text(), options, clock_);
    }
    last = transport.error();
    if (deadline.passed(clock_.now())) break;
  }
  return fail(last);
}

void Dialer::set_aside(std::size_t server) {
  const std::lock_guard lock(mutex_);
  aside_until_[server] = clock_.now().since_boot + kAside;
}

std::vector<std::size_t> Dialer::order_from(std::size_t first, const Instant& now) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < places_.size(); ++i) order.push_back((first + i) % places_.size());
  const std::lock_guard lock(mutex_);
  std::stable_partition(order.begin(), order.end(),
                        [&](std::size_t server) { return aside_until_[server] <= now.since_boot; });
  return order;
}

Result<Dialer::Dialed> Dialer::dial(std::size_t first, Deadline deadline) {
  ErrorCode code = ErrorCode::unavailable;
  std::string reasons;
  for (const std::size_t server : order_from(first, clock_.now())) {
    const Instant now = clock_.now();
    if (deadline.passed(now)) {
      return fail(ErrorCode::deadline_exceeded, "no Kubernetes API server could be reached in time" + reasons);
    }
    auto connection = dial_one(places_[server], earlier(deadline, Deadline::after(now, dial_timeout_)));
    if (connection) return Dialed{*std::move(connection), server};
    set_aside(server);
    reasons += fmt::format("{}{}", reasons.empty() ? ": " : "; ", connection.error().message);
    // A file that is missing may be on its way: certificates are renewed while plugins run.
    const bool passes = is_transient(connection.error().code) || connection.error().code == ErrorCode::not_found;
    if (!passes) code = connection.error().code;
  }
  return fail(code, "no Kubernetes API server can be reached" + reasons);
}

}  // namespace croft::store::kube
