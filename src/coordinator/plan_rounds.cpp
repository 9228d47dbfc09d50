// SPDX-License-Identifier: Apache-2.0
#include "coordinator/plan_rounds.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "coordinator/network_model.h"

namespace braid {
namespace {

// The median of those that were measured; 0: none was.
template <typename Number>
Number middle_of(std::vector<Number> values) {
  std::erase(values, Number{0});
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

uint64_t PlanRound::step() const {
  uint64_t latest = 0;
  for (const PlanReport& report : reports) latest = std::max(latest, report.step);
  return latest;
}

uint64_t PlanRound::iteration_ns() const {
  uint64_t longest = 0;
  for (const PlanReport& report : reports) longest = std::max(longest, report.iteration_ns);
  return longest;
}

std::optional<PlanRound> PlanRounds::add(NodeId from, PlanReport report,
                                         std::span<const CostMeasurement> measured, size_t nodes) {
  reports_[from] = std::move(report);
  measured_.insert(measured_.end(), measured.begin(), measured.end());
  if (reports_.size() < nodes) return std::nullopt;
  PlanRound round;
  for (auto& [node, one] : reports_) round.reports.push_back(std::move(one));
  round.measured = std::move(measured_);
  drop_reports();
  return round;
}

// A plan's first iterations have nothing to be compared with: they are why it was made. But what
// its all-reduces take does not depend on it, so a network that changes together with the plan is
// noticed all the same.
bool PlanRounds::has_changed(const PlanRound& round, double slowness) {
  const uint64_t iteration_ns = round.iteration_ns();
  if (++count_ == 1) iteration_ns_ = 0;
  if (iteration_ns_ == 0) iteration_ns_ = iteration_ns;
  if (!differ(static_cast<double>(iteration_ns_), static_cast<double>(iteration_ns),
              kIterationChangeMin) &&
      !differ(slowness_, slowness, kNetworkChangeMin)) {
    differing_.clear();
    if (++rounds_alike_ >= kAlikeRoundsMin) rounds_to_change_ = 1;
    return false;
  }
  rounds_alike_ = 0;
  differing_.push_back({iteration_ns, slowness});
  if (differing_.size() < rounds_to_change_) return false;
  take_change();
  return true;
}

// Only the first change in a long time says that plans were made for something else. Those that
// follow it soon may be noise.
void PlanRounds::take_change() {
  if (rounds_to_change_ == 1) rounds_to_hold_ = 0;
  rounds_to_change_ = std::min(rounds_to_change_ * 2, kRoundsMax);
  std::vector<uint64_t> iterations;
  std::vector<double> slownesses;
  for (const Reading& one : std::exchange(differing_, {})) {
    iterations.push_back(one.iteration_ns);
    slownesses.push_back(one.slowness);
  }
  iteration_ns_ = middle_of(std::move(iterations));
  slowness_ = middle_of(std::move(slownesses));
}

void PlanRounds::note_slowness(double slowness) {
  if (slowness_ == 0) slowness_ = slowness;
}

void PlanRounds::begin_plan() {
  count_ = 0;
  rounds_to_hold_ = std::clamp(rounds_to_hold_ * 2, 2U, kRoundsMax);
}

void PlanRounds::drop_reports() {
  reports_.clear();
  measured_.clear();
}

void PlanRounds::forget() { *this = {}; }

}  // namespace braid
