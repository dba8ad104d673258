#include "cli/stores/open_store.h"

#include <algorithm>
#include <utility>

#include "cli/stores/open_sqlite.h"
#include "http/tls.h"
#include "os/clock.h"
#include "os/digest.h"
#include "os/files.h"
#include "store/etcd/client.h"
#include "store/kube/client.h"
#include "store/kube/kube_store.h"
#include "store/sqlite/sqlite_store.h"
#include "store/store_url.h"

namespace croft::app {
namespace {

constexpr std::chrono::seconds kOpenLimit{10};
constexpr std::size_t kPasswordBytesMax = 4096;

[[nodiscard]] Result<std::string> read_password(const std::string& path) {
  TRY(std::string password, os::read_secret_file(path, kPasswordBytesMax));
  while (!password.empty() && password.back() == '\n') password.pop_back();
  return password;
}

[[nodiscard]] Result<std::unique_ptr<store::kube::Api>> kube_client(
    const KubePlace& place, const Clock& clock, const StoreParts& parts,
    std::optional<std::chrono::nanoseconds> request_timeout = {}) {
  static os::SystemRandom random;  // outlives every store
  store::kube::ClientOptions options;
  TRY(options.access, kube_access(place));
  options.make_security = [](os::TlsFiles files) { return os::make_tls(std::move(files)); };
  if (parts.look_up != nullptr) options.look_up = parts.look_up;
  if (request_timeout) options.request_timeout = *request_timeout;
  return store::kube::make_client(std::move(options), clock, random);
}

/// The register of a cluster is there, even if a file that leads to it is not. Nobody may take that for a store that
/// does not exist, and a DEL by it for done.
template <class Opened>
[[nodiscard]] Result<Opened> as_away(Result<Opened> opened) {
  if (!opened && opened.error().code == ErrorCode::not_found) opened.error().code = ErrorCode::unavailable;
  return opened;
}

[[nodiscard]] Result<std::unique_ptr<store::Store>> open_etcd(EtcdPlace place, const Clock& clock,
                                                              RegistryMaker registry, store::OnOwnDenied own_denied) {
  TRY_VOID(check_secrecy(place));
  std::unique_ptr<store::etcd::Registry> kubernetes;
  if (registry != nullptr) {
    TRY(kubernetes, registry(place));
  }
  static os::SystemRandom random;  // outlives every store
  store::etcd::ClientOptions options;
  options.endpoints = std::move(place.endpoints);
  options.user = std::move(place.user);
  options.password = std::move(place.password);
  if (!place.password_file.empty()) {
    TRY_VOID(read_password(place.password_file));  // what is wrong with it is said at once
    options.read_password = [file = std::move(place.password_file)] { return read_password(file); };
  }
  if (!place.ca_file.empty()) {
    os::TlsFiles files;
    files.ca_file = place.ca_file;
    files.certificate_file = place.certificate_file;
    files.key_file = place.key_file;
    files.server_name = std::move(place.server_name);
    options.security = os::make_tls(std::move(files));
  }
  TRY(auto client, store::etcd::Client::make(std::move(options), clock, random));
  return store::make_etcd_store(std::move(client), clock, random, std::move(kubernetes), std::move(own_denied));
}

[[nodiscard]] Result<std::unique_ptr<store::Store>> open_kube(const KubePlace& place, const Clock& clock,
                                                              const StoreParts& parts,
                                                              store::KubeStoreOptions options) {
  TRY(auto client, as_away(kube_client(place, clock, parts)));
  options.group = place.group;
  options.moved = parts.moved;
  return store::make_kube_store(std::move(client), {os::sha256, os::sha3_256}, clock, std::move(options));
}

/// `own_denied`: null for a command that writes.
[[nodiscard]] Result<std::unique_ptr<store::Store>> open_by_scheme(const std::string& url, store::OpenMode mode,
                                                                   const Clock& clock, const StoreParts& parts,
                                                                   store::OnOwnDenied own_denied) {
  const auto scheme = store::scheme_of(url);
  if (scheme == store::Scheme::sqlite) return open_sqlite(url, mode, clock);
  if (scheme == store::Scheme::etcd) {
    TRY(EtcdPlace place, parse_etcd_url(url));
    return as_away(open_etcd(std::move(place), clock, parts.registry, std::move(own_denied)));
  }
  if (scheme == store::Scheme::kube) {
    TRY(const KubePlace place, parse_kube_url(url));
    return open_kube(place, clock, parts, {.own_denied = std::move(own_denied), .services = parts.services});
  }
  return fail(unknown_store(url));
}

}  // namespace

Result<std::unique_ptr<store::Store>> open_etcd_store(EtcdPlace place, const Clock& clock, RegistryMaker registry) {
  return as_away(open_etcd(std::move(place), clock, registry, nullptr));
}

Result<std::unique_ptr<store::Store>> open_kube_store(const KubePlace& place, const Clock& clock,
                                                      const StoreParts& parts, bool only_calicos) {
  return open_kube(place, clock, parts,
                   {.croft_kinds = !only_calicos, .services = only_calicos ? nullptr : parts.services});
}

Result<std::unique_ptr<store::kube::Api>> open_kube_api(const std::string& url, const Clock& clock,
                                                        const StoreParts& parts,
                                                        std::chrono::nanoseconds request_timeout) {
  TRY(const KubePlace place, parse_kube_url(url));
  return as_away(kube_client(place, clock, parts, request_timeout));
}

Result<void> check_store_pages(const std::string& url, const Clock& clock) {
  const auto path = store::file_of_store(url);
  if (!path) return {};
  const auto checked = store::check_sqlite_pages(*path, clock, Deadline::after(clock.now(), kOpenLimit));
  return checked || checked.error().code != ErrorCode::corrupt ? Result<void>() : checked;
}

Result<std::unique_ptr<store::Store>> open_store(const std::string& url, store::OpenMode mode, const Clock& clock,
                                                 const StoreParts& parts) {
  return open_by_scheme(url, mode, clock, parts, nullptr);
}

Result<std::unique_ptr<store::Store>> open_store_to_look(const std::string& url, const Clock& clock,
                                                         const StoreParts& parts, store::OnOwnDenied own_denied) {
  TRY(auto opened, open_by_scheme(url, store::OpenMode::existing, clock, parts, std::move(own_denied)));
  return std::make_unique<store::LookOnly>(std::move(opened));
}

}  // namespace croft::app
