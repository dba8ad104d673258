#include "store/kube/credentials.h"

#include <utility>

#include <fmt/format.h>

#include "os/files.h"
#include "os/secret_file.h"
#include "wire/kube/kube_server.h"

namespace croft::store::kube {

Credentials::Credentials(const wire::kube::KubeAccess& access, std::chrono::nanoseconds age_max, const Clock& clock)
    : file_(access.token_file),
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

}  // namespace croft::store::kube
