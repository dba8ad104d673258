#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cni/format/environment.h"
#include "cni/format/network.h"
#include "cni/format/result.h"
#include "os/process.h"

// The dispatcher of a CNI plugin: from environment and standard input to one call of a handler and one JSON document.
// It follows the reference's order of checks (docs/notes/cni.md#error-order), because the order decides which error
// is seen. All I/O is injected; nothing here knows a store.

namespace croft::edge {

/// A checked request, as a handler gets it.
struct CniRequest {
  wire::cni::Command command = wire::cni::Command::add;
  /// Members that the command does not require are as they came for ADD, DEL and CHECK. For GC and STATUS container ID
  /// and interface name were not checked and are empty here.
  wire::cni::Environment environment;
  wire::cni::Network network;  ///< standard input, of one of the plugin's versions
};

/// The plugin's work. A command without handler succeeds silently, ADD included, as in the reference. Handlers must not
/// print: what they return is the one document of standard output.
struct CniHandlers {
  std::function<wire::cni::Checked<wire::cni::AddResult>(const CniRequest&)> add;
  std::function<std::optional<wire::cni::Error>(const CniRequest&)> del, check, gc;
  /// Any error becomes code 50, unless it is 51 already.
  std::function<std::optional<wire::cni::Error>(const CniRequest&)> status;
};

/// One personality.
struct CniPlugin {
  /// First line of what an empty CNI_COMMAND prints on standard error ("CNI croft-ipam plugin 0.1.0"); empty: an empty
  /// CNI_COMMAND is an error like any other.
  std::string about;
  std::vector<std::string_view> supported_versions{wire::cni::kSupportedVersions.begin(),
                                                   wire::cni::kSupportedVersions.end()};
  CniHandlers handlers;
  /// False: any length is passed on, as the reference does. True: ADD, CHECK and STATUS refuse an owner that does not
  /// fit; DEL and GC of one succeed without a call, because nobody like that can hold anything.
  bool limits_owner = false;
};

/// The world around one call.
struct CniHost {
  wire::cni::Environment environment;
  /// Reads standard input to its end, but no more than kStdinBytesMax + 1 bytes. Called at most once, never for
  /// VERSION.
  std::function<Result<std::string>()> read_stdin;
  /// Whether CNI_NETNS is the network namespace the plugin itself runs in. A path that does not open is no error: DEL
  /// comes after the namespace is gone.
  std::function<os::SameNamespace(const std::string& path)> compare_netns;
};

/// The output of the process before it ends.
struct CniAnswer {
  int exit_code = 0;
  std::string out;  ///< standard output: empty or one JSON document
  std::string err;  ///< standard error
  friend bool operator==(const CniAnswer&, const CniAnswer&) = default;
};

/// Runs one CNI call. The exit code is 0, or 1 with an error object in `out`.
///
/// Where it leaves the reference: CNI_NETNS is compared with the plugin's own namespace *before* ADD runs, not after
/// (docs/notes/host-local.md#h14). So standard output never carries two documents, and a refused ADD leaves nothing
/// behind. For DEL it is after, as in the reference: what can be given back is, and only then comes the complaint.
[[nodiscard]] CniAnswer run_cni(const CniPlugin& plugin, const CniHost& host);

/// The same, and writes the answer. The sinks say whether all bytes were written. An answer that cannot be written is a
/// failure of the call: exit code 1, and a word about it on standard error.
[[nodiscard]] int serve_cni(const CniPlugin& plugin, const CniHost& host,
                            const std::function<bool(std::string_view)>& write_out,
                            const std::function<bool(std::string_view)>& write_err);

}  // namespace croft::edge
