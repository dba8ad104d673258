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
    manners.read = {500us, 2ms};
    manners.write = {1ms, 8ms};
    manners.work = {work(750), work(0), work(350), work(2000), work(4000), work(5)};
  } else if (datastore == "etcd") {
    manners.read = {100us, 500us};
    manners.write = {200us, 1ms};
    manners.service = work(300);
    manners.work = {work(380), work(40), work(5), work(100), work(210), work(3)};
  } else {
    manners.read = {10us, 50us};
    manners.write = {50us, 200us};
    manners.service = work(950);
    manners.work = {work(50), work(5), work(1), work(10), work(120), work(0)};
  }
  return manners;
}

}  // namespace croft::sim
