// SPDX-License-Identifier: Apache-2.0
#include "coordinator/plan_rounds.h"

#include <algorithm>
#include <utility>

#include "coordinator/network_model.h"

namespace braid {

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
      !differ(slowness_, slowness, kNetworkChangeMin))
    return false;
  rounds_to_hold_ = 0;
  iteration_ns_ = iteration_ns;
  slowness_ = slowness;
  return true;
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
