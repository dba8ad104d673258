#include "cli/croft_ipam/living_probe.h"

#include <chrono>

#include "os/host_route.h"
#include "vpc/door/ip_bytes.h"

namespace croft::app {
namespace {

/// The kernel answers in microseconds, or while somebody else changes its tables a little later.
constexpr std::chrono::seconds kKernelTime{1};

}  // namespace

edge::LivingProbe living_probe(const Clock& clock) {
  return {[&clock](const net::Address& address) {
    return os::device_of_living(edge::to_bytes(address), clock, Deadline::after(clock.now(), kKernelTime));
  }};
}

}  // namespace croft::app
