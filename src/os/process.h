#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/printable.h"
#include "base/result.h"
#include "os/file_descriptor.h"

namespace croft::os {

/// The first act of every program: it opens those of the descriptors 0 to 2 that it was not given. So no file of its
/// own gets such a number and is written over by words for a person. Such an input is empty; output there fails, and
/// words for such an error stream are lost.
void fill_standard_streams();

/// The first act of a plugin: fill_standard_streams(), inherited descriptors from 3 on are closed, a write to a closed
/// pipe is an error instead of a signal.
void prepare_plugin_process();

/// A file that grows beyond the limit of this process (setrlimit) is an error of the write, not the end of the process.
/// prepare_plugin_process() does so too.
void survive_file_size_limit();

/// Files this process makes are private from now on (umask 077).
void make_files_private();

/// Keeps up to so many freed bytes in the process for the next call. A daemon that gives them back after each one asks
/// the kernel for them again each time.
void keep_freed_memory(std::size_t bytes);

/// A variable of the environment; empty where it is not set.
[[nodiscard]] inline std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

/// This machine's host name, lower case.
[[nodiscard]] Result<std::string> host_name();

/// This process's number.
[[nodiscard]] std::uint32_t own_process();

/// All of standard input, but no more than `bytes_max` bytes: the rest is not read.
[[nodiscard]] Result<std::string> read_standard_input(std::size_t bytes_max);

/// A person's answer on a terminal; nothing where standard input or the error stream is none. The question goes to the
/// error stream.
[[nodiscard]] std::optional<std::string> ask_on_terminal(std::string_view question);

/// Ends the process at once: no destructors of static objects, no exit handlers. Everything must be written.
[[noreturn]] void end_process(int exit_code);

/// Writes the whole text, printable (base/printable.h); false when it could not be written. Nothing else prints.
[[nodiscard]] bool write_standard_output(std::string_view text, Printed how = Printed::text);
/// The same for JSON.
[[nodiscard]] bool write_json_to_standard_output(std::string_view json);
[[nodiscard]] bool write_standard_error(std::string_view text);

/// Both without allocating anything and as they are, as far as possible: for who has no memory left.
void write_last_words_to_standard_output(std::string_view text);
void write_last_words_to_standard_error(std::string_view text);

/// True when the stream is a terminal.
[[nodiscard]] bool standard_output_is_terminal();
/// How many characters a line of that terminal has; 0: it is none, or doesn't say.
[[nodiscard]] std::size_t standard_output_width();

enum class SameNamespace { no, yes, cannot_open, own_cannot_open };
/// Whether a path names the network namespace of this process. The path is opened only to compare (O_PATH: a FIFO or
/// device is not waited for).
[[nodiscard]] SameNamespace is_own_network_namespace(const std::string& path);
/// The inode of the network namespace of this process, by which two on one machine tell whether they are in the same;
/// 0: it can't be told.
[[nodiscard]] std::uint64_t own_network_namespace();

/// Tells systemd how this process is, as sd_notify(3) does: "READY=1", "WATCHDOG=1", "STOPPING=1". Nothing where no
/// NOTIFY_SOCKET is set; never waits, and what can't be sent is lost.
void tell_service_manager(std::string_view state);

/// The beginning of the sibling's process.
struct SiblingCall {
  std::string file;        ///< in the directory of this program's own file
  std::string called_as;   ///< its argv[0]
  std::string_view input;  ///< its standard input, from the beginning
  std::string variable;    ///< in its environment besides this process's own; replaces one of that name
  std::string said;        ///< for handed_over() there
};

/// Becomes it: execve() of that file, no search, no shell; standard output and error stay. Comes back only where that
/// fails. Errors: not_found where the file is not there; already_exists where this process became that file before: it
/// is the same program under another name; permission_denied; the system's.
[[nodiscard]] Error become_sibling(const SiblingCall& call);

/// In the sibling: `said` of the call by which this process became it. Nothing where it began with this file, whatever
/// the environment has under that name: the value says which process it is for.
[[nodiscard]] std::optional<std::string> handed_over(const std::string& variable);

/// How long a daemon has to end by itself after it was told to; then it is ended.
inline constexpr std::chrono::milliseconds kStopPatience{4500};

/// Tells this process to end, as SIGTERM does: for what a service manager has to start it anew.
void ask_to_end();

/// Turns SIGTERM and SIGINT into a question that a daemon asks between two pieces of work, and ends the process itself
/// when that takes too long. Made once, by main(), before any thread: the signals are blocked from then on in all of
/// them, so that no work is cut in the middle without need. SIGHUP does nothing from then on: there is nothing that is
/// read again.
class StopSignal {
 public:
  explicit StopSignal(std::chrono::milliseconds patience = kStopPatience);
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// Waits; true as soon as the process is told to end, also when that was before the call. Once true, always true.
  [[nodiscard]] bool wait_for(std::chrono::nanoseconds span);

  /// The thing that a forced end cuts off: work, as by a crash, which is code 1; or reading that nobody waits for,
  /// which is an orderly end.
  enum class CutsOff { work, reading };
  /// The last act, in a thread of ours, when the process did not end within the patience. It must wait for nothing that
  /// work may hold. Replaces what was given before.
  void before_forced_end(std::function<void()> last_act, CutsOff what = CutsOff::work);

 private:
  void run();

  const std::chrono::milliseconds patience_;
  FileDescriptor signals_;
  FileDescriptor ended_;  ///< readable when this object goes
  std::mutex mutex_;      ///< guards the three below
  bool stopped_ = false;
  std::function<void()> last_act_;
  CutsOff cuts_off_ = CutsOff::work;
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace croft::os
