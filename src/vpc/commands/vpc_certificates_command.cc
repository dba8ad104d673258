// croft vpc certificates: a CA for the agents of a cluster, and a certificate for each node.

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text/base64.h"
#include "cli/croft/command_line.h"
#include "cni/error_table.h"
#include "http/certificates.h"
#include "os/files.h"
#include "os/secret_file.h"

namespace croft::app {
namespace {

constexpr std::size_t kPemFileMax = std::size_t{64} << 10;
constexpr std::string_view kAuthorityName = "croft-vpc";
constexpr std::string_view kAuthorityFiles = "ca";
constexpr int kAuthorityYears = 10;
constexpr int kDaysMax = 3650;
/// Clocks of nodes differ.
constexpr std::chrono::nanoseconds kEarlier = std::chrono::hours{1};

struct CertificatesOptions {
  std::string directory;
  std::vector<std::string> nodes;
  bool only_authority = false;
  int days = 365;
};

/// Where one lies. Keys are for their user alone.
struct Files {
  std::string certificate, key;
};
Files files_of(const std::string& directory, const std::string& name) {
  return {fmt::format("{}/{}.crt", directory, name), fmt::format("{}/{}.key", directory, name)};
}

/// Nothing where neither is. Error: one without the other.
[[nodiscard]] Result<std::optional<os::CertificateWithKey>> read_pair(const Files& files) {
  TRY(const auto certificate, os::file_status(files.certificate));
  TRY(const auto key, os::file_status(files.key));
  if (!certificate && !key) return std::optional<os::CertificateWithKey>();
  if (!certificate || !key) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} is there and {} is not: put it back, or remove the other one",
                            certificate ? files.certificate : files.key, certificate ? files.key : files.certificate));
  }
  os::CertificateWithKey pair;
  TRY(pair.certificate, os::read_file(files.certificate, kPemFileMax));
  TRY(pair.key, os::read_secret_file(files.key, kPemFileMax));
  return std::optional(std::move(pair));
}

/// The key first: who looks in between finds a certificate of before with another key, keeps what he has, and looks
/// again.
[[nodiscard]] Result<void> write_pair(const Files& files, const os::CertificateWithKey& pair) {
  // An agent of another user reads what it was given: what is made anew keeps its mode and owner.
  const auto put = [](const std::string& path, const std::string& content, os::FileMode mode) -> Result<void> {
    TRY(const auto there, os::file_status(path));
    return there ? os::replace_file_like(path, content, path) : os::replace_file_durably(path, content, mode);
  };
  TRY_VOID(put(files.key, pair.key, os::FileMode::for_user));
  return put(files.certificate, pair.certificate, os::FileMode::readable_by_all);
}

os::Validity from_now(WallTime now, int days) { return {now - kEarlier, now + std::chrono::hours{24} * days}; }

[[nodiscard]] Result<os::CertificateWithKey> new_authority(WallTime now) {
  constexpr int kDaysOfAYear = 365;
  return os::make_authority(std::string(kAuthorityName), from_now(now, kAuthorityYears * kDaysOfAYear));
}

[[nodiscard]] Result<void> check_authority(const Files& files, const os::CertificateWithKey& pair, WallTime now) {
  TRY(const os::CertificateFacts facts, os::certificate_facts(pair.certificate));
  TRY(const bool fits, os::is_key_of(pair));
  const char* wrong = nullptr;
  if (!facts.is_authority) wrong = "is no CA";
  if (!fits) wrong = "does not belong to its key";
  if (facts.validity.until <= now) wrong = "has expired";
  if (wrong == nullptr) return {};
  return fail(ErrorCode::invalid_argument,
              fmt::format("{} {}; it is never replaced by this command: move it and {} away for a new CA",
                          files.certificate, wrong, files.key));
}

/// Whether a node's certificate is to be made anew, and why; empty: it is good for a while.
std::string why_anew(const os::CertificateWithKey& pair, const os::CertificateWithKey& authority,
                     const std::string& node, WallTime now) {
  const auto facts = os::certificate_facts(pair.certificate);
  const auto fits = os::is_key_of(pair);
  if (!facts || !fits || !*fits) return "it could not be used";
  if (facts->dns_names != std::vector<std::string>{node}) return "it has another name";
  const auto is_ours = os::is_signed_by(pair.certificate, authority.certificate);
  if (!is_ours || !*is_ours) return "another CA has signed it";
  const auto whole = facts->validity.until - facts->validity.from;
  return facts->validity.until - now < whole / 3 ? "less than a third of its time was left" : "";
}

using SecretData = std::vector<std::pair<std::string, std::string>>;

