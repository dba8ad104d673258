#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "http/http1_client.h"
#include "vpc/format/ucloud/answers.h"

namespace croft::cloud::ucloud {

/// Our identity to the API: keys that the machine's metadata give for a while, renewed 5 minutes before they end; keys
/// that were given, where there are none. Safe to use from several threads; one of them renews, and the others wait for
/// it. Their end is turned into time since the boot when they come: where the wall clock is put later does not matter.
class CredentialSource {
 public:
  /// `fixed` without private key: there are none. `metadata` must outlive this.
  CredentialSource(os::Http1Client& metadata, std::string path, wire::ucloud::Keys fixed, const Clock& clock)
      : metadata_(metadata), path_(std::move(path)), fixed_(std::move(fixed)), clock_(clock) {}

  /// Errors: unavailable; refused_by_configuration when the metadata give none and none were given; deadline_exceeded.
  [[nodiscard]] Result<wire::ucloud::Keys> keys(Deadline deadline);
  /// The API does not know the token of these: they are not used again.
  void forget(const wire::ucloud::Keys& keys);

 private:
  struct Known {
    wire::ucloud::Keys keys;
    std::chrono::nanoseconds good_until{};  ///< since the boot
  };
  [[nodiscard]] Result<wire::ucloud::Credentials> fetch(Deadline deadline);
  void keep(wire::ucloud::Credentials fetched);

  os::Http1Client& metadata_;
  const std::string path_;
  const wire::ucloud::Keys fixed_;
  const Clock& clock_;
  std::mutex mutex_;
  std::optional<Known> now_;                            ///< guarded by mutex_, as below
  std::optional<std::chrono::nanoseconds> not_before_;  ///< after a failure: when to ask again
};

}  // namespace croft::cloud::ucloud
