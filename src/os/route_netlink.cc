#include "os/route_netlink.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "os/file_descriptor.h"
#include "os/system_error.h"

namespace croft::os {
namespace {

constexpr std::size_t kPageBytes = std::size_t{64} << 10;
constexpr int kTries = 10;
constexpr const char* kWhat = "the kernel's network tables (rtnetlink)";

enum class End : std::uint8_t { whole, torn };

Error refused(int error_number) {
  Error error = system_error("read", kWhat, error_number);
  if (error.code != ErrorCode::permission_denied) error.code = ErrorCode::unavailable;
  return error;
}

class Dump {
 public:
  Dump(const Clock& clock, Deadline deadline) : clock_(clock), deadline_(deadline), page_(kPageBytes) {}

  [[nodiscard]] Result<End> run(std::uint16_t request, std::uint16_t answer, std::uint8_t family,
                                const std::function<Result<void>(std::span<const std::uint8_t>)>& take) {
    // A socket of its own for each try: nothing of an earlier one is in it.
    socket_ = FileDescriptor(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
    if (!socket_.is_open()) return fail(refused(errno));
    struct {
      nlmsghdr header;
      // As long as the longest of the three kinds' headers: with less the kernel takes the family alone.
      ifinfomsg body;
    } ask{};
    ask.header.nlmsg_len = sizeof ask;
    ask.header.nlmsg_type = request;
    ask.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    ask.header.nlmsg_seq = 1;
    ask.body.ifi_family = family;
    if (request == RTM_GETROUTE) ask.header.nlmsg_len = NLMSG_LENGTH(sizeof(rtmsg));
    if (request == RTM_GETADDR) ask.header.nlmsg_len = NLMSG_LENGTH(sizeof(ifaddrmsg));
    while (::send(socket_.get(), &ask, ask.header.nlmsg_len, 0) < 0) {
      if (errno != EINTR) return fail(refused(errno));
    }
    bool torn = false;
    for (;;) {
      TRY(const std::size_t size, receive());
      if (size == 0) return End::torn;
      std::span<const std::uint8_t> rest(page_.data(), size);
      while (rest.size() >= sizeof(nlmsghdr)) {
        nlmsghdr header{};
        std::memcpy(&header, rest.data(), sizeof header);
        if (header.nlmsg_len < sizeof header || header.nlmsg_len > rest.size()) {
          return fail(ErrorCode::unavailable, fmt::format("{} answered with a length that does not fit", kWhat));
        }
        torn = torn || (header.nlmsg_flags & NLM_F_DUMP_INTR) != 0;
        const auto payload =
            rest.first(header.nlmsg_len).subspan(std::min<std::size_t>(NLMSG_HDRLEN, header.nlmsg_len));
        if (header.nlmsg_type == NLMSG_DONE) return torn ? End::torn : End::whole;
        if (header.nlmsg_type == NLMSG_ERROR) {
          nlmsgerr error{};
          if (payload.size() < sizeof error.error) return fail(refused(EIO));
          std::memcpy(&error.error, payload.data(), sizeof error.error);
          if (error.error == -EINTR || error.error == -EAGAIN || error.error == -EBUSY) return End::torn;
          return fail(refused(-error.error));
        }
        if (header.nlmsg_type == answer) TRY_VOID(take(payload));
        rest = rest.subspan(std::min<std::size_t>(NLMSG_ALIGN(header.nlmsg_len), rest.size()));
      }
    }
  }

 private:
  /// The bytes of the next page; 0 when the kernel lost some.
  [[nodiscard]] Result<std::size_t> receive() {
    for (;;) {
      sockaddr_nl from{};
      socklen_t from_size = sizeof from;
      const ssize_t size = ::recvfrom(socket_.get(), page_.data(), page_.size(), MSG_TRUNC,
                                      reinterpret_cast<sockaddr*>(&from), &from_size);
      if (size > 0 && from.nl_pid != 0) continue;  // not the kernel
      if (size > 0 && static_cast<std::size_t>(size) > page_.size()) return std::size_t{0};
      if (size > 0) return static_cast<std::size_t>(size);
      if (size == 0 || errno == ENOBUFS) return std::size_t{0};
      if (errno == EINTR) continue;
      if (errno != EAGAIN) return fail(refused(errno));
      const auto left = deadline_.at_since_boot - clock_.now().since_boot;
      if (left <= std::chrono::nanoseconds(0)) {
        return fail(ErrorCode::deadline_exceeded, fmt::format("{} took longer than there was time", kWhat));
      }
      pollfd wait{socket_.get(), POLLIN, 0};
      // The clock is the caller's, who may move it: look at it again soon.
      const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
      (void)::poll(&wait, 1, static_cast<int>(std::min<std::int64_t>(ms, 1000)));
    }
  }

  const Clock& clock_;
  const Deadline deadline_;
  std::vector<std::uint8_t> page_;
  FileDescriptor socket_;
};

}  // namespace

Result<void> dump_routes(std::uint16_t request, std::uint16_t answer, std::uint8_t family, const Clock& clock,
                         Deadline deadline, const std::function<void()>& begin,
                         const std::function<Result<void>(std::span<const std::uint8_t> payload)>& take) {
  Dump dump(clock, deadline);
  for (int tries = 0; tries < kTries; ++tries) {
    if (deadline.passed(clock.now())) {
      return fail(ErrorCode::deadline_exceeded, fmt::format("{} took longer than there was time", kWhat));
    }
    begin();
    TRY(const End end, dump.run(request, answer, family, take));
    if (end == End::whole) return {};
  }
  return fail(ErrorCode::unavailable, fmt::format("{} changed while they were read, {} times over", kWhat, kTries));
}

void for_each_attribute(std::span<const std::uint8_t> payload, std::size_t header_bytes,
                        const std::function<void(std::uint16_t type, std::span<const std::uint8_t> value)>& f) {
  const std::size_t begin = NLMSG_ALIGN(header_bytes);
  if (payload.size() < begin) return;
  auto rest = payload.subspan(begin);
  while (rest.size() >= sizeof(rtattr)) {
    rtattr attribute{};
    std::memcpy(&attribute, rest.data(), sizeof attribute);
    if (attribute.rta_len < sizeof attribute || attribute.rta_len > rest.size()) return;
    f(attribute.rta_type & NLA_TYPE_MASK, rest.first(attribute.rta_len).subspan(sizeof attribute));
    rest = rest.subspan(std::min<std::size_t>(RTA_ALIGN(attribute.rta_len), rest.size()));
  }
}

}  // namespace croft::os
