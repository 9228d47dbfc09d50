// SPDX-License-Identifier: Apache-2.0
// Iteration time and speed-up over workers, side by side.
#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "braidctl/axis.h"
#include "braidctl/svg.h"
#include "braidctl/sweep.h"

namespace braid {
namespace {

constexpr double kSheetWidth = 1120;
constexpr double kPanelTop = 120;
constexpr double kPanelHeight = 340;
constexpr double kPanelWidth = 440;
constexpr double kPanelLeft = 84;
constexpr double kPanelPitch = 548;
constexpr double kLegendTop = kPanelTop + kPanelHeight + 84;
constexpr double kLegendPitch = 24;
constexpr size_t kLegendColumns = 5;
constexpr size_t kWorkerLabelsMax = 12;
constexpr double kLogarithmicFrom = 6;  // ratio of the largest to the smallest value

// Lines that coincide stay visible: each is thinner than those below it.
constexpr double kWidestLine = 4.5;
constexpr double kThinnestLine = 1.5;

class SweepFigure {
 public:
  SweepFigure(const Trace& trace, const SweepOptions& options, const std::vector<SweepRow>& rows)
      : options_(options),
        rows_(rows),
        svg_(kSheetWidth, kLegendTop + kLegendPitch * legend_rows() + 14, title(trace)) {
    svg_.text(kPanelLeft, 36, title(trace), {.size = 18, .is_bold = true});
    svg_.text(kPanelLeft, 60, describe(options), {.size = 13, .fill = Svg::kMuted});
    svg_.text(kPanelLeft, 80,
              "speed-up: workers · iteration of one worker / iteration; dotted: as many as workers",
              {.size = 13, .fill = Svg::kMuted});
  }

  std::string draw() && {
    const auto by_time = [](const SweepRow& a, const SweepRow& b) {
      return a.iteration_seconds < b.iteration_seconds;
    };
    const double longest = std::max_element(rows_.begin(), rows_.end(), by_time)->iteration_seconds;
    const TimeUnit unit = time_unit(longest);
    draw_panel(0, fmt::format("iteration time ({})", unit.name), false,
               [unit](const SweepRow& row) { return row.iteration_seconds * unit.per_second; });
    draw_panel(1, "speed-up", true, [](const SweepRow& row) { return row.speedup; });
    draw_legend();
    return std::move(svg_).finish();
  }

 private:
  using Value = std::function<double(const SweepRow&)>;

  static std::string title(const Trace& trace) {
    return (trace.model.empty() ? std::string("One step") : trace.model) + " over workers";
  }
  double legend_rows() const {
    const size_t rows = (options_.planners.size() + kLegendColumns - 1) / kLegendColumns;
    return static_cast<double>(rows);
  }

  // By logarithm, whatever the numbers are: they usually double.
  Axis worker_axis(double left) const {
    Axis axis;
    axis.low = options_.workers.front();
    axis.high = options_.workers.back();
    if (axis.low == axis.high) {
      axis.low /= 2;
      axis.high *= 2;
    }
    axis.low_pixel = left + 14;
    axis.high_pixel = left + kPanelWidth - 14;
    axis.is_logarithmic = true;
    return axis;
  }

  Axis value_axis(const Value& value, bool with_ideal) const {
    Axis axis;
    axis.low = value(rows_.front());
    axis.high = axis.low;
    for (const SweepRow& row : rows_) {
      axis.low = std::min(axis.low, value(row));
      axis.high = std::max({axis.high, value(row), with_ideal ? row.workers : 0.0});
    }
    axis.is_logarithmic = axis.low > 0 && axis.high / axis.low > kLogarithmicFrom;
    axis.low = axis.is_logarithmic ? axis.low / 1.15 : 0;
    axis.high = axis.high > 0 ? axis.high * (axis.is_logarithmic ? 1.15 : 1.06) : 1;
    axis.low_pixel = kPanelTop + kPanelHeight;
    axis.high_pixel = kPanelTop;
    return axis;
  }

