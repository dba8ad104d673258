#include "store/kube/format/kubeconfig.h"

#include <algorithm>
#include <array>
#include <functional>
#include <list>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/json/decode.h"
#include "base/json/writer.h"
#include "base/net/echo.h"
#include "base/text/base64.h"
#include "store/kube/format/kube_server.h"

namespace croft::wire::kube {
namespace {

constexpr std::size_t kEntriesMax = 1000;  // of clusters, users and contexts each
constexpr std::size_t kTextBytesMax = 1024;
constexpr std::size_t kPathBytesMax = 4096;
constexpr std::size_t kUrlBytesMax = 2048;
constexpr std::size_t kDataBytesMax = std::size_t{512} << 10;
constexpr std::size_t kKubeconfigDepthMax = 64;
constexpr ObjectRules kKubeconfigRules{.names = ObjectRules::Names::exact, .repeated = ObjectRules::Repeated::fault};

/// The value of `clusters`, `users` or `contexts` that has a name.
struct Named {
  std::string name;
  std::optional<JsonRef> value;
  std::size_t file = 0;  ///< of several, which one has it
};

struct File {
  std::string kind;
  std::string api_version;
  std::string current_context;
  std::size_t current_context_file = 0;  ///< of several, which one says it
  std::vector<Named> clusters;
  std::vector<Named> users;
  std::vector<Named> contexts;
};

struct Context {
  std::string cluster;
  std::string user;
  std::string name_space;
};

struct Cluster {
  std::string server;
  std::vector<std::string> more_servers;
  KubePem ca;
  std::string tls_server_name;
  std::string proxy_url;
  bool skips_verification = false;
};

struct User {
  KubePem certificate;
  KubePem key;
  std::string token;
  std::string token_file;
  std::string refused;  ///< the first member that Croft does not do
};

MaybeFault read_name(const JsonAt& at, std::string& out) { return read_text(at, kTextBytesMax, out); }

MaybeFault read_path(const JsonAt& at, std::string& out) {
  if (auto fault = read_text(at, kPathBytesMax, out)) return fault;
  if (out.find('\0') != out.npos) return at.bad_value("a path with a NUL byte");
  return {};
}

/// Go's bytes in JSON: base64, in which line breaks do not count.
MaybeFault read_data(const JsonAt& at, std::string& out) {
  std::string text;
  if (at.value.kind() == JsonKind::string && at.value.text().size() > kDataBytesMax) {
    return at.bad_value(fmt::format("more than {} bytes", kDataBytesMax));  // nothing of a key is repeated
  }
  if (auto fault = read_text(at, kDataBytesMax, text)) return fault;
  std::erase_if(text, [](char c) { return c == '\r' || c == '\n'; });
  auto bytes = decode_base64(text);
  if (!bytes) return at.bad_value("it is no base64");
  out = *std::move(bytes);
  return {};
}

MaybeFault read_token(const JsonAt& at, std::string& out) {
  if (at.value.is_null()) return {};
  // As above: no message may have the token.
  if (at.value.kind() != JsonKind::string) {
    return JsonFault{JsonFault::Kind::wrong_type, at.path(),
                     fmt::format("{} where a string is wanted", name_of(at.value.kind()))};
  }
  if (at.value.text().size() > kTokenBytesMax) return at.bad_value(fmt::format("more than {} bytes", kTokenBytesMax));
  out = at.value.text();
  if (!is_bearer_token(out) && !out.empty()) {
    return at.bad_value("a token has no spaces, control characters or characters outside ASCII");
  }
  return {};
}

template <const std::string_view& value_name>
MaybeFault read_named(const JsonAt& at, Named& out) {
  if (at.value.is_null()) return {};
  // `value_name` is what the entry is about: "cluster", "user", "context".
  return each_member(at, [&](const JsonAt& member) -> MaybeFault {
    if (member.name == "name") return read_name(member, out.name);
    if (member.name == value_name) out.value = member.value;
    return {};
  });
}

constexpr std::string_view kCluster = "cluster";
constexpr std::string_view kUser = "user";
constexpr std::string_view kContext = "context";

template <const std::string_view& value_name>
MaybeFault read_all(const JsonAt& at, std::vector<Named>& out) {
  if (auto fault = read_list(at, kEntriesMax, read_named<value_name>, out)) return fault;
  std::vector<std::string_view> names;
  for (const Named& one : out) names.push_back(one.name);
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end()) return at.bad_value("the name " + net::echo(*twice) + " is there twice");
  return {};
}

constexpr std::array<JsonMember<File>, 6> kFileMembers{{
    {"kind", [](const JsonAt& at, File& out) { return read_name(at, out.kind); }},
    {"apiVersion", [](const JsonAt& at, File& out) { return read_name(at, out.api_version); }},
    {"current-context", [](const JsonAt& at, File& out) { return read_name(at, out.current_context); }},
    {"clusters", [](const JsonAt& at, File& out) { return read_all<kCluster>(at, out.clusters); }},
    {"users", [](const JsonAt& at, File& out) { return read_all<kUser>(at, out.users); }},
    {"contexts", [](const JsonAt& at, File& out) { return read_all<kContext>(at, out.contexts); }},
}};

constexpr std::array<JsonMember<Context>, 3> kContextMembers{{
    {"cluster", [](const JsonAt& at, Context& out) { return read_name(at, out.cluster); }},
    {"user", [](const JsonAt& at, Context& out) { return read_name(at, out.user); }},
    {"namespace",
     [](const JsonAt& at, Context& out) -> MaybeFault {
       if (auto fault = read_name(at, out.name_space)) return fault;
       const bool is_name = out.name_space.empty() || is_dns_label(out.name_space);
       if (!is_name) return at.bad_value(net::echo(out.name_space) + " is no name of a namespace");
       return {};
     }},
}};

struct Extension {
  std::string name;
  std::optional<JsonRef> value;
};

MaybeFault read_server_url(const JsonAt& at, std::string& out) { return read_text(at, kUrlBytesMax, out); }

/// Other programs' extensions are theirs.
MaybeFault read_extension(const JsonAt& at, Cluster& out) {
  std::string name;
  std::optional<JsonAt> value;
  if (at.value.kind() != JsonKind::object) return {};
  const auto find = [&](const JsonAt& member) -> MaybeFault {
    if (member.name == "name" && member.value.kind() == JsonKind::string) name = member.value.text();
    if (member.name == "extension") value = JsonAt{member.value, &at, member.name, {}};
    return {};
  };
  if (auto fault = each_member(at, find)) return fault;
  if (name != "croft" || !value) return {};
  return each_member(*value, [&](const JsonAt& member) -> MaybeFault {
    if (member.name != "servers") return member.bad_value("the extension croft has no such member, only servers");
    return read_list(member, kKubeServersMax - 1, read_server_url, out.more_servers);
  });
}

constexpr std::array<JsonMember<Cluster>, 7> kClusterMembers{{
    {"server", [](const JsonAt& at, Cluster& out) { return read_server_url(at, out.server); }},
    {"certificate-authority", [](const JsonAt& at, Cluster& out) { return read_path(at, out.ca.file); }},
    {"certificate-authority-data", [](const JsonAt& at, Cluster& out) { return read_data(at, out.ca.data); }},
    {"tls-server-name", [](const JsonAt& at, Cluster& out) { return read_name(at, out.tls_server_name); }},
    {"insecure-skip-tls-verify",
     [](const JsonAt& at, Cluster& out) { return read_boolean(at, out.skips_verification); }},
    {"proxy-url", [](const JsonAt& at, Cluster& out) { return read_text(at, kUrlBytesMax, out.proxy_url); }},
    {"extensions",
     [](const JsonAt& at, Cluster& out) {
       return each_element(at, kEntriesMax, [&](const JsonAt& element) { return read_extension(element, out); });
     }},
}};

/// Null, an empty text and what is empty say nothing, as in client-go.
bool says_something(const JsonRef& value) {
  switch (value.kind()) {
    case JsonKind::null:
      return false;
    case JsonKind::string:
      return !value.text().empty();
    case JsonKind::array:
    case JsonKind::object:
      return value.first_child().has_value();
    default:
      return true;
  }
}

MaybeFault note_refused(const JsonAt& at, User& out) {
  // An object without members is an exec or auth-provider all the same.
  const bool is_there = says_something(at.value) || at.value.kind() == JsonKind::object;
  if (is_there && out.refused.empty()) out.refused = at.name;
  return {};
}

constexpr std::array<JsonMember<User>, 14> kUserMembers{{
    {"client-certificate", [](const JsonAt& at, User& out) { return read_path(at, out.certificate.file); }},
    {"client-certificate-data", [](const JsonAt& at, User& out) { return read_data(at, out.certificate.data); }},
    {"client-key", [](const JsonAt& at, User& out) { return read_path(at, out.key.file); }},
    {"client-key-data", [](const JsonAt& at, User& out) { return read_data(at, out.key.data); }},
    {"token", [](const JsonAt& at, User& out) { return read_token(at, out.token); }},
    {"tokenFile", [](const JsonAt& at, User& out) { return read_path(at, out.token_file); }},
    {"exec", note_refused},
    {"auth-provider", note_refused},
    {"username", note_refused},
    {"password", note_refused},
    {"as", note_refused},
    {"as-uid", note_refused},
    {"as-groups", note_refused},
    {"as-user-extra", note_refused},
}};

/// What to do instead of what a user's member asks for.
std::string_view remedy_for(std::string_view member) {
  if (member == "exec" || member == "auth-provider") {
    return "Croft starts no programs to log in; use a client certificate or a tokenFile that is renewed, as of a "
           "service account";
  }
  if (member == "username" || member == "password") {
    return "Kubernetes has taken no passwords since 1.19; use a client certificate or a token";
  }
  return "Croft acts as nobody else; use the certificate or the token of the user itself";
}

/// The value of the member `name`, whose way in messages is as in `users[ops]`.
class Reader {
 public:
  Reader(std::string_view list, std::string_view name, std::string_view member)
      : path_(fmt::format("{}[{}].{}", list, name, member)) {}

