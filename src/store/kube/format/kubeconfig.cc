#include "store/kube/format/kubeconfig.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/json/reader.h"
#include "base/json/writer.h"
#include "base/printable.h"
#include "base/text/base64.h"

namespace croft::wire::kube {
namespace {

/// base64url without padding (RFC 4648 section 5).
std::optional<std::string> decode_base64url(std::string_view text) {
  std::string standard(text);
  std::ranges::replace(standard, '-', '+');
  std::ranges::replace(standard, '_', '/');
  standard.append((4 - standard.size() % 4) % 4, '=');
  return decode_base64(standard);
}

std::optional<WallTime> time_in(JsonRef claims, std::string_view name) {
  constexpr std::int64_t kSecondsMax = 9'223'372'036;  // as nanoseconds in 63 bits: the year 2262
  const auto member = member_of(claims, name);
  const auto seconds = member ? member->integer() : std::nullopt;
  if (!seconds || *seconds < 0) return std::nullopt;
  return WallTime(std::chrono::seconds(std::min(*seconds, kSecondsMax)));
}

}  // namespace

bool is_bearer_token(std::string_view text) {
  return !text.empty() && text.size() <= kTokenBytesMax &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7F'; });
}

std::string_view trimmed_token(std::string_view content) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const std::size_t begin = content.find_first_not_of(kSpace);
  if (begin == content.npos) return {};
  return content.substr(begin, content.find_last_not_of(kSpace) - begin + 1);
}

std::optional<TokenLife> life_of_token(std::string_view token) {
  const std::size_t first = token.find('.');
  const std::size_t second = first == token.npos ? token.npos : token.find('.', first + 1);
  if (second == token.npos) return std::nullopt;
  const auto claims = decode_base64url(token.substr(first + 1, second - first - 1));
  const auto document = parse_json(claims.value_or(""), {.bytes_max = kTokenBytesMax});
  const auto end = document ? time_in(document->root(), "exp") : std::nullopt;
  if (!end) return std::nullopt;
  return TokenLife{time_in(document->root(), "iat").value_or(WallTime{}), *end};
}

std::string encode_token_request(std::chrono::seconds life) {
  return fmt::format(
      R"({{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{{"expirationSeconds":{}}}}})",
      life.count());
}

Result<std::string> decode_token_request(std::string_view json) {
  constexpr std::string_view kWhat = "the API server's answer to a TokenRequest";
  const auto document = parse_json(json, {.is_secret = true});
  if (!document) return fail(ErrorCode::corrupt, fmt::format("{}: {}", kWhat, document.error().message));
  const auto token = member_of(member_of(document->root(), "status"), "token");
  if (token && token->kind() == JsonKind::string && is_bearer_token(token->text())) return std::string(token->text());
  return fail(ErrorCode::corrupt, fmt::format("{} has no token, or one of more than {} bytes", kWhat, kTokenBytesMax));
}

namespace {

constexpr std::string_view kOurs = "croft";  // of names in files that Croft writes, and of its extension
constexpr std::string_view kServers = "servers";

constexpr std::string_view kNoPrograms =
    "Croft starts no programs to log in; use a client certificate or a tokenFile that is renewed, as of a service "
    "account";
struct NotDone {
  std::string_view member, remedy;
};
/// Members of clusters and users.
constexpr std::array<NotDone, 6> kNotDone{{
    {"exec", kNoPrograms},
    {"auth-provider", kNoPrograms},
    {"username", "Kubernetes has taken no passwords since 1.19; use a client certificate or a token"},
    {"as", "Croft acts as nobody else; use the certificate or the token of the user itself"},
    {"proxy-url", "Croft goes through no proxy; name a server that can be reached directly"},
    {"insecure-skip-tls-verify",
     "anybody could be the server and give out addresses twice; give the certificate-authority, and tls-server-name "
     "where the certificate has another name"},
}};

/// Null, false and an empty text say nothing, as in client-go.
[[nodiscard]] bool says_something(JsonRef value) {
  if (value.kind() == JsonKind::boolean) return value.boolean();
  return value.kind() == JsonKind::string ? !value.text().empty() : !value.is_null();
}

[[nodiscard]] Result<void> check_token(std::string_view token) {
  if (token.empty() || is_bearer_token(token)) return {};
  return fail(invalid_argument("the token has spaces, control characters or characters outside ASCII, or is too long"));
}

/// The members of one kubeconfig. The first fault is kept; what is read behind it means nothing.
class Reader {
 public:
  Reader(JsonRef root, std::string_view directory) : root_(root), directory_(directory) {}

