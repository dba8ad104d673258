#include "os/sibling.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <vector>

#include <fmt/format.h>

#include "base/result.h"
#include "os/file_descriptor.h"
#include "os/files.h"
#include "os/system_error.h"

namespace croft::os {
namespace {

/// Standard input from now on: a file in memory, so that no pipe has to be held open.
[[nodiscard]] int replace_standard_input(std::string_view input) {
  constexpr unsigned kNotToBeRun = 8;  // MFD_NOEXEC_SEAL, which some nodes insist on and kernels before 6.3 do not know
  FileDescriptor memory(::memfd_create("configuration", MFD_CLOEXEC | kNotToBeRun));
  if (!memory.is_open() && errno == EINVAL) memory = FileDescriptor(::memfd_create("configuration", MFD_CLOEXEC));
  if (!memory.is_open()) return errno;
  if (const int trouble = write_all(memory.get(), input); trouble != 0) return trouble;
  if (::lseek(memory.get(), 0, SEEK_SET) != 0) return errno;
  return ::dup2(memory.get(), STDIN_FILENO) == STDIN_FILENO ? 0 : errno;
}

/// The directory of this program's file, also where it was replaced meanwhile: the link then has " (deleted)" behind
/// its name.
[[nodiscard]] Result<std::string> own_directory() {
  std::string own(PATH_MAX, '\0');
  const ssize_t length = ::readlink("/proc/self/exe", own.data(), own.size());
  if (length <= 0) return fail(system_error("read", "/proc/self/exe", errno));
  own.resize(static_cast<std::size_t>(length));
  return directory_of(own);
}

/// In front of what is said to this process, which execve() leaves its number.
[[nodiscard]] std::string sign() { return fmt::format("{} ", ::getpid()); }

}  // namespace

std::optional<std::string> handed_over(const std::string& variable) {
  const char* value = std::getenv(variable.c_str());
  if (value == nullptr) return std::nullopt;
  const std::string own = sign();
  if (!std::string_view(value).starts_with(own)) return std::nullopt;
  return value + own.size();
}

Error become_sibling(const SiblingCall& call) {
  const auto directory = own_directory();
  if (!directory) return directory.error();
  const std::string path = fmt::format("{}/{}", *directory, call.file);
  if (handed_over(call.variable)) {
    return {ErrorCode::already_exists, fmt::format("{} is {} once more, not {}", path, call.called_as, call.file), {}};
  }
  if (const int trouble = replace_standard_input(call.input); trouble != 0) {
    return system_error("hand the configuration to", path, trouble);
  }
  const std::string name = call.variable + '=';
  std::vector<std::string> kept;
  for (char** one = environ; *one != nullptr; ++one) {
    if (!std::string_view(*one).starts_with(name)) kept.emplace_back(*one);
  }
  kept.push_back(name + sign() + call.said);
  std::vector<char*> environment;
  for (std::string& one : kept) environment.push_back(one.data());
  environment.push_back(nullptr);
  std::string called_as = call.called_as;
  char* arguments[] = {called_as.data(), nullptr};  // NOLINT(*-avoid-c-arrays): as execve() takes them
  ::execve(path.c_str(), arguments, environment.data());
  return system_error("start", path, errno);
}

}  // namespace croft::os
