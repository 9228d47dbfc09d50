// SPDX-License-Identifier: Apache-2.0
#include "bench/replay_report.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/report.h"

namespace braid::bench {
namespace {

std::vector<double> turn_medians(const std::vector<double>& seconds) {
  std::vector<double> medians;
  for (size_t i = 0; i < seconds.size(); i += kTurnSteps) {
    const auto begin = seconds.begin() + static_cast<ptrdiff_t>(i);
    const auto steps = static_cast<ptrdiff_t>(std::min<size_t>(kTurnSteps, seconds.size() - i));
    medians.push_back(median({begin, begin + steps}));
  }
  return medians;
}

}  // namespace

double paired_ratio(const std::vector<double>& seconds, const std::vector<double>& base) {
  std::vector<double> ratios = turn_medians(seconds);
  const std::vector<double> bases = turn_medians(base);
  ratios.resize(std::min(ratios.size(), bases.size()));
  for (size_t i = 0; i < ratios.size(); ++i) ratios[i] /= bases[i];
  return median(std::move(ratios));
}

std::string to_json(const ReplayResult& result, const ReplayResult& base, bool has_several) {
  const double measured = median(result.seconds);
  nlohmann::ordered_json json;
  json["planner"] = result.planner;
  json["streams"] = result.streams;
  json["steps"] = result.seconds.size();
  json["groups"] = result.groups;
  json["measured_seconds"] = measured;
  json["p99_seconds"] = p99(result.seconds);
  if (result.predicted_seconds != 0) {
    json["predicted_seconds"] = result.predicted_seconds;
    json["ratio"] = measured / result.predicted_seconds;
  }
  if (!result.iterations.empty()) json["iteration_seconds"] = median(result.iterations);
  if (result.plan) {
    json["plan"] = *result.plan;
    json["settled"] = result.is_settled;
  }
  if (has_several) {
    json["base"] = base.planner;
    json["paired_ratio"] = paired_ratio(result.seconds, base.seconds);
  }
  return json.dump();
}

std::string replay_table(std::span<const ReplayResult> results) {
  const std::string base = results.size() > 1 ? "to " + results.front().planner : "";
  std::string out =
      fmt::format("{:<10} {:>7} {:>7} {:>6} {:>12} {:>12} {:>12} {:>7} {:>10}\n", "planner",
                  "streams", "steps", "groups", "measured", "p99", "predicted", "ratio", base);
  for (const ReplayResult& one : results) {
    const double measured = median(one.seconds);
    const std::string paired =
        results.size() > 1
            ? fmt::format("{:.3f}", paired_ratio(one.seconds, results.front().seconds))
            : "";
    const bool is_predicted = one.predicted_seconds != 0;
    out += fmt::format(
        "{:<10} {:>7} {:>7} {:>6} {:>12} {:>12} {:>12} {:>7} {:>10}\n", one.planner, one.streams,
        one.seconds.size(), one.groups, format_seconds(measured), format_seconds(p99(one.seconds)),
        is_predicted ? format_seconds(one.predicted_seconds) : "-",
        is_predicted ? fmt::format("{:.3f}", measured / one.predicted_seconds) : "-", paired);
  }
  for (const ReplayResult& one : results) {
    if (!one.plan) continue;
    out += fmt::format("{}: plan {} held at the end, {} groups{}\n", one.planner, *one.plan,
                       one.groups,
                       one.is_settled ? "" : "; it is younger than the first measured step");
  }
  return out;
}

}  // namespace braid::bench
