#pragma once

// The kinds whose tables (field_table.h) are not in records.cc. Private to wire.

#include <vector>

#include "register/block.h"
#include "register/cooling_beside.h"
#include "register/format/field_table.h"
#include "register/node_range.h"
#include "register/records.h"
#include "register/service.h"
#include "register/warm.h"

namespace croft::wire {

/// What cools beside a block, which a record of its own and others have: the member `cooling`.
void write_cooling_beside(CanonicalWriter& out, const std::vector<core::CoolingBeside>& beside);
void read_cooling_beside(CanonicalReader& in, std::vector<core::CoolingBeside>& beside);

struct BootIdText {
  static void write(CanonicalWriter& out, const BootId& boot);
  static void read(CanonicalReader& in, BootId& value);
};

/// Of a cooling address: `releasedAt` and what follows, without braces.
void write_members(CanonicalWriter& out, const core::Cooling& cooling);
void read_members(CanonicalReader& in, core::Cooling& cooling);

// The members of a record, without version and braces.

void write_members(CanonicalWriter& out, const core::Block& block);
void read_members(CanonicalReader& in, core::Block& block);
void write_members(CanonicalWriter& out, const core::BlockBeside& beside);
void read_members(CanonicalReader& in, core::BlockBeside& beside);

void write_members(CanonicalWriter& out, const core::RangeAllocation& range);
void read_members(CanonicalReader& in, core::RangeAllocation& range);
void write_members(CanonicalWriter& out, const core::NodeRange& range);
void read_members(CanonicalReader& in, core::NodeRange& range);
void write_members(CanonicalWriter& out, const core::NodeRangeSet& set);
void read_members(CanonicalReader& in, core::NodeRangeSet& set);

void write_members(CanonicalWriter& out, const core::Service& service);
void read_members(CanonicalReader& in, core::Service& service);
void write_members(CanonicalWriter& out, const core::ForeignService& foreign);
void read_members(CanonicalReader& in, core::ForeignService& foreign);
void write_members(CanonicalWriter& out, const core::IpAddressObject& object);
void read_members(CanonicalReader& in, core::IpAddressObject& object);
void write_members(CanonicalWriter& out, const core::ServiceCidrObject& object);
void read_members(CanonicalReader& in, core::ServiceCidrObject& object);

void write_members(CanonicalWriter& out, const core::WarmAddress& address);
void read_members(CanonicalReader& in, core::WarmAddress& address);
void write_members(CanonicalWriter& out, const core::WarmIntent& intent);
void read_members(CanonicalReader& in, core::WarmIntent& intent);
void write_members(CanonicalWriter& out, const core::WarmNode& node);
void read_members(CanonicalReader& in, core::WarmNode& node);

}  // namespace croft::wire
