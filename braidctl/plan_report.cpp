// SPDX-License-Identifier: Apache-2.0
#include "braidctl/plan_report.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/amount.h"
#include "braidctl/status_view.h"
#include "braidctl/text_table.h"
#include "planner/pieces.h"

namespace braid {

RenderedPlan RenderedPlan::make(Trace trace, Plan plan, const CostModel& cost, std::string planner,
                                uint32_t streams) {
  RenderedPlan report;
  report.workload = workload_of(trace);
  report.trace = std::move(trace);
  report.plan = std::move(plan);
  SimulatorOptions options;
  options.streams = streams;
  report.timeline = simulate(report.workload, report.plan, cost, options);
  report.cost = &cost;
  report.planner = std::move(planner);
  report.streams = streams;
  return report;
}

uint64_t RenderedPlan::group_bytes(const Plan::Group& group) const {
  uint64_t bytes = 0;
  for (uint32_t i = group.begin; i < group.end; ++i) bytes += workload.tensors[i].bytes;
  return bytes;
}

uint64_t RenderedPlan::unit_bytes(const Timeline::Unit& unit) const {
  const Plan::Group& group = plan.groups[unit.group];
  return piece_bytes(group_bytes(group), group.pieces, unit.piece);
}

std::vector<uint64_t> RenderedPlan::message_bytes() const {
  std::vector<uint64_t> bytes;
  for (const Timeline::Unit& unit : timeline.units) bytes.push_back(unit_bytes(unit));
  return bytes;
}

std::string plan_table(const RenderedPlan& report) {
  const size_t count = report.plan.groups.size();
  std::vector<std::pair<double, double>> spans(count, {-1, 0});  // of a group's units
  for (const Timeline::Unit& unit : report.timeline.units) {
    auto& [start, end] = spans[unit.group];
    if (start < 0) start = unit.start_seconds;
    end = std::max(end, unit.end_seconds);
  }
  std::string out = fmt::format(
      "{}: {} tensors, {}; planner {}, streams: {}\n"
      "iteration {} = forward {} + backward {} + exposed communication {}\n\n",
      printable(report.trace.model), report.trace.tensors.size(),
      format_amount(report.workload.bytes()), report.planner, report.streams,
      format_seconds(report.timeline.iteration_seconds),
      format_seconds(report.workload.forward_seconds),
      format_seconds(report.timeline.backward_seconds),
      format_seconds(report.timeline.exposed_seconds));
  std::vector<std::vector<std::string>> rows = {
      {"GROUP", "TENSORS", "FROM", "TO", "BYTES", "PIECES", "READY", "START", "END"}};
  for (size_t i = 0; i < count; ++i) {
    const Plan::Group& group = report.plan.groups[i];
    rows.push_back({std::to_string(i + 1), std::to_string(group.end - group.begin),
                    printable(report.tensor(group.begin).name),
                    printable(report.tensor(group.end - 1).name),
                    format_amount(report.group_bytes(group)), std::to_string(group.pieces),
                    format_seconds(report.timeline.ready_seconds[group.end - 1]),
                    format_seconds(spans[i].first), format_seconds(spans[i].second)});
  }
  return out + render_table(rows);
}

nlohmann::ordered_json json_of_plan(const RenderedPlan& report) {
  nlohmann::ordered_json json;
  json["planner"] = report.planner;
  auto groups = nlohmann::ordered_json::array();
  auto pieces = nlohmann::ordered_json::array();
  auto ready = nlohmann::ordered_json::array();
  for (const Plan::Group& group : report.plan.groups) {
    auto names = nlohmann::ordered_json::array();
    for (uint32_t i = group.begin; i < group.end; ++i) names.push_back(report.tensor(i).name);
    groups.push_back(std::move(names));
    pieces.push_back(group.pieces);
    ready.push_back(report.timeline.ready_seconds[group.end - 1]);
  }
  auto units = nlohmann::ordered_json::array();
  for (const Timeline::Unit& unit : report.timeline.units) {
    const uint64_t bytes = report.unit_bytes(unit);
    units.push_back({{"group", unit.group},
                     {"piece", unit.piece},
                     {"bytes", bytes},
                     {"start_seconds", unit.start_seconds},
                     {"startup_seconds", report.cost->phases(bytes).startup_seconds},
                     {"end_seconds", unit.end_seconds}});
  }
  json["groups"] = std::move(groups);
  json["iteration_seconds"] = report.timeline.iteration_seconds;
  json["backward_seconds"] = report.timeline.backward_seconds;
  json["exposed_seconds"] = report.timeline.exposed_seconds;
  json["forward_seconds"] = report.workload.forward_seconds;
  json["streams"] = report.streams;
  json["pieces"] = std::move(pieces);
  json["ready_seconds"] = std::move(ready);
  json["units"] = std::move(units);
  json["model"] = report.trace.model;
  json["warnings"] = report.warnings;
  return json;
}

std::string plan_json(const RenderedPlan& report) {
  return json_of_plan(report).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

}  // namespace braid
