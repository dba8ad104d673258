#include "agent/daemon/open_register.h"

#include <utility>

#include "ipam/use/attachments.h"
#include "store/pause.h"

namespace croft::app {
Result<void> check_is_open(engine::Context& context) {
  const auto open = engine::check_writable(context);
  if (open || open.error().code == ErrorCode::permission_denied) return {};
  Error error = open.error();
  if (error.code != ErrorCode::unavailable) return fail(std::move(error));
  auto* const pausable = dynamic_cast<store::Pausable*>(&context.store);
  const auto there = pausable != nullptr ? pausable->pause(engine::deadline_of_use_case(context))
                                         : Result<std::optional<store::StoredPause>>(std::nullopt);
  if (there && *there && (*there)->pause.phase == core::Pause::Phase::moved) {
    error.code = ErrorCode::refused_by_configuration;
  } else {
    error.message += "; run it again then";
  }
  return fail(std::move(error));
}

}  // namespace croft::app