  template <class T>
  [[nodiscard]] Result<T> read(const JsonRef& value, std::span<const JsonMember<T>> members) const {
    T out;
    const JsonAt at{value, nullptr, path_, {}};
    if (const auto fault = read_object<T>(at, members, out, kKubeconfigRules))
      return fail(invalid_argument(fault->to_string()));
    return out;
  }
  [[nodiscard]] Error wrong(std::string_view member, std::string_view why) const {
    return invalid_argument(fmt::format("{}{}{}: {}", path_, member.empty() ? "" : ".", member, why));
  }
  [[nodiscard]] Error refused(std::string_view member, std::string_view why) const {
    Error error = wrong(member, why);
    error.code = ErrorCode::refused_by_configuration;
    return error;
  }
  /// Data or a file, not both; `member` is the file's.
  [[nodiscard]] Result<void> check_one(const KubePem& pem, std::string_view member) const {
    if (pem.data.empty() || pem.file.empty()) return {};
    return fail(wrong(member, fmt::format("{}-data is there too; remove one of them, as kubectl demands", member)));
  }

 private:
  std::string path_;
};

/// The entry `wanted` names, which has a value, or an error that tells which there are.
[[nodiscard]] Result<Named> find(const std::vector<Named>& entries, std::string_view list, const std::string& wanted,
                                 std::string_view wanted_by) {
  if (wanted.empty()) return fail(invalid_argument(fmt::format("{}: it is missing", wanted_by)));
  std::string known;
  constexpr std::size_t kKnownMax = 10;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].name == wanted && entries[i].value) return entries[i];
    if (i < kKnownMax) known += (known.empty() ? "" : ", ") + net::echo(entries[i].name);
    if (i == kKnownMax) known += ", …";
  }
  const std::string there = known.empty() ? std::string("there are none") : "there are " + known;
  return fail(invalid_argument(fmt::format("{}: {} is not among {}; {}", wanted_by, net::echo(wanted), list, there)));
}

