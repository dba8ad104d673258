#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cni/format/network_list.h"
#include "install/door/takeover.h"
#include "install/format/record.h"
#include "os/files.h"

// Croft's files on a node. A runtime calls a node ready as soon as it finds a network configuration, and runs what that
// names; so the programs come first, each by a rename, which a busy file is no obstacle to and an older running one is
// not cut by, and the configuration comes last. A record beside it says what was written. An installation that fails
// leaves the node as it was.
namespace croft::edge {

/// A plugin or a network configuration that was there before and is another's is kept under its name with this behind
/// it; where that name is taken by something else, which is never overwritten, with `-1` to `-9` behind that. The last
/// of them is what comes back.
inline constexpr std::string_view kBeforeCroft = ".before-croft";
/// Of one program.
inline constexpr std::size_t kProgramBytesMax = std::size_t{256} << 20;

/// Where a runtime looks, as this process sees it: in a container under the mount of the host's directory.
struct InstallPlace {
  std::string programs;               ///< /opt/cni/bin
  std::string configurations;         ///< /etc/cni/net.d
  std::string programs_on_host = {};  ///< as the node sees that directory; empty: the same
  /// Where Debian's containernetworking-plugins are, and its containerd looks.
  std::string distributions_programs = "/usr/lib/cni";
};

struct InstallProgram {
  std::string name;          ///< a single part of a path
  std::string_view content;  ///< of an ELF file; outlives the plan
};

struct InstallPlan {
  std::vector<InstallProgram> programs;
  std::vector<std::string> others;  ///< plugins of others that the configuration calls: they must be there
  std::string kubeconfig_name;      ///< empty: none is written
  std::string network_name;         ///< of the configuration's file; empty: none is written
  NextGiver giver = {};             ///< of that network's addresses
};

/// A network configuration that is there.
struct NodeNetwork {
  std::string file;  ///< its name
  wire::cni::NetworkCalls calls;
  bool is_ours = false;  ///< by the record, as it was written here
  std::string text;
  bool has_our_name = false;  ///< a file of this name was written here, whatever it has now
  std::string trouble = {};   ///< why it can't be read; empty: it can
  bool is_behind = false;     ///< a runtime takes one before it, as far as can be seen
};

/// What the record has of a network.
struct RecordedNetwork {
  std::string name;            ///< empty: not known
  std::string addresses_from;  ///< the IPAM plugin that it called; empty: not known
  bool is_inferred = false;    ///< that is by the programs that were written; where both were, it names both
  std::string store = {};      ///< of the register that it named; empty: none, or not known
};

struct InstallTexts {
  std::string_view kubeconfig;  ///< a secret: its user alone may read the file
  std::string_view network;
};

/// Whether the plugin can work with the kubeconfig at a path.
using InstallProbe = std::function<Result<void>(const std::string& kubeconfig)>;
/// Whether the network may still take its place.
using InstallLastLook = std::function<Result<void>()>;

/// One node's. Not safe to use by two processes at once: the later one's files count.
class Installation {
 public:
  /// `tell` gets a line for each thing that was done, or that somebody should know.
  Installation(InstallPlace place, std::function<void(const std::string& line)> tell)
      : place_(std::move(place)), tell_(std::move(tell)) {}

  /// By what pods of this node may have their addresses, by name: all networks that are there. Which of them a runtime
  /// goes by nobody can tell: of what can't be read here, or is no network, some read it, some stop there and some pass
  /// over it, as over one whose plugins are not there or do not know its version; and pods may be of one that was the
  /// first before. Errors: of the directory; of the record.
  [[nodiscard]] Result<std::vector<NodeNetwork>> networks_in_use() const;
  /// The same, but for what lies behind a file that is as it was written here, or has this text, that a runtime takes,
  /// and by which `next` gave already (is_same): that was asked of it when it was written.
  [[nodiscard]] Result<std::vector<NodeNetwork>> networks_to_replace(const NextGiver& next,
                                                                     std::string_view text) const;
  /// The network that was written last. Errors: of the record.
  [[nodiscard]] Result<RecordedNetwork> recorded_network() const;
  /// By what pods may get their addresses once Croft's own are taken back, by name: other networks that come to the
  /// front, or back, and those behind them, as above. None where that changes nothing. Errors: as of networks_in_use().
  [[nodiscard]] Result<std::vector<NodeNetwork>> networks_to_come() const;
  /// All that can be read, by name. Errors: the same.
  [[nodiscard]] Result<std::vector<NodeNetwork>> networks() const;

  /// All that can stand in the way, before anything is written. Errors: invalid_argument, of a name that is not plain
  /// (wire::is_install_name); refused_for_safety, when a configuration of
  /// somebody else would win over ours by its name, and does not call ours (calls_only): with both names;
  /// refused_by_configuration, when a plugin of others that ours needs is not there, or no program: is it the runtime's
  /// directory?;
  /// not_found, of a directory; read_only, permission_denied, storage_full, of either; those of the record.
  [[nodiscard]] Result<void> check(const InstallPlan& plan) const;