  [[nodiscard]] Result<KubeAccess> access(std::string_view context) {
    const auto current = member_of(root_, "current-context");
    const Entry chosen = context.empty() ? named("context", current ? current->text() : "", "current-context")
                                         : named("context", context, "the context that was asked for");
    const Entry cluster = named("cluster", text(chosen, "cluster"), chosen.path + ".cluster");
    const Entry user = named("user", text(chosen, "user"), chosen.path + ".user");
    KubeAccess access;
    access.servers = servers(cluster);
    access.ca = pem(cluster, "certificate-authority");
    access.tls_server_name = text(cluster, "tls-server-name");
    access.certificate = pem(user, "client-certificate");
    access.key = pem(user, "client-key");
    access.token = text(user, "token");
    access.token_file = path(user, "tokenFile");
    access.name_space = text(chosen, "namespace");
    if (fault_) return fail(*fault_);
    TRY_VOID(check_token(access.token));
    TRY_VOID(check_access(access));
    return access;
  }

 private:
  struct Entry {
    std::optional<JsonRef> value;
    std::string path;  ///< for messages
  };

  void note(std::string_view path, std::string_view why, ErrorCode code = ErrorCode::invalid_argument) {
    if (!fault_) fault_ = Error{code, fmt::format("{}: {}", path, why), {}};
  }
  /// The value of the entry with a name, of a list of [{name: …, `member`: …}].
  [[nodiscard]] static std::optional<JsonRef> find(std::optional<JsonRef> list, std::string_view name,
                                                   std::string_view member) {
    for (auto entry = list ? list->first_child() : std::nullopt; entry; entry = entry->next_sibling()) {
      const auto its_name = member_of(entry, "name");
      if (its_name && its_name->text() == name) return member_of(entry, member);
    }
    return std::nullopt;
  }
  /// An entry of `contexts`, `clusters` or `users`; `wanted_by` says who names it.
  [[nodiscard]] Entry named(std::string_view kind, std::string_view name, std::string_view wanted_by) {
    const std::string list = fmt::format("{}s", kind);
    Entry entry{find(member_of(root_, list), name, kind), fmt::format("{}[{}].{}", list, name, kind)};
    if (name.empty())
      note(wanted_by, fmt::format("it is missing; name one of the {}, kubectl config view shows them", list));
    if (!entry.value) {
      note(wanted_by, fmt::format("{} is not among the {}; kubectl config view shows them", echo(name), list));
    }
    for (const auto& [member, remedy] : kNotDone) {
      const auto value = member_of(entry.value, member);
      if (!value || !says_something(*value)) continue;
      note(fmt::format("{}.{}", entry.path, member), remedy, ErrorCode::refused_by_configuration);
    }
    return entry;
  }
  /// Nothing of a value goes into a fault.
  [[nodiscard]] std::string text(const Entry& of, std::string_view name) {
    const auto member = member_of(of.value, name);
    if (!member || member->is_null()) return {};
    if (member->kind() != JsonKind::string) {
      note(fmt::format("{}.{}", of.path, name), fmt::format("{} where a string is wanted", name_of(member->kind())));
    }
    return std::string(member->text());
  }
  [[nodiscard]] std::string path(const Entry& of, std::string_view name) {
    std::string path = text(of, name);
    if (path.empty() || path.starts_with('/') || directory_.empty()) return path;
    return fmt::format("{}{}{}", directory_, directory_.ends_with('/') ? "" : "/", path);
  }
  /// Data is Go's bytes in JSON: base64, in which line breaks do not count.
  [[nodiscard]] KubePem pem(const Entry& of, std::string_view name) {
    const std::string member = fmt::format("{}-data", name);
    std::string data = text(of, member);
    std::erase_if(data, [](char c) { return c == '\r' || c == '\n'; });
    if (data.empty()) return {{}, path(of, name)};
    const auto bytes = decode_base64(data);
    if (!bytes) note(fmt::format("{}.{}", of.path, member), "it is no base64");
    return {bytes.value_or(""), {}};
  }
  [[nodiscard]] std::vector<wire::Url> servers(const Entry& cluster) {
    std::vector<std::string> urls{text(cluster, "server")};
    const auto extension = find(member_of(cluster.value, "extensions"), kOurs, "extension");
    const auto more = member_of(extension, kServers);
    if (extension && (!more || more->kind() != JsonKind::array)) {
      note(cluster.path + ".extensions[croft]", "it has a list of URLs, servers, and nothing else");
    }
    for (auto url = more ? more->first_child() : std::nullopt; url; url = url->next_sibling()) {
      urls.emplace_back(url->text());
    }
    std::vector<wire::Url> servers;
    for (const std::string& url : urls) {
      const auto server = wire::Url::parse(url);
      if (!server) note(cluster.path + ".server", server.error().message);
      if (server) servers.push_back(*server);
    }
    return servers;
  }

