#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/croft/json_output.h"
#include "cli/croft/table.h"
#include "vpc/format/messages.h"

// The tables of `croft vpc get` and `cnivpctl get` (docs/notes/warm-pool.md#cnivpctl): pure, from what agents said to
// text. `now` is in seconds since the epoch.

namespace croft::app {

enum class VpcKind : std::uint8_t { node, pool, pod, unuse };

/// One line of a list.
struct VpcRow {
  std::string node;
  std::string id;                  ///< what it is about: an address, a pod's name; of a node nothing
  std::string ip;                  ///< the address; of a node nothing
  std::vector<std::string> cells;  ///< those of vpc_headings(), without the node of the wide form
  nlohmann::ordered_json object;   ///< of JSON and YAML
  std::string why{};               ///< of unuse, for Croft's own table
};

/// `subnet`: empty when the agent did not say.
[[nodiscard]] VpcRow vpc_node_row(const std::string& node, const std::string& address, const std::string& subnet,
                                  std::int64_t pool);
[[nodiscard]] VpcRow vpc_pool_row(const std::string& node, const wire::vpc::PodNetwork& network, bool cooldown,
                                  std::int64_t now);
[[nodiscard]] VpcRow vpc_pod_row(const std::string& node, const wire::vpc::PodNetwork& network, std::int64_t now);
[[nodiscard]] VpcRow vpc_unuse_row(const std::string& node, const wire::vpc::PodNetwork& network);

/// By node, then by address or pod, numbers as numbers.
void sort_vpc_rows(std::vector<VpcRow>& rows);
/// Leaves those whose node or address has `part` in it; all of them when it is empty.
void filter_vpc_rows(std::vector<VpcRow>& rows, const std::string& part);

/// IP RECYCLED COOLDOWN AGE and so on; `wide` adds NODE, but for nodes.
[[nodiscard]] std::vector<std::string> vpc_headings(VpcKind kind, bool wide);
/// Croft's own table.
[[nodiscard]] Table vpc_table(VpcKind kind, const std::vector<VpcRow>& rows, bool wide);
/// cnivpctl's: every column, the last too, is as wide as its longest cell and two blanks.
[[nodiscard]] std::string cnivpctl_table(VpcKind kind, const std::vector<VpcRow>& rows, bool wide);
/// cnivpctl's: an object when there is exactly one row, else an array.
[[nodiscard]] Data cnivpctl_data(const std::vector<VpcRow>& rows);
/// Croft's: an array always.
[[nodiscard]] Data vpc_data(const std::vector<VpcRow>& rows);

/// How long ago: years beyond one, days beyond 5, hours beyond 5, minutes beyond 5, else seconds: "72h" for three days.
/// "0s" for what is to come.
[[nodiscard]] std::string vpc_age(std::int64_t now, std::int64_t then);

}  // namespace croft::app