  void draw_panel(int place, const std::string& label, bool with_ideal, const Value& value) {
    const double left = kPanelLeft + kPanelPitch * place;
    const Axis x = worker_axis(left);
    const Axis y = value_axis(value, with_ideal);
    draw_grid(left, x, y, label + (y.is_logarithmic ? ", logarithmic" : ""));
    if (with_ideal) {
      std::vector<std::pair<double, double>> ideal;
      for (const uint32_t workers : options_.workers) {
        ideal.emplace_back(x.pixel(workers), y.pixel(workers));
      }
      svg_.polyline(ideal, {.colour = Svg::kMuted, .width = 1, .dash = "1 4"});
    }
    for (size_t p = 0; p < options_.planners.size(); ++p) draw_planner(p, x, y, value);
  }

  void draw_grid(double left, const Axis& x, const Axis& y, const std::string& label) {
    const double bottom = kPanelTop + kPanelHeight;
    for (const double tick : y.ticks(6)) {
      const double pixel = y.pixel(tick);
      svg_.line(left, pixel, left + kPanelWidth, pixel, {.colour = Svg::kGrid});
      svg_.text(left - 8, pixel + 4, format_number(tick), {.anchor = Svg::Anchor::End});
    }
    const size_t every = (options_.workers.size() + kWorkerLabelsMax - 1) / kWorkerLabelsMax;
    for (size_t i = 0; i < options_.workers.size(); i += every) {
      const double pixel = x.pixel(options_.workers[i]);
      svg_.line(pixel, bottom, pixel, bottom + 5, {});
      svg_.text(pixel, bottom + 20, std::to_string(options_.workers[i]),
                {.anchor = Svg::Anchor::Middle});
    }
    svg_.line(left, bottom, left + kPanelWidth, bottom, {});
    svg_.line(left, kPanelTop, left, bottom, {});
    svg_.text(left + kPanelWidth / 2, bottom + 44, "workers",
              {.size = 13, .anchor = Svg::Anchor::Middle});
    svg_.text(left - 8, kPanelTop - 14, label, {.size = 13, .is_bold = true});
  }

  void draw_planner(size_t planner, const Axis& x, const Axis& y, const Value& value) {
    std::vector<std::pair<double, double>> points;
    for (const SweepRow& row : rows_) {
      if (row.planner == options_.planners[planner]->name()) {
        points.emplace_back(x.pixel(row.workers), y.pixel(value(row)));
      }
    }
    svg_.polyline(points, stroke(planner));
    size_t point = 0;
    for (const SweepRow& row : rows_) {
      if (row.planner != options_.planners[planner]->name()) continue;
      svg_.circle(points[point].first, points[point].second, radius(planner),
                  series_colour(planner),
                  fmt::format("{}, {} workers: {:.6g} s, speed-up {:.4g}, {} groups", row.planner,
                              row.workers, row.iteration_seconds, row.speedup, row.groups));
      ++point;
    }
  }

  Svg::Stroke stroke(size_t planner) const {
    const double share =
        options_.planners.size() < 2
            ? 0.5
            : static_cast<double>(planner) / static_cast<double>(options_.planners.size() - 1);
    return {series_colour(planner), kWidestLine - share * (kWidestLine - kThinnestLine)};
  }
  double radius(size_t planner) const { return stroke(planner).width / 2 + 1.8; }

  void draw_legend() {
    for (size_t p = 0; p < options_.planners.size(); ++p) {
      const double x = kPanelLeft + 200 * static_cast<double>(p % kLegendColumns);
      const size_t row = p / kLegendColumns;
      const double y = kLegendTop + kLegendPitch * static_cast<double>(row);
      svg_.line(x, y, x + 36, y, stroke(p));
      svg_.circle(x + 18, y, radius(p), series_colour(p));
      svg_.text(x + 44, y + 5, options_.planners[p]->name(), {.size = 13});
    }
  }

  const SweepOptions& options_;
  const std::vector<SweepRow>& rows_;
  Svg svg_;
};

}  // namespace

std::string sweep_svg(const Trace& trace, const SweepOptions& options,
                      const std::vector<SweepRow>& rows) {
  return SweepFigure(trace, options, rows).draw();
}

}  // namespace braid
