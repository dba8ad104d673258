#include "store/kube/credentials.h"

#include <utility>

#include <fmt/format.h>

#include "base/time_text.h"
#include "os/files.h"
#include "os/secret_file.h"
#include "store/kube/format/kube_server.h"
#include "store/kube/format/token.h"

namespace croft::store::kube {
namespace {

/// API servers allow as much.
constexpr std::chrono::minutes kSkewMax{1};

}  // namespace

Credentials::Credentials(const wire::kube::KubeAccess& access, std::chrono::nanoseconds age_max, const Clock& clock)
    : file_(access.token_file),
      has_certificate_(access.certificate.is_set()),
      checks_mode_(!access.token_file_is_the_pods),
      age_max_(age_max),
      clock_(clock),
      token_(access.token_file.empty() ? access.token : std::string()) {}

Result<void> Credentials::read() {
  const auto content = checks_mode_ ? os::read_secret_file(file_, wire::kube::kTokenBytesMax)
                                    : os::read_file(file_, wire::kube::kTokenBytesMax);
  if (!content) return fail(content.error().in("token file"));
  const std::string_view token = wire::kube::trimmed_token(*content);
  if (!wire::kube::is_bearer_token(token)) {
    return fail(
        invalid_argument(fmt::format("token file {}: {}", file_, token.empty() ? "it is empty" : "it has no token")));
  }
  token_ = token;
  return {};
}

Result<std::string> Credentials::token() {
  const std::lock_guard lock(mutex_);
  if (file_.empty()) return token_;
  const auto now = clock_.now().since_boot;
  if (read_at_ && now - *read_at_ < age_max_) return token_;
  const auto done = read();
  if (!done && token_.empty()) return fail(done.error());
  read_at_ = now;
  return token_;
}

bool Credentials::has_other_than(const std::string& token) {
  const std::lock_guard lock(mutex_);
  if (file_.empty()) return false;
  if (token_ != token) return true;  // another thread was here
  if (read()) read_at_ = clock_.now().since_boot;
  return token_ != token;
}

std::string Credentials::refusal_of(const std::string& token) const {
  if (token.empty()) {
    return has_certificate_
               ? "the API server does not take the client certificate of the kubeconfig: it ended, or its CA "
                 "is another; write a new one into the kubeconfig"
               : "the kubeconfig names neither a token nor a client certificate; give it one";
  }
  const std::string which = file_.empty() ? "the token of the kubeconfig" : fmt::format("the token in {}", file_);
  const WallTime now = clock_.now().wall;
  const auto life = wire::kube::life_of_token(token);
  if (life && life->end <= now) {
    return fmt::format(
        "{} ended at {}; write a new one there (kubectl create token; croftd install makes one, and the "
        "agent renews it)",
        which, rfc3339_exact(life->end));
  }
  if (life && life->made > now + kSkewMax) {
    return fmt::format("{} was made at {}, which this machine's clock takes for the future; set the clock", which,
                       rfc3339_exact(life->made));
  }
  return fmt::format(
      "{}{} was revoked (its service account was deleted or made anew), is of another cluster, or the "
      "API server's clock differs; write a new one there",
      which, life ? fmt::format(", good until {},", rfc3339_exact(life->end)) : "");
}

}  // namespace croft::store::kube
