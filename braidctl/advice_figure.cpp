// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "braidctl/advice_report.h"
#include "braidctl/axis.h"
#include "braidctl/figure.h"

namespace braid {
namespace {

constexpr double kLogarithmicStepsFrom = 6;  // the longest step to the shortest one
constexpr double kAdvicePanelWidth = 720;

}  // namespace

std::string advice_svg(const RenderedAdvice& report) {
  const auto& steps = report.sweep.step_seconds;
  double shortest = steps.front().front();
  double longest = shortest;
  for (const auto& row : steps) {
    const auto [low, high] = std::ranges::minmax_element(row);
    shortest = std::min(shortest, *low);
    longest = std::max(longest, *high);
  }
  const TimeUnit unit = time_unit(longest);
  Figure::Panel panel;
  panel.title = fmt::format("step ({})", unit.name);
  panel.kind = Figure::Kind::Lines;
  panel.x_title = "bandwidth of a node (Gbit/s)";
  panel.x_is_logarithmic = true;
  panel.x_ticks = {1, 2, 5, 10, 20, 50, 100};
  panel.y_is_logarithmic = shortest > 0 && longest / shortest > kLogarithmicStepsFrom;
  for (size_t i = 0; i < steps.size(); ++i) {
    Figure::Series& series = panel.series.emplace_back();
    series.name = report.advice.rows[i].codec;
    series.is_reference = i == 0;
    for (size_t j = 0; j < steps[i].size(); ++j) {
      series.points.push_back({report.sweep.bandwidths[j] / 1e9, steps[i][j] * unit.per_second,
                               fmt::format("{} at {}: {:.4g} {}", series.name,
                                           format_bandwidth(report.sweep.bandwidths[j]),
                                           steps[i][j] * unit.per_second, unit.name)});
    }
  }
  const double computing = report.trace.forward_seconds + report.trace.backward_seconds();
  panel.limit = {computing * unit.per_second, "forward and backward alone"};
  Figure figure;
  figure.title = report.trace.model + " with codecs, over bandwidth";
  figure.notes = {fmt::format("{} nodes, planner {}, streams: {}, threads that encode: {}",
                              report.options.cost.nodes, report.planner,
                              report.options.planning.streams, report.options.cost.encode_threads),
                  fmt::format("measured: {}, startups as there; {}",
                              format_bandwidth(report.measured_bandwidth), advice_reason(report))};
  figure.panel_width = kAdvicePanelWidth;
  figure.panels.push_back(std::move(panel));
  return figure_svg(figure);
}

}  // namespace braid
