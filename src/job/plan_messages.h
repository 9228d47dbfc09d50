// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "job/control_messages.h"
#include "proto/control_generated.h"
#include "proto/types.h"

namespace braid {

// What a node has measured of one set: see PlanReport. Vectors by tensor, all of one length.
struct PlanReport {
  struct Unit {
    uint64_t operation = 0;  // the same on all nodes
    uint64_t bytes = 0;
    uint64_t nanoseconds = 0;
  };
  uint64_t job_key = 0;
  uint64_t set = 0;
  uint32_t plan = 0;
  uint64_t step = 0;
  std::vector<uint64_t> tensors;
  std::vector<uint64_t> counts;
  std::vector<DataType> dtypes;
  std::vector<uint64_t> ready_ns;
  uint64_t forward_ns = 0;
  uint64_t iteration_ns = 0;
  std::vector<Unit> units;
};
struct PlanProposal {
  uint64_t job_key = 0;
  uint64_t set = 0;
  uint32_t number = 0;
  uint64_t from_step = 0;
  std::vector<std::vector<uint64_t>> groups;  // hashes
  std::string planner;
  uint64_t predicted_ns = 0;
  std::string cost;  // JSON
};
ControlBuffer make_plan_report(const PlanReport& report);
ControlBuffer make_plan_proposal(const PlanProposal& proposal);
ControlBuffer make_plan_answer(const PlanProposal& proposal, bool accepted, uint64_t step);
ControlBuffer make_plan_verdict(const PlanProposal& proposal, bool holds);
// Lengths that contradict each other and numbers out of range are errors.
Result<PlanReport> parse_plan_report(const proto::PlanReport& message);
Result<PlanProposal> parse_plan_proposal(const proto::PlanProposal& message);

}  // namespace braid