  const JsonRef root_;
  const std::string_view directory_;
  std::optional<Error> fault_;
};

}  // namespace

Result<void> check_access(const KubeAccess& access) {
  if (access.servers.empty()) return fail(invalid_argument("the API server's address is missing"));
  if (access.certificate.is_set() != access.key.is_set()) {
    return fail(invalid_argument("client-certificate and client-key belong together, and one of them is missing"));
  }
  const bool has_identity = access.key.is_set() || !access.token.empty() || !access.token_file.empty();
  for (const wire::Url& server : access.servers) {
    if (server.secure && !access.ca.is_set()) {
      return fail(invalid_argument(server.text() +
                                   ": who signed its certificate is not said; give the certificate-authority, as the "
                                   "machine's own list of authorities is not looked at"));
    }
    if (!server.secure && has_identity) {
      return fail(invalid_argument(server.text() + " is no https: whoever listens on the way would learn who it is"));
    }
  }
  return {};
}

Result<KubeAccess> decode_kubeconfig(std::string_view json, std::string_view directory, std::string_view context) {
  const auto document = parse_json(json, {.bytes_max = kKubeconfigBytesMax, .is_secret = true});
  auto access =
      document ? Reader(document->root(), directory).access(context) : Result<KubeAccess>(fail(document.error()));
  if (!access) return fail(access.error().in("kubeconfig"));
  return access;
}

Result<void> override_access(KubeAccess& access, const KubeOverrides& overrides) {
  if (!overrides.server.empty()) {
    const auto server = wire::Url::parse(overrides.server);
    if (!server) return fail(server.error().in("the API's address"));
    access.servers = {*server};
  }
  if (!overrides.ca_file.empty()) access.ca = {{}, overrides.ca_file};
  if (!overrides.certificate_file.empty()) {
    access.certificate = {{}, overrides.certificate_file};
    access.key = {{}, overrides.key_file};
  }
  if (!overrides.token.empty()) {
    TRY_VOID(check_token(overrides.token));
    access.token = overrides.token;
    access.token_file.clear();
  }
  return check_access(access);
}

Result<KubeAccess> in_cluster_access(std::string_view host, std::string_view port) {
  constexpr std::string_view kDirectory = "/var/run/secrets/kubernetes.io/serviceaccount";
  const bool is_v6 = host.find(':') != host.npos;
  const auto server =
      wire::Url::parse(fmt::format("https://{}{}{}:{}", is_v6 ? "[" : "", host, is_v6 ? "]" : "", port));
  if (!server) return fail(server.error().in("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT"));
  KubeAccess access;
  access.servers.push_back(*server);
  access.ca.file = fmt::format("{}/ca.crt", kDirectory);
  access.token_file = fmt::format("{}/token", kDirectory);
  access.namespace_file = fmt::format("{}/namespace", kDirectory);
  return access;
}

std::string encode_kubeconfig(const KubeAccess& access, std::string_view ca_pem, std::string_view token) {
  JsonWriter out;
  const auto put = [&](std::string_view name, std::string_view value) { out.text(name, value); };
  // A list of one entry: `list`: [{name: croft, `member`: {…}}].
  const auto put_entry = [&](std::string_view list, std::string_view member, const auto& put_members) {
    out.begin_array(list);
    out.begin_object();
    put("name", kOurs);
    out.begin_object(member);
    put_members();
    out.end_object();
    out.end_object();
    out.end_array();
  };
  out.begin_object();
  put("apiVersion", "v1");
  put("kind", "Config");
  put_entry("clusters", "cluster", [&] {
    put("server", access.servers.empty() ? "" : access.servers.front().text());
    if (!ca_pem.empty()) put("certificate-authority-data", encode_base64(ca_pem));
    if (!access.tls_server_name.empty()) put("tls-server-name", access.tls_server_name);
    if (access.servers.size() < 2) return;
    put_entry("extensions", "extension", [&] {
      out.begin_array(kServers);
      for (const wire::Url& server : std::span(access.servers).subspan(1)) out.text(server.text());
      out.end_array();
    });
  });
  put_entry("users", "user", [&] {
    if (!token.empty()) put("token", token);
  });
  put_entry("contexts", "context", [&] {
    put("cluster", kOurs);
    put("user", kOurs);
  });
  put("current-context", kOurs);
  out.end_object();
  return std::move(out).take() + "\n";
}

}  // namespace croft::wire::kube
