#include "os/interfaces.h"

#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/rtnetlink.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <set>
#include <span>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/printable.h"
#include "base/texts.h"
#include "os/file_descriptor.h"
#include "os/files.h"
#include "os/host_route.h"
#include "os/network_namespaces.h"
#include "os/system_error.h"

namespace croft::os {
namespace {

using Payload = std::span<const std::uint8_t>;

constexpr std::size_t kObjectsMax = 65'536;
constexpr std::size_t kNamesShown = 8;

template <class T>
std::optional<T> read(Payload payload) {
  T value{};
  if (payload.size() < sizeof value) return std::nullopt;
  std::memcpy(&value, payload.data(), sizeof value);
  return value;
}

/// Adds what `make` makes of each object of a kind, of some nothing.
template <class T>
[[nodiscard]] Result<void> add_all(std::vector<T>& all, std::uint16_t request, std::uint8_t family,
                                   std::string_view what, const Clock& clock, Deadline deadline,
                                   std::optional<T> (*make)(Payload)) {
  const std::size_t before = all.size();
  return dump_routes(
      request, family, clock, deadline, [&] { all.resize(before); },
      [&](Payload payload) -> Result<void> {
        auto one = make(payload);
        if (one && all.size() == kObjectsMax) {
          return fail(ErrorCode::unavailable, "this network namespace has more than {} {}", kObjectsMax, what);
        }
        if (one) all.push_back(*std::move(one));
        return {};
      });
}

std::string names_of(const std::vector<NetworkInterface>& interfaces) {
  std::vector<std::string> names;
  for (const auto& one : interfaces) {
    if (names.size() == kNamesShown) {
      names.emplace_back("...");
      break;
    }
    names.push_back(printable(one.name, Printed::line));
  }
  return names.empty() ? "none" : joined(names);
}

std::optional<NetworkInterface> interface_of(Payload payload) {
  const auto header = read<ifinfomsg>(payload);
  if (!header) return std::nullopt;
  NetworkInterface found;
  found.index = header->ifi_index;
  found.is_up = (header->ifi_flags & static_cast<unsigned>(IFF_UP)) != 0;
  found.has_carrier = (header->ifi_flags & static_cast<unsigned>(IFF_LOWER_UP)) != 0;
  bool is_linked = false, is_linked_elsewhere = false, is_in_vrf = false;
  for_each_attribute(payload, sizeof(ifinfomsg), [&](std::uint16_t type, Payload value) {
    if (type == IFLA_IFNAME) {
      found.name.assign(value.begin(), std::find(value.begin(), value.end(), 0));
    } else if (type == IFLA_ADDRESS && header->ifi_type == ARPHRD_ETHER && value.size() == 6) {
      net::Mac mac;
      std::ranges::copy(value, mac.bytes.begin());
      if (mac != net::Mac()) found.mac = mac;
    } else if (type == IFLA_MASTER) {
      found.is_part = true;
    } else if (type == IFLA_LINK) {
      const auto other = read<int>(value);
      is_linked = other && *other != 0 && *other != header->ifi_index;
    } else if (type == IFLA_LINK_NETNSID) {
      is_linked_elsewhere = true;  // a veth whose other end is in another namespace
    } else if (type == IFLA_LINKINFO) {
      for_each_attribute(value, 0, [&](std::uint16_t part, Payload text) {
        const std::string kind(text.begin(), std::find(text.begin(), text.end(), 0));
        if (part == IFLA_INFO_SLAVE_KIND) is_in_vrf = kind == "vrf";
        // The ends of a veth are linked, and neither is upon the other.
        if (part == IFLA_INFO_KIND && kind == "veth") is_linked_elsewhere = true;
      });
    }
  });
  found.is_part = found.is_part && !is_in_vrf;
  found.is_upon_another = is_linked && !is_linked_elsewhere;
  return found;
}

std::optional<AddressOnInterface> address_of(Payload payload) {
  const auto header = read<ifaddrmsg>(payload);
  if (!header) return std::nullopt;
  // IFA_ADDRESS is the other side of a point-to-point link; IFA_LOCAL, where it is said, the own one.
  std::optional<net::Address> local, address;
  for_each_attribute(payload, sizeof(ifaddrmsg), [&](std::uint16_t type, Payload value) {
    if (type == IFA_LOCAL) local = ip_of(header->ifa_family, value);
    if (type == IFA_ADDRESS) address = ip_of(header->ifa_family, value);
  });
  if (!local) local = address;
  if (!local) return std::nullopt;
  return AddressOnInterface{static_cast<int>(header->ifa_index), *local, header->ifa_prefixlen};
}

std::optional<net::Address> host_route_of(Payload payload) {
  const auto header = read<rtmsg>(payload);
  const auto route = parse_route(payload);
  if (!header || !route || route->length != bit_length(route->to.family()) || route->is_of_a_path) return std::nullopt;
  const auto type = header->rtm_type;
  if (type == RTN_BROADCAST || type == RTN_MULTICAST || type == RTN_ANYCAST) return std::nullopt;
  return route->to;
}

}  // namespace

Result<std::vector<NetworkInterface>> list_interfaces(const Clock& clock, Deadline deadline) {
  std::vector<NetworkInterface> all;
  TRY_VOID(add_all(all, RTM_GETLINK, AF_UNSPEC, "interfaces", clock, deadline, interface_of));
  return all;
}

Result<NetworkInterface> find_interface(const net::Mac& mac, const Clock& clock, Deadline deadline) {
  TRY(const auto all, list_interfaces(clock, deadline));
  std::vector<NetworkInterface> same;
  std::ranges::copy_if(all, std::back_inserter(same), [&](const auto& one) { return one.mac == mac; });
  if (same.empty()) {
    return fail(ErrorCode::not_found, "no interface has the MAC {}; there are: {}", mac, names_of(all));
  }
  if (same.size() == 1) return same.front();
  std::vector<NetworkInterface> own;
  std::ranges::copy_if(same, std::back_inserter(own),
                       [](const auto& one) { return !one.is_part && !one.is_upon_another; });
  if (own.size() == 1) return own.front();
  return fail(ErrorCode::refused_by_configuration, "several interfaces have the MAC {}: {}; name the interface instead",
              mac, names_of(same));
}

Result<std::vector<AddressOnInterface>> list_addresses(const Clock& clock, Deadline deadline) {
  std::vector<AddressOnInterface> all;
  TRY_VOID(add_all(all, RTM_GETADDR, AF_UNSPEC, "addresses", clock, deadline, address_of));
  return all;
}

Result<std::vector<net::Address>> list_host_routes(const Clock& clock, Deadline deadline) {
  std::vector<net::Address> all;
  for (const std::uint8_t family : {std::uint8_t{AF_INET}, std::uint8_t{AF_INET6}}) {
    TRY_VOID(add_all(all, RTM_GETROUTE, family, "routes to single addresses", clock, deadline, host_route_of));
  }
  return all;
}

// ---------------------------------------------------------------- what the host uses

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
        return fail(ErrorCode::deadline_exceeded, "the network namespaces in {} took longer than there was time",
                    directory);
      }
      TRY_VOID(read_namespace(directory + "/" + name));
    }
    return {};
  }

  [[nodiscard]] HostUse take() { return {{own_.begin(), own_.end()}, std::move(namespaces_)}; }

 private:
  [[nodiscard]] Result<void> read_addresses_into(std::set<net::Address>& set) const {
    TRY(const auto found, list_addresses(clock_, deadline_));
    for (const auto& one : found) set.insert(one.address);
    return check_room(set);
  }

  [[nodiscard]] Result<void> check_room(const std::set<net::Address>& set) const {
    if (of_others_ + set.size() <= kHostAddressesMax) return {};
    return fail(ErrorCode::unavailable, "this host has more than {} addresses", kHostAddressesMax);
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
                  "{} is a file without a network namespace, as this process sees it: mount its directory "
                  "into the container with mountPropagation HostToContainer, or remove what is left over",
                  shown);
    }
    if (what == NamespacePath::unclear || what == NamespacePath::unseen) {
      return fail(ErrorCode::unavailable, "{} is no network namespace that can be entered", shown);
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
    std::set<net::Address> set;
    const auto read = read_addresses_into(set);
    if (!read) return fail(Error(read.error()).in(shown));
    of_others_ += set.size();
    namespaces_.emplace_back(set.begin(), set.end());
    return {};
  }

  const Clock& clock_;
  const Deadline deadline_;
  std::set<net::Address> own_;
  std::vector<std::vector<net::Address>> namespaces_;
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
    return fail(ErrorCode::unavailable, "no thread to enter network namespaces in: {}", error.what());
  }
  TRY_VOID(std::move(read));
  return survey.take();
}

}  // namespace croft::os
