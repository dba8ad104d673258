#include "wire/records/fields.h"
#include "wire/text/base64.h"

namespace croft::wire {
namespace {

constexpr std::uint32_t kLengthMax = 128;

void write_cluster_cidr(CanonicalWriter& out, const core::ClusterCidr& cluster) {
  out.raw("{\"cidr\":");
  write_prefix(out, cluster.cidr);
  out.raw(",\"nodeLength\":").number(std::int64_t{cluster.node_length}).raw("}");
}

core::ClusterCidr read_cluster_cidr(CanonicalReader& in) {
  core::ClusterCidr cluster;
  in.expect("{\"cidr\":");
  cluster.cidr = read_prefix(in);
  in.expect(",\"nodeLength\":");
  cluster.node_length = static_cast<int>(in.small_number(kLengthMax));
  in.expect("}");
  return cluster;
}

}  // namespace

void write_range_allocation(CanonicalWriter& out, const core::RangeAllocation& range) {
  out.raw("\"range\":").text(range.range).raw(",\"data\":\"").raw(encode_base64(range.data)).raw("\"");
}

core::RangeAllocation read_range_allocation(CanonicalReader& in) {
  core::RangeAllocation range;
  in.expect("\"range\":");
  range.range = in.text();
  in.expect(",\"data\":");
  if (auto data = decode_base64(in.text())) {
    range.data = *std::move(data);
  } else {
    in.reject("data is no base64");
  }
  return range;
}

void write_node_range(CanonicalWriter& out, const core::NodeRange& range) {
  out.raw("\"node\":").text(range.node).raw(",\"cidr\":");
  write_prefix(out, range.cidr);
}

core::NodeRange read_node_range(CanonicalReader& in) {
  core::NodeRange range;
  in.expect("\"node\":");
  range.node = in.text();
  in.expect(",\"cidr\":");
  range.cidr = read_prefix(in);
  return range;
}

void write_node_range_set(CanonicalWriter& out, const core::NodeRangeSet& set) {
  out.raw("\"generation\":").number(set.generation).raw(",\"clusterCIDRs\":");
  write_list(out, set.cluster_cidrs, [&](const core::ClusterCidr& cluster) { write_cluster_cidr(out, cluster); });
  out.raw(",\"excluded\":");
  write_prefixes(out, set.excluded);
  out.raw(",\"cursors\":");
  write_list(out, set.cursors, [&](std::uint64_t cursor) { out.number(cursor); });
}

core::NodeRangeSet read_node_range_set(CanonicalReader& in) {
  core::NodeRangeSet set;
  in.expect("\"generation\":");
  set.generation = in.unsigned_number();
  in.expect(",\"clusterCIDRs\":");
  set.cluster_cidrs = read_list(in, kListMax, [&] { return read_cluster_cidr(in); });
  in.expect(",\"excluded\":");
  set.excluded = read_prefixes(in);
  in.expect(",\"cursors\":");
  set.cursors = read_list(in, kListMax, [&] { return in.unsigned_number(); });
  return set;
}

}  // namespace croft::wire
