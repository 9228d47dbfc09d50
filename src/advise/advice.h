// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "advise/codec_profile.h"
#include "advise/coded_cost.h"
#include "planner/plan.h"
#include "planner/planner.h"
#include "planner/workload.h"

namespace braid {

struct AdviceOptions {
  CodedCost::Options cost;
  PlannerOptions planning = {};
  // A codec pays if it saves this share of the step without one; one that loses more than another
  // one is preferred only if the shortest step saves so much of that one's.
  double margin = 0.03;
};

// Communication takes so much longer than predicted now and then. A codec whose communication just
// fits behind the backward pass may then not; one that leaves fewer bytes does.
inline constexpr double kCaution = 1.25;

// What one codec makes of the step, planned with its own cost.
struct AdviceRow {
  std::string codec;
  bool slows_training = false;  // CodecProfile
  double step_seconds = 0;
  double cautious_step_seconds = 0;        // the same groups, if all communication takes kCaution
  double step_after_backward_seconds = 0;  // all communication after backward: nothing overlaps
  double communication_seconds = 0;        // of all units, one after the other
  double encode_seconds = 0;  // encoding and decoding of one node, on all threads that encode
  double exposed_seconds = 0;
  double wire_bytes = 0;  // that one node sends
};

// One group of the plan that is made without a codec.
struct AdviceGroup {
  uint32_t begin = 0;  // tensors: places in Workload::tensors
  uint32_t end = 0;
  uint64_t bytes = 0;
  double exposed_seconds = 0;   // of its communication, what backward does not hide
  std::vector<double> seconds;  // of its communication, by row
  // The row that is recommended for its communication, among those that lose no more than the one
  // that is recommended for the step.
  size_t codec = 0;
};

struct Advice {
  std::vector<AdviceRow> rows;  // [0]: no codec
  size_t recommended = 0;       // a row
  std::vector<AdviceGroup> groups;
  // The step of that plan if each group has its own recommendation.
  double step_by_group_seconds = 0;
};

// `wire` consists of lines. `codecs` without "none"; rows keep their order. Each row's groups are
// planned with its own cost.
Advice advise(const Workload& workload, const CostModel& wire, std::span<const CodecProfile> codecs,
              const Planner& planner, const AdviceOptions& options);

// Which one to take. [0] is no codec: where the shortest step saves less than the share `margin` of
// that one, it is taken. Else the codec that loses least among those of whose cautious step the
// shortest one saves less than that: lossless ones first, then those that leave the most bytes.
size_t choose_codec(std::span<const double> seconds, std::span<const double> cautious_seconds,
                    std::span<const CodecProfile> codecs, double margin);

// The step with one codec; what bandwidth_sweep.h asks many times.
AdviceRow advise_codec(const Workload& workload, const CostModel& wire, const CodecProfile& codec,
                       const Planner& planner, const AdviceOptions& options);

}  // namespace braid
