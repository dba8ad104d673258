#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "store/kube/format/kubeconfig.h"

namespace croft::store::kube {

/// The bearer token of a KubeAccess. One in a file is read again at the latest after `age_max`: kubelet renews those of
/// pods when 80 % of their time is over (client-go reads every minute). Safe to use from several threads; whoever finds
/// it too old reads the file, the others wait for that.
class Credentials {
 public:
  /// `clock` must outlive it. Reads nothing.
  Credentials(const wire::kube::KubeAccess& access, std::chrono::nanoseconds age_max, const Clock& clock);

  /// The token to send; empty: none. A file that cannot be read just now leaves the one before it in use, as in
  /// client-go. Errors, when there is none before it: as os::read_secret_file (but see
  /// KubeAccess::token_file_is_the_pods); invalid_argument when the file has no token.
  [[nodiscard]] Result<std::string> token();

  /// The server has refused `token`: reads the file now. Whether there is another one to try.
  [[nodiscard]] bool has_other_than(const std::string& token);

  /// The server has refused `token`: what that is, where it is from and when it ended, and what to do, for a person.
  /// Nothing of it can be used by who reads it.
  [[nodiscard]] std::string refusal_of(const std::string& token) const;

 private:
  /// With `mutex_` held.
  [[nodiscard]] Result<void> read();

  const std::string file_;
  const bool has_certificate_;
  const bool checks_mode_;
  const std::chrono::nanoseconds age_max_;
  const Clock& clock_;
  std::mutex mutex_;
  std::string token_;                                ///< guarded by mutex_
  std::optional<std::chrono::nanoseconds> read_at_;  ///< guarded by mutex_: since boot
};

}  // namespace croft::store::kube
