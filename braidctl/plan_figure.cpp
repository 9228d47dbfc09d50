// SPDX-License-Identifier: Apache-2.0
// The timeline of a plan, as the papers draw it.
#include <algorithm>

#include <fmt/format.h>

#include "braidctl/axis.h"
#include "braidctl/plan_report.h"
#include "braidctl/status_view.h"
#include "braidctl/svg.h"
#include "braidctl/text_table.h"

namespace braid {
namespace {

constexpr double kPageWidth = 1080;
constexpr double kLeft = 132;
constexpr double kRight = 28;
constexpr double kTop = 104;
constexpr double kLaneHeight = 34;
constexpr double kLanePitch = 46;
constexpr double kFoot = 96;
constexpr double kLabelWidthMin = 18;
constexpr double kTensorOpacity = 0.45;

class PlanFigure {
 public:
  explicit PlanFigure(const RenderedPlan& report)
      : report_(report),
        lanes_(unit_lanes(report.timeline)),
        lane_count_(lanes_.empty() ? 1 : *std::max_element(lanes_.begin(), lanes_.end()) + 1),
        bottom_(kTop + kLanePitch * (lane_count_ + 1)),
        svg_(kPageWidth, bottom_ + kFoot, title()) {
    axis_.high = std::max(report.timeline.iteration_seconds, 1e-9);
    axis_.low_pixel = kLeft;
    axis_.high_pixel = kPageWidth - kRight;
  }

  std::string draw() && {
    draw_heading();
    draw_axis();
    draw_exposed();
    draw_backward();
    draw_communication();
    draw_legend();
    return std::move(svg_).finish();
  }

 private:
  std::string title() const {
    return fmt::format("{} planned by {}",
                       report_.trace.model.empty() ? "One step" : report_.trace.model,
                       report_.planner);
  }
  double forward() const { return report_.workload.forward_seconds; }
  double lane_top(uint32_t lane) const { return kTop + kLanePitch * (lane + 1); }

  void draw_heading() {
    svg_.text(kLeft, 34, title(), {.size = 18, .is_bold = true});
    svg_.text(kLeft, 58,
              fmt::format("{} tensors, {}, in {} groups; streams: {}", report_.trace.tensors.size(),
                          format_amount(report_.workload.bytes()), report_.plan.groups.size(),
                          report_.streams),
              {.size = 13, .fill = kMuted});
    svg_.text(
        kLeft, 78,
        fmt::format("iteration {} = forward {} + backward {} + exposed communication {}",
                    format_seconds(report_.timeline.iteration_seconds), format_seconds(forward()),
                    format_seconds(report_.timeline.backward_seconds),
                    format_seconds(report_.timeline.exposed_seconds)),
        {.size = 13, .fill = kMuted});
  }

  void draw_axis() {
    const TimeUnit unit = time_unit(axis_.high);
    for (const double tick : axis_.ticks(10)) {
      const double x = axis_.pixel(tick);
      svg_.line(x, kTop - 8, x, bottom_, {.colour = kGrid});
      svg_.text(x, bottom_ + 18, format_number(tick * unit.per_second),
                {.size = 12, .anchor = Svg::Anchor::Middle});
    }
    svg_.line(kLeft, bottom_, kPageWidth - kRight, bottom_, {});
    svg_.text((kLeft + kPageWidth - kRight) / 2, bottom_ + 40,
              fmt::format("time since the step began ({})", unit.name),
              {.size = 13, .anchor = Svg::Anchor::Middle});
    const Svg::Text label = {.size = 13, .anchor = Svg::Anchor::End};
    svg_.text(kLeft - 12, kTop + kLaneHeight / 2 + 5, "computation", label);
    for (uint32_t lane = 0; lane < lane_count_; ++lane) {
      svg_.text(kLeft - 12, lane_top(lane) + kLaneHeight / 2 + 5,
                lane_count_ == 1 ? "communication" : fmt::format("stream {}", lane + 1), label);
    }
  }

  void draw_exposed() {
    if (report_.timeline.exposed_seconds <= 0) return;
    const double begin = axis_.pixel(forward() + report_.timeline.backward_seconds);
    svg_.rectangle(begin, kTop - 8, axis_.pixel(axis_.high) - begin, bottom_ - kTop + 8,
                   kExposedFill, 0.08);
    svg_.line(begin, kTop - 8, begin, bottom_, {.colour = kExposedFill, .dash = "4 3"});
  }

