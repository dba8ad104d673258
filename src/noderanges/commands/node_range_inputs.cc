#include "noderanges/commands/node_range_inputs.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/texts.h"
#include "store/kube/cluster_facts.h"
#include "store/store_url.h"

namespace croft::app {
namespace {

/// For a page of a list: the server reads 500 nodes.
constexpr std::chrono::seconds kPageTime{15};

class ClusterNodes final : public engine::NodeCidrs {
 public:
  ClusterNodes(std::unique_ptr<store::kube::Api> api, const Clock& clock) : api_(std::move(api)), clock_(clock) {}
  [[nodiscard]] Result<std::vector<OfNode>> all() override {
    TRY(auto nodes, store::kube::list_nodes(*api_, clock_));
    std::vector<OfNode> all;
    for (auto& one : nodes) {
      all.push_back({std::move(one.name), std::move(one.cidrs), std::move(one.damage), one.being_deleted,
                     std::move(one.written_by)});
    }
    return all;
  }
  [[nodiscard]] Result<void> publish(const std::string& node, const std::vector<net::Prefix>& cidrs) override {
    return store::kube::say_node_cidrs(*api_, node, cidrs, Deadline::after(clock_.now(), kPageTime));
  }

 private:
  const std::unique_ptr<store::kube::Api> api_;
  const Clock& clock_;
};

}  // namespace

Result<std::unique_ptr<engine::NodeCidrs>> open_node_cidrs(const std::string& store_url, const Clock& clock,
                                                           const StoreParts& parts) {
  if (store::scheme_of(store_url) != store::Scheme::kube) return nullptr;
  TRY(auto api, open_kube_api(store_url, clock, parts, kPageTime));
  return std::make_unique<ClusterNodes>(std::move(api), clock);
}

namespace {

constexpr int kMaskV4 = 24;
constexpr int kMaskV6 = 64;

auto wrong(std::string text) { return fail(ErrorCode::invalid_argument, std::move(text)); }

struct Masks {
  int v4 = kMaskV4;
  int v6 = kMaskV6;
};

/// setNodeCIDRMaskSizes of the reference.
[[nodiscard]] Result<Masks> masks_of(const NodeRangeFlags& flags, bool has_v4, bool has_v6) {
  if (has_v4 && has_v6 && flags.mask_size != 0) {
    return wrong("usage of --node-cidr-mask-size is not allowed with dual-stack clusters");
  }
  if (flags.mask_size != 0 && (flags.mask_size_ipv4 != 0 || flags.mask_size_ipv6 != 0)) {
    return wrong(
        "usage of --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6 is not allowed if --node-cidr-mask-size is "
        "set. For dual-stack clusters please unset it and use IPFamily specific flags");
  }
  if (flags.mask_size_ipv4 != 0 && !has_v4) {
    return wrong("usage of --node-cidr-mask-size-ipv4 is not allowed for a single-stack IPv6 cluster");
  }
  if (flags.mask_size_ipv6 != 0 && !has_v6) {
    return wrong("usage of --node-cidr-mask-size-ipv6 is not allowed for a single-stack IPv4 cluster");
  }
  Masks masks;
  if (flags.mask_size != 0) (has_v4 ? masks.v4 : masks.v6) = flags.mask_size;
  if (flags.mask_size_ipv4 != 0) masks.v4 = flags.mask_size_ipv4;
  if (flags.mask_size_ipv6 != 0) masks.v6 = flags.mask_size_ipv6;
  return masks;
}

[[nodiscard]] Result<void> read_service_ranges(const NodeRangeFlags& flags, NodeRangeFlagsRead& read) {
  if (flags.service_cluster_ip_range.empty()) return {};
  const auto parts = split(flags.service_cluster_ip_range, ',');
  if (parts.size() > 2) return wrong("--service-cluster-ip-range can not contain more than two entries");
  for (const std::string_view part : parts) {
    if (const auto range = net::Prefix::parse(part)) {
      read.spec.excluded.push_back(*range);
    } else {
      read.warnings.push_back(
          fmt::format("Unsuccessful parsing of service CIDR {}: {}", echo(part), range.error().message));
    }
  }
  const auto& ranges = read.spec.excluded;
  if (ranges.size() == 2 && ranges[0].family() == ranges[1].family()) {
    return wrong("serviceCIDR and secondaryServiceCIDR are not dualstack (from different IPfamiles)");
  }
  return {};
}

}  // namespace

void add_node_range_flags(CLI::App& command, NodeRangeFlags& flags) {
  command.add_option(
      "--cluster-cidr", flags.cluster_cidr,
      "Cluster CIDRs that node ranges are cut from, separated by commas, tried in this order within a family");
  const CLI::Range lengths(1, 128);
  command
      .add_option("--node-cidr-mask-size", flags.mask_size, "Prefix length of node ranges in a single-stack cluster")
      ->check(lengths);
  command
      .add_option("--node-cidr-mask-size-ipv4", flags.mask_size_ipv4, "Prefix length of IPv4 node ranges (default: 24)")
      ->check(lengths);
  command
      .add_option("--node-cidr-mask-size-ipv6", flags.mask_size_ipv6, "Prefix length of IPv6 node ranges (default: 64)")
      ->check(lengths);
  command.add_option("--service-cluster-ip-range", flags.service_cluster_ip_range,
                     "Service ranges, at most one per family; no node range overlaps them");
}

Result<NodeRangeFlagsRead> read_node_range_flags(const NodeRangeFlags& flags) {
  if (flags.cluster_cidr.empty())
    return wrong("Controller: Must specify --cluster-cidr if --allocate-node-cidrs is set");
  NodeRangeFlagsRead read;
  std::vector<net::Prefix> cidrs;
  for (const std::string_view part : split(flags.cluster_cidr, ',')) {
    auto cidr = net::Prefix::parse(part);
    if (!cidr) return fail(cidr.error().in("--cluster-cidr"));
    cidrs.push_back(*cidr);
  }
  const auto has = [&](net::Family family) { return std::ranges::count(cidrs, family, &net::Prefix::family) != 0; };
  TRY(const Masks masks, masks_of(flags, has(net::Family::v4), has(net::Family::v6)));
  for (const net::Prefix& cidr : cidrs) {
    const int mask = cidr.family() == net::Family::v4 ? masks.v4 : masks.v6;
    if (cidr.length() > mask) {
      return wrong(
          fmt::format("Controller: Invalid --cluster-cidr, mask size of cluster CIDR must be less than or equal to "
                      "--node-cidr-mask-size configured for CIDR family: {} cut into /{}",
                      cidr, mask));
    }
    read.spec.cluster_cidrs.push_back({cidr, mask});
  }
  TRY_VOID(read_service_ranges(flags, read));
  return read;
}

}  // namespace croft::app