std::string resolved(std::string path, std::string_view directory) {
  if (path.empty() || path.starts_with('/') || directory.empty()) return path;
  return fmt::format("{}{}{}", directory, directory.ends_with('/') ? "" : "/", path);
}

[[nodiscard]] Result<void> take_servers(const Reader& at, const Cluster& cluster, KubeAccess& out) {
  if (cluster.server.empty()) return fail(at.wrong("server", "it is missing"));
  std::vector<std::string> urls{cluster.server};
  urls.insert(urls.end(), cluster.more_servers.begin(), cluster.more_servers.end());
  for (const std::string& url : urls) {
    auto server = parse_kube_server(url);
    if (!server) return fail(at.wrong("server", server.error().message));
    if (!out.servers.empty() && out.servers.front().secure != server->secure) {
      return fail(at.wrong("server", "some are https and others are not: whoever can cut the ones is asked instead"));
    }
    out.servers.push_back(*std::move(server));
  }
  return {};
}

[[nodiscard]] Result<void> take_cluster(const Reader& at, Cluster cluster, std::string_view directory,
                                        KubeAccess& out) {
  if (!cluster.proxy_url.empty()) {
    return fail(at.refused("proxy-url", "Croft goes through no proxy; name a server that can be reached directly"));
  }
  if (cluster.skips_verification) {
    return fail(at.refused("insecure-skip-tls-verify",
                           "anybody could be the server and give out addresses twice; give the certificate-authority, "
                           "and tls-server-name where the certificate has another name"));
  }
  TRY_VOID(take_servers(at, cluster, out));
  TRY_VOID(at.check_one(cluster.ca, "certificate-authority"));
  if (out.servers.front().secure && !cluster.ca.is_set()) {
    return fail(
        at.wrong("certificate-authority", "it is missing; the machine's own list of authorities is not looked at"));
  }
  out.ca = {std::move(cluster.ca.data), resolved(std::move(cluster.ca.file), directory)};
  out.tls_server_name = std::move(cluster.tls_server_name);
  return {};
}

