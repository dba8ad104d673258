#include "agent/daemon/open_register.h"

#include <utility>

#include "ipam/use/attachments.h"
#include "register/seal.h"
#include "store/seal.h"

namespace croft::app {

Result<void> check_is_open(engine::Context& context) {
  const auto open = engine::check_writable(context);
  if (open || open.error().code == ErrorCode::permission_denied) return {};
  Error error = open.error();
  auto* const sealable = dynamic_cast<store::Sealable*>(&context.store);
  const auto found = sealable != nullptr ? sealable->seal(engine::deadline_of_use_case(context))
                                         : Result<std::optional<store::StoredSeal>>(std::nullopt);
  using Phase = core::Seal::Phase;
  const bool is_sealed = found && *found;
  if (is_sealed && (*found)->seal.phase == Phase::moved) {
    error.code = ErrorCode::refused_by_configuration;
  } else if (!found && (error.code == ErrorCode::corrupt || error.code == ErrorCode::newer_version)) {
    error.message += "; the register is closed until that is mended (docs/runbooks/migrate.md#damaged-seal)";
  } else if (error.code == ErrorCode::unavailable && !(is_sealed && (*found)->seal.phase == Phase::given_up)) {
    error.message += "; run it again then";
  }
  return fail(std::move(error));
}

}  // namespace croft::app
