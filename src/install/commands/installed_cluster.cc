#include "install/commands/installed_cluster.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "os/files.h"
#include "os/secret_file.h"

namespace croft::app {
namespace {

constexpr std::size_t kBytesMax = std::size_t{1} << 20;

[[nodiscard]] std::optional<std::string> text_of(const wire::kube::KubePem& pem) {
  if (pem.file.empty()) return pem.data;
  auto text = os::read_file(pem.file, kBytesMax);
  return text ? std::optional(*std::move(text)) : std::nullopt;
}

/// Each certificate of a bundle, however its lines are broken.
[[nodiscard]] std::set<std::string> certificates_in(std::string_view text) {
  constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----";
  constexpr std::string_view kEnd = "-----END CERTIFICATE-----";
  std::set<std::string> all;
  for (std::size_t at = text.find(kBegin); at != text.npos; at = text.find(kBegin, at)) {
    at += kBegin.size();
    std::string body(text.substr(at, text.find(kEnd, at) - at));
    std::erase_if(body, [](char c) { return c == '\n' || c == '\r' || c == ' ' || c == '\t'; });
    all.insert(std::move(body));
  }
  return all;
}

}  // namespace

OneCluster compare_cluster(const std::string& file, const wire::kube::KubeAccess& now) {
  const auto text = os::read_secret_file(file, kBytesMax);
  if (!text) return OneCluster::not_said;
  const auto before = wire::kube::decode_kubeconfig(*text, os::directory_of(file));
  if (!before) return OneCluster::not_said;
  const bool has_server = std::ranges::any_of(
      before->servers, [&](const auto& server) { return std::ranges::find(now.servers, server) != now.servers.end(); });
  if (has_server) return OneCluster::yes;
  const auto theirs = text_of(before->ca);
  const auto ours = text_of(now.ca);
  if (!theirs || !ours) return OneCluster::not_said;
  const std::set<std::string> known = certificates_in(*theirs);
  const std::set<std::string> mine = certificates_in(*ours);
  if (known.empty() || mine.empty()) return OneCluster::not_said;
  return std::ranges::any_of(mine, [&](const auto& one) { return known.contains(one); }) ? OneCluster::by_its_ca
                                                                                         : OneCluster::no;
}

}  // namespace croft::app
