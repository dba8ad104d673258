#include "os/look_up.h"

#include <netdb.h>
#include <nss.h>
#include <sys/auxv.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>

#include "os/clock.h"

namespace croft::os {

Result<std::vector<std::string>> look_up_host(const std::string& name, Deadline deadline) {
  constexpr std::size_t kAddressesMax = 16;
  if (deadline.passed(SystemClock().now())) {
    return fail(ErrorCode::deadline_exceeded, "no time was left to look up " + name);
  }
  // A program without a loader loads no modules of nsswitch.conf either: with a glibc that is not its own it ends.
  static const bool configured = ::getauxval(AT_BASE) != 0 || ::__nss_configure_lookup("hosts", "files dns") == 0;
  if (!configured) return fail(ErrorCode::unavailable, "looking up " + name + ": the resolver takes no configuration");
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(name.c_str(), nullptr, &hints, &found);
  if (failed != 0) return fail(ErrorCode::unavailable, "looking up " + name + ": " + ::gai_strerror(failed));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(found, &::freeaddrinfo);
  std::vector<std::string> addresses;
  for (const addrinfo* one = found; one != nullptr && addresses.size() < kAddressesMax; one = one->ai_next) {
    std::array<char, NI_MAXHOST> text{};
    const int unprintable = ::getnameinfo(one->ai_addr, one->ai_addrlen, text.data(),
                                          static_cast<socklen_t>(text.size()), nullptr, 0, NI_NUMERICHOST);
    if (unprintable == 0 && std::ranges::find(addresses, text.data()) == addresses.end()) {
      addresses.emplace_back(text.data());
    }
  }
  if (addresses.empty()) return fail(ErrorCode::unavailable, "looking up " + name + ": it has no address");
  return addresses;
}

}  // namespace croft::os
