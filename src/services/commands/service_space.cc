#include "services/commands/service_space.h"

#include <utility>

#include <fmt/format.h>

#include "cli/croft/command_line.h"

namespace croft::app {

Result<std::vector<engine::TakenSpace>> space_of_services(const engine::Context& context) {
  TRY(engine::ServiceSpace space, engine::service_space(context));
  if (space.unread) {
    tell(
        fmt::format("croft: whether a pool overlaps the range of Services is not known, as this API has no ServiceCIDR "
                    "(Kubernetes 1.33 and newer have) and Services can't be read: {}",
                    space.unread->message));
  }
  return std::move(space.taken);
}

}  // namespace croft::app
