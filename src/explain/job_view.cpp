// SPDX-License-Identifier: Apache-2.0
#include "explain/job_view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/ranges.h>

namespace braid {
namespace {

using Steps = std::map<uint64_t, const NodeFacts::Step*>;

Steps steps_of(const NodeFacts& node) {
  Steps steps;
  for (const NodeFacts::Step& step : node.steps) steps[step.step] = &step;
  return steps;
}

// That all nodes know.
std::vector<uint64_t> common_steps(const std::vector<Steps>& nodes) {
  std::vector<uint64_t> common;
  if (nodes.empty()) return common;
  for (const auto& [number, step] : nodes.front()) {
    const bool is_common = std::ranges::all_of(
        nodes, [step_number = number](const Steps& steps) { return steps.contains(step_number); });
    if (is_common) common.push_back(number);
  }
  return common;
}

}  // namespace

double to_seconds(uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  const auto place = static_cast<size_t>(q * static_cast<double>(values.size() - 1));
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(place));
  return values[place];
}

double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

double JobView::step() const { return median(step_seconds); }
double JobView::exposed() const { return median(network); }

JobView view_job(const JobFacts& facts) {
  std::vector<Steps> nodes;
  for (const NodeFacts& node : facts.nodes) nodes.push_back(steps_of(node));
  JobView view;
  view.steps = common_steps(nodes);
  view.network.assign(view.steps.size(), HUGE_VAL);
  for (size_t i = 0; i < facts.nodes.size(); ++i) {
    for (size_t place = 0; place < facts.nodes[i].ranks.size(); ++place) {
      RankView rank{facts.nodes[i].ranks[place], facts.nodes[i].node, {}, {}, {}};
      for (size_t s = 0; s < view.steps.size(); ++s) {
        const NodeFacts::Step& step = *nodes[i][view.steps[s]];
        rank.before.push_back(to_seconds(step.before_ns[place]));
        rank.backward.push_back(to_seconds(step.backward_ns[place]));
        rank.wait.push_back(to_seconds(step.wait_ns[place]));
        view.network[s] = std::min(view.network[s], rank.wait.back());
      }
      view.ranks.push_back(std::move(rank));
    }
  }
  for (const uint64_t number : view.steps)
    view.step_seconds.push_back(to_seconds(nodes.front()[number]->step_ns));
  std::ranges::sort(view.ranks, {}, &RankView::rank);
  return view;
}

bool is_worth(double seconds, double step_seconds) {
  return seconds >= kWorthSeconds && seconds >= kWorthShare * step_seconds;
}

std::string format_time(double seconds) {
  const double ms = seconds * 1e3;
  if (ms >= 1e4) return fmt::format("{:.0f} s", seconds);
  if (ms >= 1e3) return fmt::format("{:.2f} s", seconds);
  return ms >= 10 ? fmt::format("{:.0f} ms", ms) : fmt::format("{:.1f} ms", ms);
}

std::string format_rate(double bytes_per_second) {
  return fmt::format("{:.3g} Gbit/s", bytes_per_second * 8e-9);
}

std::string format_duration(double seconds) {
  constexpr std::array<std::pair<const char*, uint64_t>, 4> kUnits = {
      {{"d", 86'400}, {"h", 3'600}, {"m", 60}, {"s", 1}}};
  // A number from elsewhere: bounded before it becomes an integer.
  uint64_t left = seconds > 0 ? static_cast<uint64_t>(std::min(seconds, 1e12)) : 0;
  std::vector<std::string> parts;
  for (const auto& [name, length] : kUnits) {
    if (parts.size() == 2 || (parts.empty() && left < length && length > 1)) continue;
    parts.push_back(fmt::format("{}{}", left / length, name));
    left %= length;
  }
  return fmt::format("{}", fmt::join(parts, " "));
}

}  // namespace braid