[[nodiscard]] Result<void> take_user(const Reader& at, User user, std::string_view directory, KubeAccess& out) {
  if (!user.refused.empty()) return fail(at.refused(user.refused, remedy_for(user.refused)));
  TRY_VOID(at.check_one(user.certificate, "client-certificate"));
  TRY_VOID(at.check_one(user.key, "client-key"));
  if (user.certificate.is_set() != user.key.is_set()) {
    return fail(at.wrong(user.key.is_set() ? "client-certificate" : "client-key",
                         "it is missing; a certificate and its key belong together"));
  }
  out.certificate = {std::move(user.certificate.data), resolved(std::move(user.certificate.file), directory)};
  out.key = {std::move(user.key.data), resolved(std::move(user.key.file), directory)};
  out.token = std::move(user.token);
  out.token_file = resolved(std::move(user.token_file), directory);
  if (!out.servers.front().secure && out.has_identity()) {
    return fail(at.wrong("", fmt::format("{} is no https: whoever listens on the way would learn who it is",
                                         out.servers.front().text())));
  }
  return {};
}

/// Puts files together as client-go does: of each name the first file that has it counts, with all that it says, and
/// the first that says a current context.
class Merged {
 public:
  explicit Merged(std::span<const KubeconfigFile> files) : files_(files) {}

  [[nodiscard]] Result<void> read_all() {
    for (std::size_t i = 0; i < files_.size(); ++i) {
      if (files_[i].json.empty()) continue;
      if (auto read = add(i); !read) return fail(in_file(i, std::move(read).error()));
    }
    return {};
  }

  [[nodiscard]] Result<AccessOfFiles> take(std::string_view wanted) const {
    AccessOfFiles taken;
    KubeAccess& access = taken.access;
    access.context = wanted.empty() ? all_.current_context : std::string(wanted);
    const auto chosen = find(all_.contexts, "the contexts", access.context,
                             wanted.empty() ? "current-context" : "the context that was asked for");
    if (!chosen) return fail(no_context(wanted, access.context, chosen.error()));
    const Reader context_at("contexts", access.context, kContext);
    TRY(Context context, named(chosen->file, context_at.read<Context>(*chosen->value, kContextMembers)));
    access.name_space = std::move(context.name_space);

    const std::string prefix = fmt::format("contexts[{}].context", access.context);
    TRY(const Named of_cluster,
        named(chosen->file, find(all_.clusters, "the clusters", context.cluster, prefix + ".cluster")));
    TRY(const Named of_user, named(chosen->file, find(all_.users, "the users", context.user, prefix + ".user")));
    const Reader cluster_at("clusters", context.cluster, kCluster);
    TRY(Cluster cluster, named(of_cluster.file, cluster_at.read<Cluster>(*of_cluster.value, kClusterMembers)));
    TRY_VOID(named(of_cluster.file,
                   take_cluster(cluster_at, std::move(cluster), files_[of_cluster.file].directory, access)));
    const Reader user_at("users", context.user, kUser);
    TRY(User user, named(of_user.file, user_at.read<User>(*of_user.value, kUserMembers)));
    TRY_VOID(named(of_user.file, take_user(user_at, std::move(user), files_[of_user.file].directory, access)));
    taken.user_file = of_user.file;
    return taken;
  }

