#include <cstdint>
#include <string>
#include <utility>

#include "base/text/base64.h"
#include "register/format/fields.h"

namespace croft::wire {
namespace {

constexpr std::uint32_t kLengthMax = 128;

struct Base64 {
  static void write(CanonicalWriter& out, const std::string& bytes) {
    out.raw("\"").raw(encode_base64(bytes)).raw("\"");  // none of its characters needs an escape
  }
  static void read(CanonicalReader& in, std::string& bytes) {
    if (auto data = decode_base64(in.text())) {
      bytes = *std::move(data);
    } else {
      in.reject("data is no base64");
    }
  }
};

// clang-format off: a member a line
constexpr auto kRangeAllocation =
    fields(field("range", &core::RangeAllocation::range), field("data", &core::RangeAllocation::data, Base64{}));

constexpr auto kNodeRange = fields(field("node", &core::NodeRange::node), field("cidr", &core::NodeRange::cidr));

constexpr auto kClusterCidr = fields(field("cidr", &core::ClusterCidr::cidr),
                                     field("nodeLength", &core::ClusterCidr::node_length, UpTo{kLengthMax}));
constexpr auto kNodeRangeSet =
    fields(field("generation", &core::NodeRangeSet::generation),
           field("clusterCIDRs", &core::NodeRangeSet::cluster_cidrs, ListOf<Object<kClusterCidr>>{}),
           field("excluded", &core::NodeRangeSet::excluded), field("cursors", &core::NodeRangeSet::cursors));
// clang-format on

}  // namespace

void write_members(CanonicalWriter& out, const core::RangeAllocation& range) { kRangeAllocation.write(out, range); }
void read_members(CanonicalReader& in, core::RangeAllocation& range) { kRangeAllocation.read(in, range); }
void write_members(CanonicalWriter& out, const core::NodeRange& range) { kNodeRange.write(out, range); }
void read_members(CanonicalReader& in, core::NodeRange& range) { kNodeRange.read(in, range); }
void write_members(CanonicalWriter& out, const core::NodeRangeSet& set) { kNodeRangeSet.write(out, set); }
void read_members(CanonicalReader& in, core::NodeRangeSet& set) { kNodeRangeSet.read(in, set); }

}  // namespace croft::wire
