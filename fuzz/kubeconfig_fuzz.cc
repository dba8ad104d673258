// Reads any bytes as a kubeconfig, in JSON and in YAML, and as the URL of an API server. Checked: nothing crashes; a
// refusal has the right code and says why; what is accepted can be used: a server, https for every identity, a CA for
// https, a key for a certificate, PEM never twice; and the same file read again is the same.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "store/kube/format/kubeconfig.h"
#include "store/kube/format/yaml.h"

using namespace croft;
using wire::kube::KubeAccess;

namespace {

void check(const Result<KubeAccess>& access) {
  if (!access) {
    const ErrorCode code = access.error().code;
    CROFT_ASSERT(code == ErrorCode::invalid_argument || code == ErrorCode::refused_by_configuration);
    CROFT_ASSERT(!access.error().message.empty());
    return;
  }
  const bool has_identity = access->key.is_set() || !access->token.empty() || !access->token_file.empty();
  CROFT_ASSERT(!access->servers.empty());
  for (const auto& server : access->servers) {
    CROFT_ASSERT(server.secure ? access->ca.is_set() : !has_identity);
    const auto again = wire::Url::parse(server.text());
    CROFT_ASSERT(again && *again == server);
  }
  CROFT_ASSERT(access->certificate.is_set() == access->key.is_set());
  for (const auto* pem : {&access->ca, &access->certificate, &access->key}) {
    CROFT_ASSERT(pem->data.empty() || pem->file.empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check(wire::kube::decode_kubeconfig(text, "/etc/croft"));
  if (const auto json = wire::kubeconfig_json(text)) check(wire::kube::decode_kubeconfig(*json, "/etc/croft"));
  if (const auto server = wire::Url::parse(text)) {
    const auto again = wire::Url::parse(server->text());
    CROFT_ASSERT(again && *again == *server);
  }
  check(wire::kube::in_cluster_access(text, "443"));
  check(wire::kube::in_cluster_access("10.96.0.1", text));
  return 0;
}
