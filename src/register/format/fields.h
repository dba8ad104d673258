#pragma once

// The kinds whose tables (field_table.h) are not in records.cc. Private to wire.

#include <vector>

#include "register/block.h"
#include "register/cooling_beside.h"
#include "register/format/field_table.h"
#include "register/records.h"

namespace croft::wire {

/// The member `cooling`: the addresses that cool beside a block, in a record of its own and in others.
void write_cooling_beside(CanonicalWriter& out, const std::vector<core::CoolingBeside>& beside);
void read_cooling_beside(CanonicalReader& in, std::vector<core::CoolingBeside>& beside);

struct BootIdText {
  static void write(CanonicalWriter& out, const BootId& boot);
  static void read(CanonicalReader& in, BootId& value);
};

/// The members of a cooling address: `releasedAt` and those behind it, without braces.
void write_members(CanonicalWriter& out, const core::Cooling& cooling);
void read_members(CanonicalReader& in, core::Cooling& cooling);

// The members of a record, without version and braces.

void write_members(CanonicalWriter& out, const core::Block& block);
void read_members(CanonicalReader& in, core::Block& block);
void write_members(CanonicalWriter& out, const core::BlockBeside& beside);
void read_members(CanonicalReader& in, core::BlockBeside& beside);

}  // namespace croft::wire
