#include "os/host_addresses.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/printable.h"
#include "os/file_descriptor.h"
#include "os/files.h"
#include "os/interfaces.h"
#include "os/network_namespaces.h"
#include "os/system_error.h"

namespace croft::os {
namespace {

constexpr std::size_t kNamespacesMax = 65'536;
/// A namespace's maker makes the file before the mount, and removes it the other way round.
constexpr int kLooksAtUnmounted = 10;
constexpr std::chrono::milliseconds kBetweenLooks{20};

Error of_namespace(const std::string& path, int error_number) {
  Error error = system_error("enter network namespace", printable(path, Printed::line), error_number);
  if (error.code != ErrorCode::permission_denied) error.code = ErrorCode::unavailable;
  return error;
}

class HostSurvey {
 public:
  HostSurvey(const Clock& clock, Deadline deadline) : clock_(clock), deadline_(deadline) {}

  [[nodiscard]] Result<void> read_addresses() { return read_addresses_into(own_); }

  [[nodiscard]] Result<void> read_routes() {
    TRY(const auto found, list_host_routes(clock_, deadline_));
    own_.insert(found.begin(), found.end());
    return check_room(own_);
  }

  /// The calling thread ends up in one of the namespaces.
  [[nodiscard]] Result<void> read_namespaces(const std::string& directory) {
    TRY(const auto names, names_in(directory));
    for (const std::string& name : names) {
      if (deadline_.passed(clock_.now())) {
        return fail(ErrorCode::deadline_exceeded,
                    fmt::format("the network namespaces in {} took longer than there was time", directory));
      }
      TRY_VOID(read_namespace(directory + "/" + name));
    }
    return {};
  }

  [[nodiscard]] HostUse take() { return {{own_.begin(), own_.end()}, std::move(namespaces_)}; }

 private:
  [[nodiscard]] Result<void> read_addresses_into(std::set<IpBytes>& set) const {
    TRY(const auto found, list_addresses(clock_, deadline_));
    for (const auto& one : found) set.insert(one.address);
    return check_room(set);
  }

  [[nodiscard]] Result<void> check_room(const std::set<IpBytes>& set) const {
    if (of_others_ + set.size() <= kHostAddressesMax) return {};
    return fail(ErrorCode::unavailable, fmt::format("this host has more than {} addresses", kHostAddressesMax));
  }

  [[nodiscard]] static Result<std::vector<std::string>> names_in(const std::string& directory) {
    auto names = list_directory(directory, kNamespacesMax);
    if (names) return names;
    if (names.error().code == ErrorCode::not_found) return std::vector<std::string>();
    if (names.error().code != ErrorCode::permission_denied) names.error().code = ErrorCode::unavailable;
    return names;
  }

  [[nodiscard]] Result<void> read_namespace(const std::string& path) {
    NamespacePath what = look_at_namespace_path(path);
    for (int looks = 1; what == NamespacePath::unmounted && looks < kLooksAtUnmounted; ++looks) {
      std::this_thread::sleep_for(kBetweenLooks);
      what = look_at_namespace_path(path);
    }
    const std::string shown = printable(path, Printed::line);
    if (what == NamespacePath::gone) return {};
    if (what == NamespacePath::unmounted) {
      return fail(ErrorCode::unavailable,
                  fmt::format("{} is a file without a network namespace, as this process sees it: mount its directory "
                              "into the container with mountPropagation HostToContainer, or remove what is left over",
                              shown));
    }
    if (what == NamespacePath::unclear || what == NamespacePath::unseen) {
      return fail(ErrorCode::unavailable, fmt::format("{} is no network namespace that can be entered", shown));
    }
    const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.is_open()) {
      if (errno == ENOENT) return {};
      return fail(of_namespace(path, errno));
    }
    struct stat status {};
    if (::fstat(file.get(), &status) != 0) return fail(of_namespace(path, errno));
    if (!seen_.insert({status.st_dev, status.st_ino}).second) return {};
    if (::setns(file.get(), CLONE_NEWNET) != 0) {
      const int why = errno;
      // A file that was unmounted between the look and now is nobody's namespace any more.
      if (why == EINVAL && look_at_namespace_path(path) == NamespacePath::gone) return {};
      return fail(of_namespace(path, why));
    }
    std::set<IpBytes> set;
    const auto read = read_addresses_into(set);
    if (!read) return fail(Error(read.error()).in(shown));
    of_others_ += set.size();
    namespaces_.emplace_back(set.begin(), set.end());
    return {};
  }

  const Clock& clock_;
  const Deadline deadline_;
  std::set<IpBytes> own_;
  std::vector<std::vector<IpBytes>> namespaces_;
  std::size_t of_others_ = 0;
  std::set<std::pair<dev_t, ino_t>> seen_;
};

}  // namespace

Result<HostUse> host_use(const std::string& namespaces_directory, const Clock& clock, Deadline deadline) {
  HostSurvey survey(clock, deadline);
  TRY_VOID(survey.read_addresses());
  TRY_VOID(survey.read_routes());
  Result<void> read;
  try {
    std::thread([&] { read = survey.read_namespaces(namespaces_directory); }).join();
  } catch (const std::system_error& error) {
    return fail(ErrorCode::unavailable, fmt::format("no thread to enter network namespaces in: {}", error.what()));
  }
  TRY_VOID(std::move(read));
  return survey.take();
}

}  // namespace croft::os
