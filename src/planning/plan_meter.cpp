// SPDX-License-Identifier: Apache-2.0
#include "planning/plan_meter.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace braid {
namespace {

void keep(std::deque<uint64_t>& values, uint64_t value) {
  values.push_back(value);
  if (values.size() > PlanMeter::kStepsKept) values.pop_front();
}

// The smallest value that the share `q` of all does not exceed.
uint64_t quantile(std::vector<uint64_t>& values, double q) {
  if (values.empty()) return 0;
  const auto rank = std::lround(q * static_cast<double>(values.size() - 1));
  const auto place = values.begin() + rank;
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

uint64_t median(const std::deque<uint64_t>& kept) {
  std::vector<uint64_t> values(kept.begin(), kept.end());
  return quantile(values, 0.5);
}

}  // namespace

PlanMeter::OpenStep& PlanMeter::open(uint64_t step, uint64_t now_ns) {
  for (OpenStep& one : open_) {
    if (one.step == step) return one;
  }
  if (open_.size() >= kStepsOpenMax) open_.pop_front();
  OpenStep& opened = open_.emplace_back();
  opened.step = step;
  opened.first_ns = now_ns;
  opened.rank_first_ns.assign(local_ranks_, 0);
  opened.ready_ns.assign(tensors_, 0);
  if (last_published_ns_ != 0) opened.forward_ns = now_ns - std::min(now_ns, last_published_ns_);
  return opened;
}

bool PlanMeter::on_submit(uint32_t local_rank, uint32_t tensor, uint64_t step, uint64_t now_ns) {
  OpenStep& one = open(step, now_ns);
  uint64_t& first_ns = one.rank_first_ns[local_rank];
  if (first_ns == 0) first_ns = now_ns;
  one.ready_ns[tensor] = std::max(one.ready_ns[tensor], now_ns - first_ns);
  if (++one.submissions < uint64_t{tensors_} * local_ranks_) return false;
  OpenStep complete = std::move(one);
  std::erase_if(open_, [step](const OpenStep& other) { return other.step == step; });
  close(std::move(complete));
  return true;
}

void PlanMeter::close(OpenStep step) {
  if (steps_ >= kStepsIgnored) {
    rows_.push_back(std::make_shared<const std::vector<uint64_t>>(std::move(step.ready_ns)));
    if (rows_.size() > kStepsKept) rows_.pop_front();
    if (step.forward_ns) keep(forwards_, *step.forward_ns);
    if (last_step_ && *last_step_ + 1 == step.step)
      keep(iterations_, step.first_ns - last_first_ns_);
  }
  last_step_ = step.step;
  last_first_ns_ = step.first_ns;
  ++steps_;
}

std::vector<uint64_t> PlanMeter::Rows::ready_ns(double q) const {
  std::vector<uint64_t> ready(tensors, 0);
  std::vector<uint64_t> values;
  for (uint32_t tensor = 0; tensor < tensors; ++tensor) {
    values.clear();
    for (const auto& row : rows) values.push_back((*row)[tensor]);
    ready[tensor] = quantile(values, q);
  }
  return ready;
}

uint64_t PlanMeter::forward_ns() const { return median(forwards_); }

uint64_t PlanMeter::iteration_ns() const {
  return iterations_.empty() ? last_window_ns_ : median(iterations_);
}

void PlanMeter::begin_window() {
  last_window_ns_ = iteration_ns();
  iterations_.clear();
}

}  // namespace braid
