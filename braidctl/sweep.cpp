// SPDX-License-Identifier: Apache-2.0
#include "braidctl/sweep.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "braidctl/sweep_updates.h"
#include "braidctl/text_table.h"

namespace braid {
namespace {

Status workers_error(std::string_view what, std::string_view why) {
  return make_status(StatusCode::InvalidArgument,
                     "'{}' {}; right is a list such as 4,8,16 or 4,8,...,2048, of numbers from 1 "
                     "to {}",
                     what, why, kSweepWorkersMax);
}

std::optional<uint32_t> parse_count(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (value == 0 || value > kSweepWorkersMax) return std::nullopt;
  return value;
}

// Appends last·2, last·4, … up to and with `end`.
bool append_doubling(std::vector<uint32_t>& workers, uint32_t end) {
  if (workers.empty()) return false;
  while (workers.back() < end) workers.push_back(workers.back() * 2);
  return workers.back() == end;
}

void add_update(const SweepUpdate& update, nlohmann::ordered_json& entry) {
  entry["update"] = to_string(update.method);
  entry["compute_seconds"] = update.times.compute_seconds;
  entry["communication_seconds"] = update.times.communication_seconds;
  entry["exposed_seconds"] = update.times.exposed_seconds;
  entry["hidden_share"] = update.times.hidden_share();
  entry["wire_bytes"] = update.wire_bytes;
  entry["wire_share"] = update.times.wire_share;
  entry["speedup_over_sync"] = update.speedup_over_sync;
}

}  // namespace

Result<std::vector<uint32_t>> parse_workers(std::string_view text) {
  std::vector<uint32_t> workers;
  bool dots = false;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view item = text.substr(begin, end - begin);
    begin = end + 1;
    if (item == "..." || item == "…") {
      if (dots || workers.empty()) return workers_error(item, "stands where no number is before");
      dots = true;
      continue;
    }
    const auto count = parse_count(item);
    if (!count) return workers_error(item, "is no number of workers");
    if (!workers.empty() && *count <= workers.back()) {
      return workers_error(item, "does not grow");
    }
    if (dots && !append_doubling(workers, *count)) {
      return workers_error(text, fmt::format("does not reach {} by doubling", *count));
    }
    if (!dots) workers.push_back(*count);
    dots = false;
    if (workers.size() > kSweepSizesMax) return workers_error(text, "is too long");
  }
  if (dots) return workers_error(text, "ends with dots");
  return workers;
}

Result<std::vector<SweepRow>> run_sweep(const Trace& trace, const SweepOptions& options) {
  const Workload workload = workload_of(trace);
  std::vector<SweepRow> rows;
  for (const uint32_t workers : options.workers) {
    const auto linear =
        algorithm_cost(options.algorithm, workers, options.link, options.algorithm_options);
    if (!linear) return linear.status();
    const LinearCostModel cost(*linear, options.slowdown_of_two);
    if (!options.updates.empty()) {
      BRAID_RETURN_IF_ERROR(add_update_rows(workload, options, workers, cost, rows));
      continue;
    }
    PlannerOptions planner_options;
    planner_options.streams = options.simulator.streams;
    SimulatorOptions simulator = options.simulator;
    simulator.workers = workers;
    for (const Planner* planner : options.planners) {
      const Plan plan = planner->plan(workload, cost, planner_options);
      const double seconds = simulate(workload, plan, cost, simulator).iteration_seconds;
      const double speedup = speedup_over_one(workload, workers, seconds);
      rows.push_back({workers, planner->name(), seconds, speedup, plan.groups.size()});
    }
  }
  return rows;
}

std::string describe(const SweepOptions& options) {
  std::string out =
      fmt::format("{}, α {:.4g} s, β {:.4g} s/byte, γ {:.4g} s/byte; streams: {}",
                  options.algorithm, options.link.latency_seconds, options.link.seconds_per_byte,
                  options.link.reduce_seconds_per_byte, options.simulator.streams);
  if (options.simulator.jitter > 0 || options.simulator.straggle > 0) {
    out += fmt::format("; jitter {:g}, straggle {:g}, seed {}", options.simulator.jitter,
                       options.simulator.straggle, options.simulator.seed);
  }
  return out;
}

std::string sweep_table(const Trace& trace, const SweepOptions& options,
                        const std::vector<SweepRow>& rows) {
  if (!options.updates.empty()) return updates_table(trace, options, rows);
  const double alone = trace.forward_seconds + trace.backward_seconds();
  std::string out =
      fmt::format("{}; one worker: {}\nspeed-up: workers · iteration of one worker / iteration\n\n",
                  describe(options), format_seconds(alone));
  std::vector<std::vector<std::string>> cells = {
      {"WORKERS", "PLANNER", "ITERATION", "SPEED-UP", "GROUPS"}};
  for (const SweepRow& row : rows) {
    cells.push_back({std::to_string(row.workers), std::string(row.planner),
                     format_seconds(row.iteration_seconds), fmt::format("{:.2f}", row.speedup),
                     std::to_string(row.groups)});
  }
  return out + render_table(cells);
}

std::string sweep_json(const std::vector<SweepRow>& rows) {
  auto json = nlohmann::ordered_json::array();
  for (const SweepRow& row : rows) {
    nlohmann::ordered_json entry;
    entry["workers"] = row.workers;
    entry["planner"] = row.planner;
    entry["iteration_seconds"] = row.iteration_seconds;
    entry["speedup"] = row.speedup;
    entry["groups"] = row.groups;
    if (row.update) add_update(*row.update, entry);
    json.push_back(std::move(entry));
  }
  return json.dump() + '\n';
}

}  // namespace braid
