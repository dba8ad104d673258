#include "collector/daemon/sweep_output.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/time_text.h"

namespace croft::app {
namespace {

using Json = nlohmann::ordered_json;
using core::collect::Evidence;

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json json_of(const Evidence& evidence) {
  return {{"what", name_of(evidence.what)},
          {"subject", evidence.subject},
          {"reason", evidence.reason},
          {"handle", text_or_null(evidence.handle)},
          {"sequenceNumber", evidence.sequence.value == 0 ? Json() : Json(std::to_string(evidence.sequence.value))},
          {"node", text_or_null(evidence.node)},
          {"namespace", text_or_null(evidence.namespace_name)},
          {"pod", text_or_null(evidence.pod)},
          {"podUID", text_or_null(evidence.uid)},
          {"firstLook", rfc3339_rounded_up(evidence.first_look.wall)},
          {"lastLook", rfc3339_rounded_up(evidence.last_look.wall)},
          {"facts", evidence.facts}};
}

std::ptrdiff_t count_of(const engine::SweepReport& report, Evidence::What what) {
  return std::ranges::count(report.released, what, &Evidence::what);
}

}  // namespace

std::string summary_of(const engine::SweepReport& report) {
  using What = Evidence::What;
  std::string text = fmt::format("{} addresses in {} blocks, {} nodes, ", report.held, report.blocks, report.nodes);
  text += report.pods_known ? fmt::format("{} pods", report.pods) : "pods not known";
  text += fmt::format(": {} candidates, {} addresses, {} blocks, {} claims, {} handles {}", report.candidates,
                      count_of(report, What::address), count_of(report, What::block), count_of(report, What::affinity),
                      count_of(report, What::handle), report.dry_run ? "would be released" : "released");
  if (report.kept_by_brake > 0) text += fmt::format(", {} kept by the brake", report.kept_by_brake);
  if (report.failure) text += "; not finished: " + report.failure->message;
  return text;
}

std::string json_of(const engine::SweepReport& report) {
  std::vector<Json> released, alarms;
  for (const Evidence& evidence : report.released) released.push_back(json_of(evidence));
  for (const auto& alarm : report.alarms) alarms.push_back({{"alarm", name_of(alarm.kind)}, {"text", alarm.text}});
  const Json json{{"dryRun", report.dry_run},
                  {"began", rfc3339_rounded_up(report.began.wall)},
                  {"seconds", std::chrono::duration<double>(report.ended.since_boot - report.began.since_boot).count()},
                  {"held", report.held},
                  {"blocks", report.blocks},
                  {"nodes", report.nodes},
                  {"pods", report.pods_known ? Json(report.pods) : Json()},
                  {"candidates", report.candidates},
                  {"confirmed", report.confirmed},
                  {"waitingForHandle", report.waiting_for_handle},
                  {"keptByBrake", report.kept_by_brake},
                  {"changedMeanwhile", report.changed_meanwhile},
                  {"cooledBlocks", report.cooled_blocks},
                  {"released", released},
                  {"alarms", alarms},
                  {"failure", report.failure ? Json(report.failure->message) : Json()}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace croft::app
