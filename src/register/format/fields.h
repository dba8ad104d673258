#pragma once

#include <vector>

#include "register/cooling_beside.h"
#include "register/format/field_table.h"

namespace croft::wire {

/// The member `cooling` of a record of Calico's datastore (calico/records.cc): the addresses that cool beside a block.
void write_cooling_beside(CanonicalWriter& out, const std::vector<core::CoolingBeside>& beside);
void read_cooling_beside(CanonicalReader& in, std::vector<core::CoolingBeside>& beside);

}  // namespace croft::wire
