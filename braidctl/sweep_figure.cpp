// SPDX-License-Identifier: Apache-2.0
// Iteration time and speed-up over workers, side by side.
#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "braidctl/axis.h"
#include "braidctl/figure.h"
#include "braidctl/sweep.h"

namespace braid {
namespace {

constexpr size_t kWorkerLabelsMax = 12;
constexpr double kLogarithmicFrom = 6;  // ratio of the largest to the smallest value

using Value = std::function<double(const SweepRow&)>;

// So much that small values would lie on a line that is not logarithmic.
bool spans_much(const Figure::Panel& panel) {
  std::vector<double> values;
  for (const Figure::Series& series : panel.series) {
    for (const Figure::Point& point : series.points) values.push_back(point.y);
  }
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return *low > 0 && *high / *low > kLogarithmicFrom;
}

std::string line_name(const SweepOptions& options, const SweepRow& row) {
  if (!row.update) return std::string(row.planner);
  const std::string method = to_string(row.update->method);
  return options.planners.size() == 1 ? method : fmt::format("{}, {}", row.planner, method);
}

// `reference`: may have no name, and then there is none.
Figure::Panel panel_of(const SweepOptions& options, const std::vector<SweepRow>& rows,
                       std::string title, const Value& value, Figure::Series reference) {
  Figure::Panel panel;
  panel.title = std::move(title);
  panel.kind = Figure::Kind::Lines;
  panel.x_title = "workers";
  panel.x_is_logarithmic = true;  // whatever the numbers are: they usually double
  const size_t every = (options.workers.size() + kWorkerLabelsMax - 1) / kWorkerLabelsMax;
  for (size_t i = 0; i < options.workers.size(); i += every)
    panel.x_ticks.push_back(options.workers[i]);
  if (!reference.name.empty()) panel.series.push_back(std::move(reference));
  // Each number of workers has as many rows, in the same order: one for each line.
  const size_t lines = rows.size() / options.workers.size();
  for (size_t line = 0; line < lines; ++line) {
    Figure::Series& series = panel.series.emplace_back();
    series.name = line_name(options, rows[line]);
    for (size_t i = line; i < rows.size(); i += lines) {
      const SweepRow& row = rows[i];
      series.points.push_back(
          {static_cast<double>(row.workers), value(row),
           fmt::format("{}, {} workers: {:.6g} s, speed-up {:.4g}, {} groups", series.name,
                       row.workers, row.iteration_seconds, row.speedup, row.groups)});
    }
  }
  panel.y_is_logarithmic = spans_much(panel);
  return panel;
}

// As many as workers.
Figure::Series ideal_speedup(const SweepOptions& options) {
  Figure::Series series;
  series.name = "as many as workers";
  series.is_reference = true;
  for (const uint32_t workers : options.workers) {
    const auto count = static_cast<double>(workers);
    series.points.push_back({count, count});
  }
  return series;
}

}  // namespace

std::string sweep_svg(const Trace& trace, const SweepOptions& options,
                      const std::vector<SweepRow>& rows) {
  Figure figure;
  figure.title = (trace.model.empty() ? std::string("One step") : trace.model) + " over workers";
  figure.notes = {describe(options), "speed-up: workers · iteration of one worker / iteration"};
  figure.columns = 2;
  double longest_seconds = 0;
  for (const SweepRow& row : rows)
    longest_seconds = std::max(longest_seconds, row.iteration_seconds);
  const TimeUnit unit = time_unit(longest_seconds);
  figure.panels.push_back(panel_of(
      options, rows, fmt::format("iteration time ({})", unit.name),
      [unit](const SweepRow& row) { return row.iteration_seconds * unit.per_second; }, {}));
  figure.panels.push_back(panel_of(
      options, rows, "speed-up", [](const SweepRow& row) { return row.speedup; },
      ideal_speedup(options)));
  return figure_svg(figure);
}

}  // namespace braid
