#include "collector/audit/leaks.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/texts.h"
#include "base/time_text.h"
#include "collector/decide/judge.h"
#include "collector/decide/register_view.h"
#include "ipam/audit/runtime_comparison.h"

namespace croft::core::audit {
namespace {

using collect::AllocationOwner;
using collect::Doubt;
using collect::Facts;

/// An allocation with the attribute that `owner` looks into.
struct Held {
  explicit Held(const Allocation& one)
      : attribute{one.handle_id.empty() ? std::nullopt : std::optional(one.handle_id),
                  one.attributes,
                  one.alternate_owner,
                  {}},
        owner(collect::owner_of_allocation(attribute)) {}
  Attribute attribute;
  AllocationOwner owner;
};

std::string since_of(const Allocation& one) {
  const auto text = one.attributes.find(kTimestampKey);
  if (text == one.attributes.end()) return "";
  const auto time = parse_go_utc_text(text->second);
  return time ? rfc3339_exact(std::chrono::floor<std::chrono::seconds>(*time)) : "";
}

std::string node_command(std::string_view node, const std::string& asked_with) {
  return fmt::format(
      "if the node is gone for good, `croft node remove {0} --release{1} --dry-run` shows what it leaves, and without "
      "--dry-run gives it back",
      in_shell_quotes_if_needed(std::string(node)), asked_with);
}

class LeakSearch {
 public:
  LeakSearch(Report& report, const Facts& facts, const LeakLook& look) : report_(report), facts_(facts), look_(look) {}

  void run() {
    if (auto why = distrust()) {
      report_.notes.push_back(*std::move(why) + ": no address is told to be of a pod or node that is gone");
      return;
    }
    for (std::size_t i = 0; i < report_.allocations.size(); ++i) {
      if (!report_.allocations[i].cooling) judge(i);
    }
    judge_tunnels();
    judge_other_sandboxes();
    judge_blocks();
    note_unnamed();
  }

 private:
  /// Why nothing may be concluded of the lists.
  [[nodiscard]] std::optional<std::string> distrust() const {
    std::set<std::string> nodes;
    std::size_t for_pods = 0, known_pods = 0;
    for (const Allocation& one : report_.allocations) {
      if (one.cooling) continue;
      if (const std::string node = one.node(); !node.empty()) nodes.insert(node);
      const auto pod = one.attributes.find(kPodKey), name_space = one.attributes.find(kNamespaceKey);
      if (pod == one.attributes.end() || name_space == one.attributes.end()) continue;
      ++for_pods;
      known_pods += facts_.pod(name_space->second, pod->second).answer != Facts::Pod::Answer::absent ? 1 : 0;
    }
    for (const BlockOfNode& block : report_.blocks_of_nodes) nodes.insert(block.node);
    if (facts_.pods_known() && facts_.pod_count() == 0 && for_pods > 0) return "the cluster's list of pods is empty";
    if (!look_.nodes_known) {
      // Nothing else tells that the cluster is the one.
      if (for_pods == 0 || known_pods > 0) return std::nullopt;
      return "the cluster has none of the pods that hold addresses";
    }
    if (facts_.node_count() == 0 && !nodes.empty()) return "the cluster's list of nodes is empty";
    if (nodes.empty() || std::ranges::any_of(nodes, [&](const auto& name) { return facts_.has_node(name); })) {
      return std::nullopt;
    }
    return fmt::format("none of the cluster's {} is one that the register names ({}{})",
                       counted(facts_.node_count(), "node"), *nodes.begin(), nodes.size() > 1 ? ", …" : "");
  }

  [[nodiscard]] bool is_absent(std::string_view node) const {
    return look_.nodes_known && !node.empty() && !facts_.has_node(std::string(node));
  }
  [[nodiscard]] bool is_looked_at(std::string_view node) const { return look_.node.empty() || look_.node == node; }