 private:
  [[nodiscard]] Result<void> add(std::size_t index) {
    TRY(auto document,
        parse_json(files_[index].json,
                   {.bytes_max = kKubeconfigBytesMax, .depth_max = kKubeconfigDepthMax, .is_secret = true}));
    const JsonAt root{documents_.emplace_back(std::move(document)).root(), nullptr, {}, {}};
    if (root.value.kind() != JsonKind::object) return fail(invalid_argument("it is no object"));
    File file;
    if (const auto fault = read_object<File>(root, kFileMembers, file, kKubeconfigRules)) {
      return fail(invalid_argument(fault->to_string()));
    }
    if (!file.kind.empty() && file.kind != "Config") {
      return fail(invalid_argument(fmt::format("kind: {} where \"Config\" is wanted", net::echo(file.kind))));
    }
    if (!file.api_version.empty() && file.api_version != "v1") {
      return fail(invalid_argument(fmt::format("apiVersion: {} where \"v1\" is wanted", net::echo(file.api_version))));
    }
    if (all_.current_context.empty()) {
      all_.current_context = file.current_context;
      all_.current_context_file = index;
    }
    add_new(std::move(file.clusters), index, all_.clusters);
    add_new(std::move(file.users), index, all_.users);
    add_new(std::move(file.contexts), index, all_.contexts);
    return {};
  }

  static void add_new(std::vector<Named> more, std::size_t index, std::vector<Named>& all) {
    std::set<std::string, std::less<>> known;
    for (const Named& one : all) known.insert(one.name);
    for (Named& one : more) {
      if (!known.insert(one.name).second) continue;
      one.file = index;
      all.push_back(std::move(one));
    }
  }

  [[nodiscard]] Error in_file(std::size_t index, const Error& error) const {
    const Error told = error.in("kubeconfig");
    return files_[index].name.empty() ? told : told.in(files_[index].name);
  }
  template <class T>
  [[nodiscard]] Result<T> named(std::size_t index, Result<T> result) const {
    if (!result) return fail(in_file(index, result.error()));
    return result;
  }

  /// Where no file has the context, and none says that it is its current one, all of them say nothing of it.
  [[nodiscard]] Error no_context(std::string_view wanted, const std::string& context, Error error) const {
    const bool is_there = std::ranges::any_of(all_.contexts, [&](const Named& one) { return one.name == context; });
    if ((context.empty() || !wanted.empty()) && !is_there) error.code = ErrorCode::not_found;
    if (wanted.empty() && !context.empty()) return in_file(all_.current_context_file, error);
    std::string names;
    for (const KubeconfigFile& file : files_) names += (names.empty() ? "" : ":") + file.name;
    const Error told = error.in("kubeconfig");
    return names.empty() ? told : told.in(names);
  }

  const std::span<const KubeconfigFile> files_;
  std::list<JsonDocument> documents_;  ///< what `all_` points into
  File all_;
};

}  // namespace

Result<AccessOfFiles> merge_kubeconfigs(std::span<const KubeconfigFile> files, std::string_view context) {
  Merged merged(files);
  TRY_VOID(merged.read_all());
  return merged.take(context);
}

Result<KubeAccess> decode_kubeconfig(std::string_view json, std::string_view directory, std::string_view context) {
  // Of several files an empty one says nothing; a lone one is damaged.
  const KubeconfigFile file{{}, json.empty() ? " " : std::string(json), std::string(directory)};
  TRY(auto taken, merge_kubeconfigs({&file, 1}, context));
  return std::move(taken.access);
}

