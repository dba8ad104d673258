#include "vpc/ucloud/credentials.h"

#include <algorithm>

namespace croft::cloud::ucloud {
namespace {

constexpr std::chrono::minutes kRenewBefore{5};
constexpr std::chrono::seconds kFetchTime{5};
/// How long keys that are still good, or given ones, are used before the metadata are asked again in vain.
constexpr std::chrono::seconds kPause{15};
/// However far ahead their end is by this machine's clock, which may be wrong.
constexpr std::chrono::hours kLifeMost{12};

}  // namespace

Result<wire::ucloud::Credentials> CredentialSource::fetch(Deadline deadline) {
  const Deadline own = Deadline::after(clock_.now(), kFetchTime);
  const Deadline soon{std::min(own.at_since_boot, deadline.at_since_boot)};
  const auto response = metadata_.call({"GET", path_, {{"Duration-Seconds", "3600"}}, {}}, soon);
  if (!response) {
    const ErrorCode code = response.error().code;
    // To be asked for them changes nothing: nobody has to know whether it came.
    return fail(
        Error{code == ErrorCode::unknown_outcome ? ErrorCode::unavailable : code, response.error().message, {}}.in(
            "credentials from metadata"));
  }
  if (response->status != 200) {
    const bool passes = response->status >= 500;
    return fail(passes ? ErrorCode::unavailable : ErrorCode::refused_by_configuration,
                "credentials from metadata: HTTP " + std::to_string(response->status) +
                    (passes ? "" : ": has this machine the role?"));
  }
  auto credentials = wire::ucloud::decode_credentials(response->body);
  if (!credentials) {
    Error error = std::move(credentials).error();
    if (error.code == ErrorCode::invalid_argument) error.code = ErrorCode::unavailable;
    return fail(error.in("credentials from metadata"));
  }
  return credentials;
}

/// The metadata give no keys that are over already: where they seem to be, the clock is ahead, and the API is asked
/// what it thinks of them. One that is behind makes them seem to last longer; the API refuses them then, and they are
/// forgotten.
void CredentialSource::keep(wire::ucloud::Credentials fetched) {
  const Instant now = clock_.now();
  const std::chrono::nanoseconds left = std::max<std::chrono::nanoseconds>(fetched.expires - now.wall, kPause);
  now_ = Known{std::move(fetched.keys), now.since_boot + std::min<std::chrono::nanoseconds>(left, kLifeMost)};
  not_before_.reset();
  // Keys that live shorter than five minutes would be asked for at each call.
  if (left < kRenewBefore) not_before_ = now.since_boot + kPause;
}

Result<wire::ucloud::Keys> CredentialSource::keys(Deadline deadline) {
  const std::lock_guard lock(mutex_);
  const std::chrono::nanoseconds now = clock_.now().since_boot;
  const bool is_good = now_ && now < now_->good_until;
  if (is_good && now < now_->good_until - kRenewBefore) return now_->keys;
  const bool has_other = is_good || !fixed_.private_key.empty();
  if (has_other && not_before_ && now < *not_before_) return is_good ? now_->keys : fixed_;
  auto fetched = fetch(deadline);
  if (fetched) {
    keep(*std::move(fetched));
    return now_->keys;
  }
  if (!has_other) return fail(std::move(fetched).error());
  not_before_ = clock_.now().since_boot + kPause;
  return is_good ? now_->keys : fixed_;
}

void CredentialSource::forget(const wire::ucloud::Keys& keys) {
  const std::lock_guard lock(mutex_);
  if (!now_ || now_->keys != keys) return;
  now_.reset();
  not_before_.reset();
}

}  // namespace croft::cloud::ucloud
