#include "install/decide/node_network.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/texts.h"
#include "store/store_url.h"

namespace croft::core {
namespace {

[[nodiscard]] bool is_register(std::string_view program) { return program == "croft-ipam" || program == "calico-ipam"; }

/// "podman" of "87-podman.conflist".
[[nodiscard]] std::string_view stem_of(std::string_view file) {
  file = file.substr(0, file.rfind('.'));
  const std::size_t first = file.find_first_not_of("0123456789");
  if (first != file.npos && file[first] == '-') file.remove_prefix(first + 1);
  return file;
}

/// Main plugins that are installed with a configuration of their own.
[[nodiscard]] bool brings_network(std::string_view main) { return main == "calico" || main == "flannel"; }

/// Configurations that packages ship as examples.
[[nodiscard]] bool is_example(std::string_view file) {
  constexpr std::array<std::string_view, 4> kExamples = {"crio-bridge", "podman", "podman-bridge", "loopback"};
  return std::ranges::find(kExamples, stem_of(file)) != kExamples.end();
}

[[nodiscard]] bool is_multus_of_ours(const NodeNetwork& there, const WantedNetwork& own) {
  if (!there.calls_others || (there.other.empty() && there.delegates.empty())) return false;
  const bool names_ours = there.other.empty() || there.other == own.name || there.other.ends_with("/" + own.file);
  return names_ours && std::ranges::all_of(there.delegates, [&](const NodeNetwork& copy) {
           return is_same_giver(copy.giver, own.giver);
         });
}

[[nodiscard]] std::string text_of(const NodeNetwork& there) {
  if (!there.trouble.empty()) return fmt::format("{}, which cannot be read ({})", echo(there.file), there.trouble);
  const std::string by = there.giver.records.empty() || there.giver.records == there.name
                             ? there.giver.program
                             : fmt::format("{} of {}", there.giver.program, store::without_user(there.giver.records));
  return fmt::format("{}, the network {}{}", echo(there.file), echo(there.name),
                     there.giver.program.empty() ? "" : ", whose addresses come from " + echo(by));
}

/// Its pods keep addresses that Croft does not know; only people can say that they are gone.
[[nodiscard]] Result<void> give_up(const NodeNetwork& there, const WantedNetwork& own, NetworkVerdict& verdict) {
  const bool is_said = !own.replaced.empty() && (own.replaced == there.name || own.replaced == there.file);
  const bool is_own = is_register(there.giver.program);
  if (!is_said) {
    return fail(ErrorCode::refused_for_safety,
                "a node has one network, and this one has {}; {} would be another. Drain the node and remove that "
                "file, {}or set it aside with --replace {}: its pods keep addresses that Croft does not know",
                text_of(there), own.file,
                is_own ? "or move the register (`croft store copy`) and give --replace, " : "",
                echo(there.name.empty() ? there.file : there.name));
  }
  verdict.told.push_back(echo(there.file) +
                         (is_own ? ": it names another register now; its pods are known there after `croft store copy`"
                                 : ": its pods keep addresses that Croft does not know"));
  const bool is_overwritten = there.file == own.file || own.written.contains(there.file);
  if (!is_overwritten) verdict.set_aside.push_back(there.file);
  return {};
}

[[nodiscard]] Result<void> judge_multus(const NodeNetwork& there, const WantedNetwork& own, NetworkVerdict& verdict) {
  for (const NodeNetwork& copy : there.delegates) {
    if (!copy.node.empty() && copy.node != own.node) {
      return fail(ErrorCode::refused_for_safety,
                  "{} comes first and has a copy of Croft's network with the nodename {}, and this node is {}. Remove "
                  "that file, so that Multus writes it anew",
                  echo(there.file), echo(copy.node), echo(own.node));
    }
    if (copy.is_as_wanted) continue;
    verdict.told.push_back(fmt::format(
        "{} comes first and has a copy of Croft's network that differs from {}; pods go by the copy. Remove "
        "that file, so that Multus writes it anew",
        echo(there.file), own.file));
  }
  return {};
}

}  // namespace

bool is_network_file(std::string_view name) {
  return name.ends_with(".conf") || name.ends_with(".conflist") || name.ends_with(".json");
}

bool is_same_giver(const NetworkGiver& a, const NetworkGiver& b) {
  if (is_register(a.program) && is_register(b.program)) {
    return store::compare_registers(a.records, b.records) != store::OneRegister::no;
  }
  return a.program == b.program && a.records == b.records;
}

std::string name_of_network(const std::vector<NodeNetwork>& there, const std::string& recorded,
                            const std::string& main) {
  if (!recorded.empty()) return recorded;
  for (const NodeNetwork& one : there) {
    if (one.giver.program == "croft-ipam" && !one.name.empty()) return one.name;
  }
  for (const NodeNetwork& one : there) {
    if (brings_network(main) && one.main == main && !one.name.empty()) return one.name;
  }
  return main == "flannel" ? "cbr0" : "k8s-pod-network";
}

Result<NetworkVerdict> judge_networks(const std::vector<NodeNetwork>& there, const WantedNetwork& own) {
  const auto is_written = [&](const NodeNetwork& one) { return own.written.contains(one.file); };
  const bool is_again = std::ranges::any_of(
      there, [&](const NodeNetwork& one) { return is_written(one) && is_same_giver(one.giver, own.giver); });
  NetworkVerdict verdict;
  bool is_replaced = false;
  const auto replace = [&](const NodeNetwork& one) {
    is_replaced = true;
    return give_up(one, own, verdict);
  };
  for (const NodeNetwork& one : there) {
    const bool gives = !one.giver.program.empty();
    const bool is_same = is_same_giver(one.giver, own.giver);
    if (is_written(one) || one.file == own.file) {
      if (gives && !is_same) TRY_VOID(replace(one));
    } else if (is_multus_of_ours(one, own)) {
      TRY_VOID(judge_multus(one, own, verdict));
    } else if (one.file < own.file) {
      TRY_VOID(replace(one));
    } else if (is_again) {
      const bool is_known = is_same || is_example(one.file) || (!gives && one.trouble.empty());
      if (!is_known) {
        verdict.told.push_back(fmt::format("this node has {} too; the runtime goes by {}", text_of(one), own.file));
      }
    } else if ((gives && !is_same && !is_example(one.file)) || !one.trouble.empty()) {
      TRY_VOID(replace(one));
    }
  }
  if (!own.replaced.empty() && !is_replaced) {
    verdict.told.push_back(
        fmt::format("--replace {}: no network of that name is in the way, so none was set aside", echo(own.replaced)));
  }
  return verdict;
}

Result<void> judge_uninstall(const std::vector<std::string>& names, const std::set<std::string>& written,
                             const std::string& main) {
  for (const std::string& name : names) {
    if (!name.ends_with(kBeforeCroft)) continue;
    const std::string file = name.substr(0, name.size() - kBeforeCroft.size());
    if (std::ranges::find(names, file) == names.end() || written.contains(file)) continue;
    return fail(ErrorCode::refused_for_safety,
                "{0} may call croft-ipam, which would go, as {1}{2} lies beside it. `mv {1}{2} {1}` where it does, `rm "
                "{1}{2}` where it does not; --force takes the plugin away all the same",
                echo(file), in_shell_quotes_if_needed(file), kBeforeCroft);
  }
  for (const std::string& name : names) {
    const bool is_mains = brings_network(main) && stem_of(name) == main;
    const bool is_left_alone = written.empty() || written.contains(name) || is_example(name) || is_mains;
    if (is_left_alone || !is_network_file(name)) continue;
    return fail(ErrorCode::refused_for_safety,
                "with Croft's network taken back the runtime goes by {}, which does not know the addresses that pods "
                "of this node keep. Drain the node, then remove that file or give --force",
                echo(name));
  }
  return {};
}

}  // namespace croft::core