Result<void> override_access(KubeAccess& access, const KubeOverrides& overrides) {
  if (!overrides.server.empty()) {
    const auto server = parse_kube_server(overrides.server);
    if (!server) return fail(server.error().in("the API's address"));
    access.servers = {*server};
  }
  if (!overrides.ca_file.empty()) access.ca = {{}, overrides.ca_file};
  if (!overrides.certificate_file.empty()) {
    access.certificate = {{}, overrides.certificate_file};
    access.key = {{}, overrides.key_file};
  }
  if (!overrides.token.empty()) {
    if (!is_bearer_token(overrides.token)) {
      return fail(invalid_argument("the token has spaces, control characters or characters outside ASCII"));
    }
    access.token = overrides.token;
    access.token_file.clear();
  }
  if (access.servers.empty()) return fail(invalid_argument("the API's address is missing"));
  const KubeServer& server = access.servers.front();
  if (server.secure && !access.ca.is_set()) {
    return fail(invalid_argument(fmt::format(
        "who signed the certificate of {} is not said; the machine's own list of authorities is not looked at",
        server.text())));
  }
  if (!server.secure && access.has_identity()) {
    return fail(invalid_argument(
        fmt::format("{} is no https: whoever listens on the way would learn who it is", server.text())));
  }
  return {};
}

Result<KubeAccess> in_cluster_access(std::string_view host, std::string_view port, std::string_view directory) {
  if (host.empty()) return fail(invalid_argument("KUBERNETES_SERVICE_HOST: it is not set; this is no pod"));
  if (port.empty()) return fail(invalid_argument("KUBERNETES_SERVICE_PORT: it is not set; this is no pod"));
  const auto host_only = server_host(host);
  if (!host_only) {
    return fail(invalid_argument(fmt::format("KUBERNETES_SERVICE_HOST: {} is no address", net::echo(host))));
  }
  const auto number = server_port(port);
  if (!number) {
    return fail(invalid_argument(fmt::format("KUBERNETES_SERVICE_PORT: {} is no port", net::echo(port))));
  }
  KubeAccess access;
  access.servers.push_back({true, *host_only, *number, {}});
  access.ca.file = fmt::format("{}/ca.crt", directory);
  access.token_file = fmt::format("{}/token", directory);
  access.token_file_is_the_pods = true;
  access.namespace_file = fmt::format("{}/namespace", directory);
  return access;
}

std::string encode_kubeconfig(const KubeAccess& access, std::string_view ca_pem, std::string_view token) {
  constexpr std::string_view kName = "croft";
  JsonWriter out;
  const auto member = [&](std::string_view name, std::string_view value) {
    out.key(name);
    out.text(value);
  };
  out.begin_object();
  member("apiVersion", "v1");
  member("kind", "Config");
  out.key("clusters");
  out.begin_array();
  out.begin_object();
  member("name", kName);
  out.key("cluster");
  out.begin_object();
  member("server", access.servers.empty() ? "" : access.servers.front().text());
  if (!ca_pem.empty()) member("certificate-authority-data", encode_base64(ca_pem));
  if (!access.tls_server_name.empty()) member("tls-server-name", access.tls_server_name);
  if (access.servers.size() > 1) {
    out.key("extensions");
    out.begin_array();
    out.begin_object();
    member("name", kName);
    out.key("extension");
    out.begin_object();
    out.key("servers");
    out.begin_array();
    for (std::size_t i = 1; i < access.servers.size(); ++i) out.text(access.servers[i].text());
    out.end_array();
    out.end_object();
    out.end_object();
    out.end_array();
  }
  out.end_object();
  out.end_object();
  out.end_array();
  out.key("users");
  out.begin_array();
  out.begin_object();
  member("name", kName);
  out.key("user");
  out.begin_object();
  if (!token.empty()) member("token", token);
  out.end_object();
  out.end_object();
  out.end_array();
  out.key("contexts");
  out.begin_array();
  out.begin_object();
  member("name", kName);
  out.key("context");
  out.begin_object();
  member("cluster", kName);
  member("user", kName);
  out.end_object();
  out.end_object();
  out.end_array();
  member("current-context", kName);
  out.end_object();
  return std::move(out).take() + "\n";
}

}  // namespace croft::wire::kube
