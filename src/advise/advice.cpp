// SPDX-License-Identifier: Apache-2.0
#include "advise/advice.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "planner/pieces.h"
#include "planner/simulator.h"

namespace braid {
namespace {

Plan plan_with(const Workload& workload, const CostModel& cost, const Planner& planner,
               const AdviceOptions& options) {
  return planner.plan(workload, cost, options.planning);
}

Timeline play(const Workload& workload, const Plan& plan, const CostModel& cost,
              const AdviceOptions& options) {
  SimulatorOptions simulator;
  simulator.streams = options.planning.streams;
  return simulate(workload, plan, cost, simulator);
}

uint64_t group_bytes(const Workload& workload, const Plan::Group& group) {
  uint64_t bytes = 0;
  for (uint32_t i = group.begin; i < group.end; ++i) bytes += workload.tensors[i].bytes;
  return bytes;
}

// Nothing can be sent before backward has ended.
Workload after_backward(Workload workload) {
  const double end = workload.backward_seconds();
  for (Workload::Tensor& tensor : workload.tensors) tensor.ready_seconds = end;
  return workload;
}

// In the order in which choose_codec() asks them.
bool loses_less(const CodecProfile& one, const CodecProfile& other) {
  if (one.is_lossless != other.is_lossless) return one.is_lossless;
  return one.part_share > other.part_share;
}

// Each unit takes what the codec that is recommended for its size takes: none that loses more than
// the one that is recommended for the whole step.
class CostByGroup final : public CostModel {
 public:
  CostByGroup(std::span<const CodedCost> costs, std::span<const CodecProfile> codecs,
              size_t recommended, double margin)
      : costs_(costs), codecs_(codecs), recommended_(recommended), margin_(margin) {}
  size_t codec_for(uint64_t bytes) const {
    std::vector<double> seconds = {costs_[0].seconds(bytes)};
    for (size_t i = 1; i < costs_.size(); ++i) {
      seconds.push_back(may_take(i) ? costs_[i].seconds(bytes)
                                    : std::numeric_limits<double>::infinity());
    }
    return choose_codec(seconds, seconds, codecs_, margin_);
  }
  Phases phases(uint64_t bytes) const override { return costs_[codec_for(bytes)].phases(bytes); }
  double slowdown(uint32_t transfers) const override {
    double most = 1;
    for (const CodedCost& cost : costs_) most = std::max(most, cost.slowdown(transfers));
    return most;
  }

 private:
  bool may_take(size_t row) const {
    return recommended_ > 0 && !loses_less(codecs_[recommended_ - 1], codecs_[row - 1]);
  }

  std::span<const CodedCost> costs_;
  std::span<const CodecProfile> codecs_;
  size_t recommended_;
  double margin_;
};

AdviceGroup advise_group(const Workload& workload, const Plan::Group& group,
                         std::span<const CodedCost> costs, const CostByGroup& by_group) {
  AdviceGroup advice;
  advice.begin = group.begin;
  advice.end = group.end;
  advice.bytes = group_bytes(workload, group);
  for (const CodedCost& cost : costs) {
    double seconds = 0;
    for (uint32_t piece = 0; piece < group.pieces; ++piece) {
      seconds += cost.seconds(piece_bytes(advice.bytes, group.pieces, piece));
    }
    advice.seconds.push_back(seconds);
  }
  advice.codec = by_group.codec_for(piece_bytes(advice.bytes, group.pieces, 0));
  return advice;
}

}  // namespace

size_t choose_codec(std::span<const double> seconds, std::span<const double> cautious_seconds,
                    std::span<const CodecProfile> codecs, double margin) {
  const auto is_beaten = [margin](std::span<const double> all, size_t row) {
    const double shortest = std::ranges::min(all);
    return shortest < all[row] && shortest <= all[row] * (1 - margin);
  };
  if (!is_beaten(seconds, 0)) return 0;
  std::vector<size_t> order(codecs.size());
  std::iota(order.begin(), order.end(), size_t{1});
  std::ranges::stable_sort(
      order, [&codecs](size_t a, size_t b) { return loses_less(codecs[a - 1], codecs[b - 1]); });
  const auto with_codec = cautious_seconds.subspan(1);
  return *std::ranges::find_if_not(order,
                                   [&](size_t row) { return is_beaten(with_codec, row - 1); });
}

AdviceRow advise_codec(const Workload& workload, const CostModel& wire, const CodecProfile& codec,
                       const Planner& planner, const AdviceOptions& options) {
  const CodedCost cost(wire, codec, options.cost);
  const Plan plan = plan_with(workload, cost, planner, options);
  const Timeline timeline = play(workload, plan, cost, options);
  AdviceRow row;
  row.codec = codec.name;
  row.slows_training = codec.slows_training;
  row.step_seconds = timeline.iteration_seconds;
  row.exposed_seconds = timeline.exposed_seconds;
  CodedCost::Options cautious = options.cost;
  cautious.transfer_factor *= kCaution;
  cautious.encode_threads /= kCaution;
  row.cautious_step_seconds =
      play(workload, plan, CodedCost(wire, codec, cautious), options).iteration_seconds;
  const Workload late = after_backward(workload);
  row.step_after_backward_seconds =
      play(late, plan_with(late, cost, planner, options), cost, options).iteration_seconds;
  for (const Plan::Group& group : plan.groups) {
    const uint64_t bytes = group_bytes(workload, group);
    for (uint32_t piece = 0; piece < group.pieces; ++piece) {
      const uint64_t unit = piece_bytes(bytes, group.pieces, piece);
      row.communication_seconds += cost.seconds(unit);
      row.encode_seconds +=
          codec.coding_seconds(static_cast<double>(unit)) / options.cost.encode_threads;
    }
  }
  const double others = (options.cost.nodes - 1.0) / options.cost.nodes;
  row.wire_bytes = 2 * others * codec.wire_share() * static_cast<double>(workload.bytes());
  return row;
}

Advice advise(const Workload& workload, const CostModel& wire, std::span<const CodecProfile> codecs,
              const Planner& planner, const AdviceOptions& options) {
  Advice advice;
  std::vector<CodedCost> costs;
  std::vector<double> steps, cautious_steps;
  const auto add = [&](const CodecProfile& codec) {
    advice.rows.push_back(advise_codec(workload, wire, codec, planner, options));
    costs.emplace_back(wire, codec, options.cost);
    steps.push_back(advice.rows.back().step_seconds);
    cautious_steps.push_back(advice.rows.back().cautious_step_seconds);
  };
  add(CodecProfile());
  for (const CodecProfile& codec : codecs) add(codec);
  advice.recommended = choose_codec(steps, cautious_steps, codecs, options.margin);

  const CostByGroup by_group(costs, codecs, advice.recommended, options.margin);
  const Plan plan = plan_with(workload, costs.front(), planner, options);
  for (const Plan::Group& group : plan.groups) {
    advice.groups.push_back(advise_group(workload, group, costs, by_group));
  }
  const Timeline plain = play(workload, plan, costs.front(), options);
  for (const Timeline::Unit& unit : plain.units) {
    const double from = std::max(unit.start_seconds, plain.backward_seconds);
    advice.groups[unit.group].exposed_seconds += std::max(unit.end_seconds - from, 0.0);
  }
  advice.step_by_group_seconds = play(workload, plan, by_group, options).iteration_seconds;
  return advice;
}

}  // namespace braid