  /// "held since T for pod shop/web-0 (handle H) on node n1"
  static std::string held_text(const Allocation& one) {
    const std::string since = since_of(one);
    return fmt::format("held since {} by {}", since.empty() ? "an unknown time" : since,
                       holder_text(one.handle_id, one.attributes));
  }
  [[nodiscard]] std::string absent_node(std::string_view node) const {
    return fmt::format("node {} is not among {}", node, counted(facts_.node_count(), "node"));
  }

  template <class... Arguments>
  void add(Allocation& one, const AllocationOwner& owner, FindingName name, const Arguments&... arguments) {
    if (!is_looked_at(owner.node)) return;
    one.problem = true;
    Finding finding = found(name, one.address, held_text(one), arguments...);
    finding.pod = {std::string(owner.pod), std::string(owner.namespace_name), std::string(owner.uid)};
    finding.since = since_of(one);
    finding.looks = 1;
    report_.findings.push_back(std::move(finding));
  }
  void add_gone(Allocation& one, const AllocationOwner& owner, FindingName name, const std::string& why,
                const std::string& remedy) {
    // The runtime knows more of one that is not attached.
    if (!is_looked_at(owner.node) || one.unattached) return;
    one.gone = true;
    add(one, owner, name, why, remedy);
  }

  void judge(std::size_t index) {
    Allocation& one = report_.allocations[index];
    const Held held(one);
    const AllocationOwner& owner = held.owner;
    if (owner.kind == AllocationOwner::Kind::tunnel) return tunnels_.push_back(index);
    if (owner.kind == AllocationOwner::Kind::kept) return note_kept(one, owner);
    if (owner.kind != AllocationOwner::Kind::pod) return;
    const bool node_gone = is_absent(owner.node);
    const Facts::Pod pod = facts_.pod(owner.namespace_name, owner.pod);
    const Doubt doubt =
        collect::doubt_of_pod(facts_, pod, {one.address, node_gone, owner.is_static, collect::uid_identity(owner.uid)});
    const std::string name = fmt::format("pod {}/{}", owner.namespace_name, owner.pod);
    switch (doubt) {
      case Doubt::none:
        alive_on_.insert(std::string(owner.node));
        if (pod.ended && facts_.pods_known()) {
          add(one, owner, "holder_in_doubt.pod_ended", owner.namespace_name, owner.pod);
        }
        return;
      case Doubt::pod_gone:
      case Doubt::pod_evicted:
      case Doubt::pod_replaced:
        return add_gone(one, owner, "pod_gone", collect::pod_fact(owner, pod, facts_),
                        release_command(one.address, one.handle_id, one.sequence_number, look_.asked_with));
      case Doubt::node_gone:
        return add_gone(one, owner, "node_gone",
                        absent_node(owner.node) + ", and " +
                            (!facts_.pods_known()                       ? "its pods are not known"
                             : pod.answer == Facts::Pod::Answer::absent ? collect::pod_fact(owner, pod, facts_)
                                                                        : name + " does not report it"),
                        node_command(owner.node, look_.asked_with));
      case Doubt::not_the_pods:
        alive_on_.insert(std::string(owner.node));
        return others_.push_back(index);
    }
  }

  /// A tunnel's address goes with its node, once nothing else of the node lives.
  void judge_tunnels() {
    for (const std::size_t index : tunnels_) {
      Allocation& one = report_.allocations[index];
      const Held held(one);
      const AllocationOwner& owner = held.owner;
      if (!look_.nodes_known || facts_.is_tunnel_address(one.address) || owner.node.empty()) continue;
      if (!is_absent(owner.node)) {
        add(one, owner, "holder_in_doubt.tunnel", owner.node);
      } else if (!alive_on_.contains(std::string(owner.node))) {
        add_gone(one, owner, "node_gone", absent_node(owner.node), node_command(owner.node, look_.asked_with));
      }
    }
  }

  /// The text that tells one interface of a pod's sandboxes from its others.
  static std::string line_of(const Allocation& one, const AllocationOwner& owner) {
    return fmt::format("{}/{} {} {} {}", owner.namespace_name, owner.pod, owner.network, owner.interface_name,
                       one.address.family() == net::Family::v4 ? 4 : 6);
  }

