// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/log.h"
#include "messages/plan_messages.h"
#include "operation/job_numbers.h"
#include "planning/carry_meter.h"
#include "planning/finite_look.h"
#include "planning/operation_meter.h"
#include "planning/plan_set.h"
#include "planning/set_rhythm.h"

namespace braid {

// What the plans of a job ask of it.
struct PlanActions {
  std::function<Status(ControlBuffer&)> send;  // to the coordinator
  // The first step that goes with these settings begins. Streams, flows and window of 0: as
  // configured.
  std::function<void(const TransferSettings&)> use = [](const TransferSettings&) {};
  // Links will be asked for so many flows.
  std::function<void(uint32_t flows)> add_flows = [](uint32_t) {};
  // Makes what this node is to keep of a set: see SetMemory.
  std::function<Result<PlanSet::Kept>(const PlanSet&)> keep = [](const PlanSet& set) {
    PlanSet::Kept kept;
    kept.coded.resize(set.codecs().size(), std::make_shared<const CodedTensors>());
    return kept;
  };
  // What this node has done so far, for all jobs.
  std::function<CarriedWork()> work = [] { return CarriedWork(); };
};

// What the sets of one job share on this node. Control loop only.
struct PlanJob {
  const JobLabel label;
  const uint64_t key;
  const uint32_t nodes;
  const std::vector<uint32_t> local_ranks;
  const PlanActions actions;
  const uint32_t sample_every_steps;  // see JobStart
  const std::shared_ptr<JobNumbers> numbers;
  std::vector<NotFiniteSteps> not_finite;  // by local rank
  OperationMeter operation_meter;
  CarryMeter carry_meter;
  SetRhythm rhythm;
};

}  // namespace braid