  // Labels only where they fit.
  void draw_block(double begin, double end, double top, std::string_view fill, double opacity,
                  const std::string& hint) {
    const double x = axis_.pixel(begin);
    // A hairline stays between neighbours, unless they are thin themselves.
    const double width = axis_.pixel(end) - x;
    svg_.rectangle(x, top, std::max(width - (width > 2 ? 0.6 : 0), 0.3), kLaneHeight, fill, opacity,
                   hint);
  }
  void label_block(double begin, double end, double top, const std::string& label,
                   std::string_view fill = kInk) {
    const double x = axis_.pixel(begin);
    const double width = axis_.pixel(end) - x;
    const double needed = std::max(kLabelWidthMin, 8.0 * static_cast<double>(label.size()));
    if (width < needed) return;
    svg_.text(x + width / 2, top + kLaneHeight / 2 + 5, label,
              {.size = 13, .anchor = Svg::Anchor::Middle, .fill = fill, .is_bold = true});
  }

  void draw_backward() {
    if (forward() > 0) {
      draw_block(0, forward(), kTop, kForwardFill, 1, "forward: " + format_seconds(forward()));
      label_block(0, forward(), kTop, "forward");
    }
    double begin = forward();
    for (size_t g = 0; g < report_.plan.groups.size(); ++g) {
      const Plan::Group& group = report_.plan.groups[g];
      const double group_begin = begin;
      for (uint32_t i = group.begin; i < group.end; ++i) {
        const double end = forward() + report_.timeline.ready_seconds[i];
        draw_block(begin, end, kTop, series_colour(g), kTensorOpacity,
                   fmt::format("{}: {}, {}", report_.tensor(i).name,
                               format_amount(report_.workload.tensors[i].bytes),
                               format_seconds(end - begin)));
        begin = end;
      }
      label_block(group_begin, begin, kTop, std::to_string(g + 1));
    }
  }

  void draw_communication() {
    for (size_t i = 0; i < report_.timeline.units.size(); ++i) {
      const Timeline::Unit& unit = report_.timeline.units[i];
      const uint64_t bytes = report_.unit_bytes(unit);
      const double begin = forward() + unit.start_seconds;
      const double end = forward() + unit.end_seconds;
      const double startup = std::min(begin + report_.cost->phases(bytes).startup_seconds, end);
      const bool in_pieces = report_.plan.groups[unit.group].pieces > 1;
      const std::string name = in_pieces ? fmt::format("{}.{}", unit.group + 1, unit.piece + 1)
                                         : std::to_string(unit.group + 1);
      const std::string hint =
          fmt::format("group {}: {}, {}", name, format_amount(bytes), format_seconds(end - begin));
      const double top = lane_top(lanes_[i]);
      const std::string_view colour = series_colour(unit.group);
      draw_block(begin, end, top, colour, 1, hint);
      svg_.hatch(axis_.pixel(begin), top, axis_.pixel(startup) - axis_.pixel(begin), kLaneHeight);
      label_block(startup, end, top, name, kPaper);
    }
  }

  void draw_legend() {
    double x = kLeft;
    const auto item = [&](std::string_view fill, double opacity, std::string_view label) {
      svg_.rectangle(x, bottom_ + 62, 16, 14, fill, opacity);
      svg_.text(x + 22, bottom_ + 74, label, {.size = 12});
      x += 50 + 6.9 * static_cast<double>(label.size());
    };
    const std::string_view sample = series_colour(0);
    item(sample, kTensorOpacity, "backward of a tensor, in its group's colour");
    svg_.rectangle(x, bottom_ + 62, 16, 14, sample);
    svg_.hatch(x, bottom_ + 62, 16, 14);
    item(sample, 0, "startup of a message");
    item(sample, 1, "its transfer");
    if (report_.timeline.exposed_seconds > 0) item(kExposedFill, 0.15, "exposed communication");
  }

  const RenderedPlan& report_;
  const std::vector<uint32_t> lanes_;
  const uint32_t lane_count_;
  const double bottom_;
  Svg svg_;
  Axis axis_;
};

}  // namespace

std::string plan_svg(const RenderedPlan& report) { return PlanFigure(report).draw(); }

}  // namespace braid