  /// A pod has one sandbox at a time: of two whose addresses are for the same interface it reports the other's. Which
  /// of them runs is not proven by that: a kubelet that is away reports what it had.
  void judge_other_sandboxes() {
    if (others_.empty()) return;
    std::map<std::string, std::vector<std::size_t>> by_line;
    for (const std::size_t index : others_) {
      const Held held(report_.allocations[index]);
      by_line[line_of(report_.allocations[index], held.owner)];
    }
    for (std::size_t i = 0; i < report_.allocations.size(); ++i) {
      if (report_.allocations[i].cooling) continue;
      const Held held(report_.allocations[i]);
      if (held.owner.kind != AllocationOwner::Kind::pod) continue;
      const auto line = by_line.find(line_of(report_.allocations[i], held.owner));
      if (line != by_line.end()) line->second.push_back(i);
    }
    for (const std::size_t index : others_) {
      Allocation& one = report_.allocations[index];
      const Held held(one);
      const AllocationOwner& owner = held.owner;
      const auto reported = facts_.pod(owner.namespace_name, owner.pod).addresses;
      const auto& rivals = by_line.at(line_of(one, owner));
      const bool is_doubtful = std::ranges::any_of(rivals, [&](std::size_t other) {
        const Allocation& rival = report_.allocations[other];
        return rival.handle_id != one.handle_id &&
               std::ranges::find(reported, rival.address.unmapped()) != reported.end();
      });
      if (!is_doubtful) continue;
      add(one, owner, "holder_in_doubt", owner.namespace_name, owner.pod, collect::addresses_text(reported),
          owner.node.empty() ? "" : " --node " + in_shell_quotes_if_needed(std::string(owner.node)));
    }
  }

  void judge_blocks() {
    std::map<net::Prefix, std::size_t> held;
    for (const Allocation& one : report_.allocations) held[one.block] += one.cooling ? 0 : 1;
    for (const BlockOfNode& block : report_.blocks_of_nodes) {
      if (!is_absent(block.node) || !is_looked_at(block.node)) continue;
      const auto count = held.find(block.cidr);
      report_.findings.push_back(
          found("block_node_gone", block.cidr, absent_node(block.node),
                counted_as(count == held.end() ? 0 : count->second, "address is held", "addresses are held"),
                node_command(block.node, look_.asked_with)));
      report_.findings.back().looks = 1;
    }
  }

  void note_kept(const Allocation& one, const AllocationOwner& owner) {
    const bool is_virtual = one.block_owner && one.block_owner->type == AffinityOwner::Type::virtual_owner;
    if (!owner.pod.empty() || is_virtual || !is_looked_at(owner.node) || one.handle_id.empty()) return;
    constexpr std::size_t kNamedMax = 3;
    if (++unnamed_count_ <= kNamedMax) unnamed_ += (unnamed_.empty() ? "" : ", ") + one.address.to_string();
    if (unnamed_count_ == kNamedMax + 1) unnamed_ += ", …";
  }
  void note_unnamed() {
    if (unnamed_count_ == 0) return;
    report_.notes.push_back(fmt::format(
        "{} {}: its record names neither a pod nor a node's tunnel, so nobody can be asked whether it is in use ({})",
        unnamed_count_, unnamed_count_ == 1 ? "address" : "addresses", unnamed_));
  }

  Report& report_;
  const Facts& facts_;
  const LeakLook& look_;
  std::vector<std::size_t> tunnels_, others_;
  std::set<std::string> alive_on_;  ///< nodes on which something is not proven gone
  std::string unnamed_;
  std::size_t unnamed_count_ = 0;
};

}  // namespace

void find_leaks(Report& report, const collect::Facts& facts, const LeakLook& look) {
  LeakSearch(report, facts, look).run();
}

}  // namespace croft::core::audit
