#include "sim/measured_manners.h"

#include <cstdint>

namespace croft::sim {
namespace {

using namespace std::chrono_literals;

constexpr double kMeasuredCores = 2;

}  // namespace

Manners measured_manners(const std::string& datastore, double cores) {
  Manners manners = *manners_of(datastore);
  const double faster = kMeasuredCores / cores;
  const auto work = [&](double microseconds) { return Span(static_cast<std::int64_t>(microseconds * 1000 * faster)); };
  manners.service = {};
  if (datastore == "kubernetes") {
    // Long ones are those that waited for a core.
    manners.read = {300us, work(26000)};
    manners.write = {100us, work(126000)};
    manners.work = {work(10), work(0), work(20), work(140), work(730), work(3600), work(5)};
  } else if (datastore == "etcd") {
    manners.read = {200us, 1300us};
    manners.write = {200us, 1ms};
    manners.service = work(230);
    manners.work = {work(380), work(20), work(0), work(7), work(140), work(210), work(3)};
  } else {
    manners.read = {10us, 50us};
    manners.write = {50us, 200us};
    manners.service = work(950);
    manners.work = {work(50), work(5), work(0), work(1), work(10), work(120), work(0)};
  }
  return manners;
}

}  // namespace croft::sim
