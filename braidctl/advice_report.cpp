// SPDX-License-Identifier: Apache-2.0
#include "braidctl/advice_report.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/amount.h"
#include "braidctl/status_view.h"
#include "braidctl/text_table.h"

namespace braid {
namespace {

using nlohmann::ordered_json;

std::string pays_text(const RenderedAdvice& report, size_t row) {
  const auto& end = report.sweep.pays_up_to[row];
  if (row == 0) return "-";
  if (!end) return fmt::format("{} and more", format_bandwidth(kSweepBandwidthMax));
  return *end == kSweepBandwidthMin ? "nowhere" : format_bandwidth(*end);
}

std::string rows_table(const RenderedAdvice& report) {
  std::vector<std::vector<std::string>> cells = {{"CODEC", "STEP", "SAVED", "NO OVERLAP",
                                                  "COMMUNICATION", "CODING", "EXPOSED", "ON WIRE",
                                                  "PAYS UP TO"}};
  for (size_t i = 0; i < report.advice.rows.size(); ++i) {
    const AdviceRow& row = report.advice.rows[i];
    const double saved = report.plain().step_seconds - row.step_seconds;
    const double percent = saved / report.plain().step_seconds * 100;
    cells.push_back({row.codec, format_seconds(row.step_seconds),
                     i == 0 ? "-" : fmt::format("{:.1f} %", percent),
                     format_seconds(row.step_after_backward_seconds),
                     format_seconds(row.communication_seconds), format_seconds(row.encode_seconds),
                     format_seconds(row.exposed_seconds),
                     format_amount(static_cast<uint64_t>(row.wire_bytes)), pays_text(report, i)});
  }
  return render_table(cells);
}

std::string groups_table(const RenderedAdvice& report) {
  std::vector<std::vector<std::string>> cells = {
      {"GROUP", "TENSORS", "FROM", "BYTES", "EXPOSED", "PLAIN", "BEST", "TAKES"}};
  for (size_t i = 0; i < report.advice.groups.size(); ++i) {
    const AdviceGroup& group = report.advice.groups[i];
    cells.push_back({std::to_string(i + 1), std::to_string(group.end - group.begin),
                     printable(report.tensor(group.begin).name), format_amount(group.bytes),
                     format_seconds(group.exposed_seconds), format_seconds(group.seconds.front()),
                     report.advice.rows[group.codec].codec,
                     format_seconds(group.seconds[group.codec])});
  }
  return render_table(cells);
}

ordered_json json_of_group(const RenderedAdvice& report, const AdviceGroup& group) {
  ordered_json entry;
  auto names = ordered_json::array();
  for (uint32_t i = group.begin; i < group.end; ++i) names.push_back(report.tensor(i).name);
  entry["tensors"] = std::move(names);
  entry["bytes"] = group.bytes;
  entry["exposed_seconds"] = group.exposed_seconds;
  entry["recommended"] = report.advice.rows[group.codec].codec;
  ordered_json seconds = ordered_json::object();
  for (size_t i = 0; i < group.seconds.size(); ++i) {
    seconds[report.advice.rows[i].codec] = group.seconds[i];
  }
  entry["communication_seconds"] = std::move(seconds);
  return entry;
}

ordered_json json_of_row(const RenderedAdvice& report, size_t i) {
  const AdviceRow& row = report.advice.rows[i];
  ordered_json entry;
  entry["codec"] = row.codec;
  entry["step_seconds"] = row.step_seconds;
  entry["communication_seconds"] = row.communication_seconds;
  entry["encode_seconds"] = row.encode_seconds;
  entry["exposed_seconds"] = row.exposed_seconds;
  entry["wire_bytes"] = row.wire_bytes;
  entry["cautious_step_seconds"] = row.cautious_step_seconds;
  entry["step_after_backward_seconds"] = row.step_after_backward_seconds;
  const auto& end = report.sweep.pays_up_to[i];
  if (i == 0 || (end && *end == kSweepBandwidthMin)) {
    entry["pays_up_to_bits_per_second"] = 0;
  } else {
    entry["pays_up_to_bits_per_second"] = end ? ordered_json(*end) : ordered_json(nullptr);
  }
  return entry;
}

// The plain step comes first.
ordered_json json_of_sweep(const RenderedAdvice& report) {
  ordered_json steps = ordered_json::object();
  for (size_t i = 0; i < report.advice.rows.size(); ++i) {
    steps[report.advice.rows[i].codec] = report.sweep.step_seconds[i];
  }
  return {{"bits_per_second", report.sweep.bandwidths}, {"step_seconds", std::move(steps)}};
}

// A step is predicted within a few percent where the network is what takes its time.
constexpr double kMispredictionMin = 0.15;

}  // namespace

std::optional<std::string> misprediction_warning(const RenderedAdvice& report) {
  const double predicted = report.plain().step_seconds;
  if (report.measured_seconds == 0) return std::nullopt;
  if (std::abs(predicted / report.measured_seconds - 1) < kMispredictionMin) return std::nullopt;
  return fmt::format(
      "without a codec a step takes {}, but {} by prediction: something other than the backward "
      "pass and the network takes time, which the advice leaves out",
      format_seconds(report.measured_seconds), format_seconds(predicted));
}

std::string advice_table(const RenderedAdvice& report) {
  std::string out = fmt::format(
      "{} on {} nodes: forward {}, backward {}; planner {}, streams: {}\n"
      "wire: {}; rates {}; threads that encode: {}\n\n",
      printable(report.trace.model), report.options.cost.nodes,
      format_seconds(report.trace.forward_seconds), format_seconds(report.trace.backward_seconds()),
      report.planner, report.options.planning.streams, format_bandwidth(report.measured_bandwidth),
      printable(report.rates), report.options.cost.encode_threads);
  if (report.measured_seconds != 0) {
    out.insert(out.size() - 1,
               fmt::format("without a codec a step takes {} by prediction, {} as measured\n",
                           format_seconds(report.plain().step_seconds),
                           format_seconds(report.measured_seconds)));
  }
  out += rows_table(report) + '\n' + groups_table(report) + '\n';
  for (const std::string& sentence : advice_sentences(report)) out += sentence + '\n';
  return out;
}

std::string advice_json(const RenderedAdvice& report) {
  ordered_json json;
  json["recommended"] = report.advice.rows[report.advice.recommended].codec;
  json["reason"] = advice_reason(report);
  auto rows = ordered_json::array();
  for (size_t i = 0; i < report.advice.rows.size(); ++i) rows.push_back(json_of_row(report, i));
  json["rows"] = std::move(rows);
  auto groups = ordered_json::array();
  for (const AdviceGroup& group : report.advice.groups) {
    groups.push_back(json_of_group(report, group));
  }
  json["groups"] = std::move(groups);
  json["step_by_group_seconds"] = report.advice.step_by_group_seconds;
  json["sentences"] = advice_sentences(report);
  json["nodes"] = report.options.cost.nodes;
  if (report.measured_seconds != 0) json["measured_step_seconds"] = report.measured_seconds;
  json["wire_bits_per_second"] = report.measured_bandwidth;
  json["model"] = report.trace.model;
  json["compute_seconds"] = report.trace.forward_seconds + report.trace.backward_seconds();
  json["sweep"] = json_of_sweep(report);
  json["warnings"] = report.warnings;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

}  // namespace braid
