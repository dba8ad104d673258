#include "ipam/use/config.h"

#include "ipam/use/each_record.h"

namespace croft::engine {

Result<core::IpamConfig> read_config(const Context& context) {
  const Deadline deadline = Deadline::after(context.clock.now(), context.time_limit);
  TRY(const auto record, get_sound(context, core::ipam_config_key(), deadline));
  return record ? std::get<core::IpamConfig>(*record->value) : core::IpamConfig();
}

Result<core::IpamConfig> set_config(const Context& context, const core::ConfigChange& change) {
  return transact(context, TurnTaking::before_writing, [&](const core::Snapshot& snapshot, const Instant&) {
    return core::plan_set_config(snapshot, change);
  });
}

}  // namespace croft::engine