std::string secret_of(std::string_view name, const SecretData& data) {
  std::string text =
      fmt::format("---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: {}\n  namespace: kube-system\n", name);
  text += "  labels: {app: cni-vpc-ipamd}\ntype: Opaque\ndata:\n";
  for (const auto& [key, value] : data) text += fmt::format("  {}: {}\n", key, wire::encode_base64(value));
  return text;
}

struct Made {
  os::CertificateWithKey authority;
  std::string report;   ///< for people
  std::string secrets;  ///< YAML
  SecretData of_nodes;
};

[[nodiscard]] Result<void> make_node(const CertificatesOptions& options, const std::string& node, bool writes,
                                     WallTime now, Made& made) {
  // Before its name becomes part of a path.
  TRY(os::CertificateWithKey fresh, os::make_node_certificate(made.authority, node, from_now(now, options.days)));
  if (writes) {
    const Files files = files_of(options.directory, node);
    TRY(const auto before, read_pair(files));
    const std::string why = before ? why_anew(*before, made.authority, node, now) : "there was none";
    if (why.empty()) {
      made.report += fmt::format("{}: kept\n", files.certificate);
      return {};
    }
    TRY_VOID(write_pair(files, fresh));
    made.report += fmt::format("{}: made, as {}\n", files.certificate, why);
    return {};
  }
  made.of_nodes.emplace_back(node + ".crt", fresh.certificate);
  made.of_nodes.emplace_back(node + ".key", fresh.key);
  return {};
}

[[nodiscard]] Result<int> make_certificates(CommandLine& line, const CertificatesOptions& options) {
  if (line.output == CommandLine::Output::json) {
    return fail(ErrorCode::invalid_argument, "-o json: manifests are printed with -o yaml");
  }
  const bool writes = line.output != CommandLine::Output::yaml;
  if (writes && options.directory.empty()) {
    return fail(ErrorCode::invalid_argument, "--directory is needed, or -o yaml, which writes no files");
  }
  if (options.nodes.empty() && !options.only_authority) {
    return fail(ErrorCode::invalid_argument, "--node is needed, once for each node, or --ca-only");
  }
  // A node's files lie beside the CA's, and their keys in one Secret.
  if (std::ranges::find(options.nodes, kAuthorityFiles) != options.nodes.end()) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("--node {0}: its files would take the place of the CA's, {0}.crt and {0}.key; nothing was "
                            "written. A node of that name needs a certificate made otherwise",
                            kAuthorityFiles));
  }
  const WallTime now = line.clock.now().wall;
  Made made;
  std::optional<os::CertificateWithKey> authority;
  if (!options.directory.empty()) {
    if (writes) TRY_VOID(os::make_directories(options.directory));
    const Files files = files_of(options.directory, std::string(kAuthorityFiles));
    TRY(authority, read_pair(files));
    if (authority) {
      TRY_VOID(check_authority(files, *authority, now));
      made.report += fmt::format("{}: kept\n", files.certificate);
    } else if (writes) {
      TRY(authority, new_authority(now));
      TRY_VOID(write_pair(files, *authority));
      made.report += fmt::format("{}: made\n", files.certificate);
    }
  }
  if (!authority) {
    TRY(authority, new_authority(now));
    made.secrets += secret_of("cni-vpc-ipamd-ca", {{"ca.crt", authority->certificate}, {"ca.key", authority->key}});
  }
  made.authority = *std::move(authority);
  for (const std::string& node : options.nodes) TRY_VOID(make_node(options, node, writes, now, made));
  if (!made.of_nodes.empty()) {
    made.of_nodes.emplace_back("ca.crt", made.authority.certificate);
    made.secrets += secret_of("cni-vpc-ipamd-tls", made.of_nodes);
  }
  print(writes ? made.report : made.secrets);
  return 0;
}

}  // namespace

void add_vpc_certificates_command(CLI::App& app, CommandLine& line) {
  const auto nouns = app.get_subcommands([](const CLI::App* one) { return one->get_name() == "vpc"; });
  CLI::App* vpc =
      nouns.empty() ? app.add_subcommand("vpc", "A node's stock of addresses of a cloud's network") : nouns.front();
  vpc->require_subcommand(1);
  auto options = std::make_shared<CertificatesOptions>();
  CLI::App* command =
      vpc->add_subcommand("certificates", "Make the CA and the certificates by which agents know each other");
  command->add_option("--directory", options->directory, "Where the files are: ca.crt, ca.key, NODE.crt, NODE.key");
  command->add_option("--node", options->nodes, "A node's name; may be given several times");
  command->add_flag("--ca-only", options->only_authority, "Make the CA only");
  command->add_option("--days", options->days, "How long the certificates of nodes are good for")
      ->capture_default_str()
      ->check(CLI::Range(1, kDaysMax));
  command->callback(
      [options, &line] { line.run = [options](CommandLine& all) { return make_certificates(all, *options); }; });
}

}  // namespace croft::app