  /// All of it, or nothing. First everything is made under names that no runtime looks at, and `probe` is called with
  /// the path of the new kubeconfig there (not where the plan has none). Then it is renamed into place: programs, the
  /// kubeconfig, and the network last. Where something fails, what was renamed is put back, the record too, so that a
  /// node that worked goes on working. `last_look` is asked right before the network is renamed: others than Croft take
  /// no turns. Only then, and before the rename, the record says who gives that network's addresses: an installation
  /// that is killed sooner gave none. What installations that were killed have left goes. What is there already is
  /// left as it is. Errors: of the files, of `probe` and `last_look`; one that names what could not be put back either.
  [[nodiscard]] Result<void> write(
      const InstallPlan& plan, const InstallTexts& texts, const InstallProbe& probe,
      const InstallLastLook& last_look = [] { return Result<void>(); });

  /// Where write() has a kubeconfig with its token meanwhile: what is to go where the process is ended in the middle.
  [[nodiscard]] std::string draft_of_kubeconfig(const InstallPlan& plan) const;

  /// Takes back what the record names: the configuration first, so that the runtime calls nothing that is going. What
  /// somebody has replaced since, by its digest, is left and told; what was there before comes back, but for a
  /// configuration that calls Croft's plugin. What is not there is told. Nothing was installed: a success, which is
  /// told, with what of Croft lies here nevertheless. With `dry_run` only tells. What can't be taken back, or lies in
  /// another directory of programs where the record has it, stops nothing else, but for a configuration, with which all
  /// else is left; the error comes last and names each, and the record is kept of these, so that it can be tried again.
  /// Error also: refused_for_safety, before anything is changed, when a configuration that stays, or comes back, calls
  /// a program that goes: no pod of it would start, nor be taken down. Not with `Stays::broken`.
  /// With `Giver::kept` the record stays without a file, and says who gave the addresses that living pods have; without
  /// it such a record goes.
  enum class Stays : std::uint8_t { whole, broken };
  enum class Giver : std::uint8_t { dropped, kept };
  [[nodiscard]] Result<void> take_back(bool dry_run, Stays stays = Stays::whole, Giver giver = Giver::dropped);

 private:
  [[nodiscard]] Result<wire::InstallRecord> record() const;
  /// By name; nothing of a directory that is not there.
  [[nodiscard]] Result<std::vector<std::string>> network_files() const;
  [[nodiscard]] NodeNetwork network(const wire::InstallRecord& ours, const std::string& file) const;
  /// With what `path` has in place of the file of that name.
  void read_network(NodeNetwork& network, const std::string& path) const;
  /// Whether a runtime goes by it, where it is the first, as far as can be seen.
  [[nodiscard]] bool is_surely_taken(const NodeNetwork& network) const;
  class Change;
  /// The files that are to come, before the first of them is there.
  [[nodiscard]] Result<void> add_to_record(const InstallPlan& plan, std::string_view network) const;
  /// Of a long record the oldest networks go of which nothing lies here, but `to_come`: else it could not be read some
  /// day.
  [[nodiscard]] Result<void> forget_networks_that_are_gone(wire::InstallRecord& record,
                                                           const std::string& to_come) const;
  /// Who gives the addresses of this network.
  [[nodiscard]] Result<void> note_giver(std::string_view network) const;
  /// All under draft names, then the probe, then the renames.
  [[nodiscard]] Result<void> apply(const InstallPlan& plan, const InstallTexts& texts, const InstallProbe& probe,
                                   const InstallLastLook& last_look, const wire::InstallRecord& before, Change& change);
  /// What processes that were killed have left: programs of ten megabytes, tokens. One that an agent is writing just
  /// now it writes again.
  [[nodiscard]] Result<void> remove_drafts(const wire::InstallRecord& record) const;
  /// What is not ours at `path` gets a second name, before something of ours takes the first.
  [[nodiscard]] static Result<void> keep_anothers(const std::string& path, std::string_view content, Change& change,
                                                  std::string_view what = "was another's");
  [[nodiscard]] Result<void> draft_program(const InstallProgram& program, const wire::InstallRecord& ours,
                                           Change& change) const;
  /// False when nothing had the name.
  [[nodiscard]] Result<bool> take_back_program(const wire::InstallRecord& record, const std::string& name,
                                               bool dry_run) const;
  /// Error: refused_for_safety.
  [[nodiscard]] Result<void> check_nothing_calls_what_goes(const wire::InstallRecord& record) const;
  /// What is at `path` was never replaced, as by an installation that was killed: its second name goes.
  [[nodiscard]] Result<void> drop_kept(const std::string& path, const std::string& kept, bool dry_run) const;
  /// Programs that other directories of the record have, or may have. Error: refused_by_configuration, where one is
  /// there for sure; with its path.
  [[nodiscard]] Result<std::set<std::string>> left_elsewhere(const wire::InstallRecord& record,
                                                             const std::set<std::string>& missing) const;
  void tell_of_no_record() const;
  [[nodiscard]] std::string programs_on_host() const;
  /// What to do where a plugin of others is not there.
  [[nodiscard]] std::string remedy_of_missing(const std::string& plugin) const;
  [[nodiscard]] Result<void> take_back_network(const wire::InstallRecord& record, const std::string& name,
                                               bool dry_run) const;
  [[nodiscard]] Result<void> take_back_kubeconfig(const std::string& name, bool dry_run) const;
  /// The last of those kept that does not call Croft's plugin; empty: there is none. Others are told to `tell`.
  [[nodiscard]] Result<std::string> network_to_come_back(
      const std::string& path, const std::function<void(const std::string& line)>& tell) const;
  void tell_of_further_kept(const std::string& path, const std::string& last) const;
  [[nodiscard]] std::string record_path() const;

  InstallPlace place_;
  std::function<void(const std::string& line)> tell_;
};

}  // namespace croft::edge
