// SPDX-License-Identifier: Apache-2.0
#include "metrics/all_families.h"

namespace braid {
namespace {

std::vector<MetricInfo> job_operation_infos() {
  return {
      {Metric::JobOperations,
       "braid_job_operations_total",
       true,
       {"job"},
       {},
       "Operations of the job that ended well on this node."},
      {Metric::JobOperationBytes,
       "braid_job_operation_bytes_total",
       true,
       {"job"},
       {},
       "Bytes of their results."},
      {Metric::JobOperationsPending,
       "braid_job_operations_pending",
       false,
       {"job"},
       {},
       "Operations of the job that a local rank has submitted and that have not ended."},
      {Metric::JobOperationSeconds,
       "braid_job_operation_seconds_total",
       true,
       {"job", "phase"},
       {},
       "What its operations that ended well took, those at the same time each for itself: submit, "
       "until the last rank of this node had submitted it; ready, until the nodes that it is sent "
       "to were ready; run, until its result was there."},
  };
}

std::vector<MetricInfo> job_step_infos() {
  return {
      {Metric::JobSteps,
       "braid_job_steps_total",
       true,
       {"job"},
       {},
       "Steps of its planned tensors that have ended on this node: the last result is there."},
      {Metric::JobStepSeconds,
       "braid_job_step_seconds_total",
       true,
       {"job"},
       {},
       "What these steps took, each from the end of the step before, the first one from its first "
       "submission."},
      {Metric::JobExposedSeconds,
       "braid_job_exposed_seconds_total",
       true,
       {"job"},
       {},
       "Of that, from the last gradient of this node, or from the end of the step before if that "
       "is later, to the last result: what its trainers wait for the network, and for ranks of "
       "other nodes that are late."},
      {Metric::JobRankLateSeconds,
       "braid_job_rank_late_seconds_total",
       true,
       {"job", "rank"},
       {},
       "How much later than the first rank of this node a rank has submitted its last gradient of "
       "a step, over all steps."},
      {Metric::JobRankWaitSeconds,
       "braid_job_rank_wait_seconds_total",
       true,
       {"job", "rank"},
       {},
       "What a rank of this node has waited for, from its last gradient of a step to the last "
       "result, over all steps. Who is late waits least, also among ranks of different nodes."},
  };
}

std::vector<MetricInfo> job_plan_infos() {
  return {
      {Metric::JobPlan,
       "braid_job_plan",
       false,
       {"job"},
       {},
       "Number of the plan that the step which ended last has followed; 0: the one that every set "
       "begins with."},
      {Metric::JobPlanGroups, "braid_job_plan_groups", false, {"job"}, {}, "Groups of that plan."},
      {Metric::JobIterationPredicted,
       "braid_job_iteration_predicted_seconds",
       false,
       {"job"},
       {},
       "What an iteration takes by prediction, with the latest plan that was made for it."},
      {Metric::JobIterationMeasured,
       "braid_job_iteration_measured_seconds",
       false,
       {"job"},
       {},
       "What it takes, the median of the latest steps."},
      {Metric::JobTuning,
       "braid_job_tuning",
       false,
       {"job"},
       {},
       "1: the step that ended last was measured for the tuner; 0: its settings hold."},
      {Metric::JobFinding,
       "braid_job_finding_ratio",
       false,
       {"job", "cause", "node", "rank"},
       {},
       "What bounds the steps of the job by braidctl explain, and which share of a step it costs "
       "at "
       "most; node and rank: of whom it speaks, where it does. On the node of the job's first "
       "rank."},
  };
}

std::vector<MetricInfo> job_memory_infos() {
  return {
      {Metric::JobResultMemory,
       "braid_job_result_memory_bytes",
       false,
       {"job"},
       {},
       "Memory that is reserved for results of the job."},
      {Metric::JobArenaMemory,
       "braid_job_arena_memory_bytes",
       false,
       {"job"},
       {},
       "Memory that the input arenas of its ranks on this node hold."},
  };
}

}  // namespace

std::vector<MetricInfo> job_infos() {
  std::vector<MetricInfo> all;
  for (const auto& infos :
       {job_operation_infos(), job_step_infos(), job_plan_infos(), job_memory_infos()})
    all.insert(all.end(), infos.begin(), infos.end());
  return all;
}

}  // namespace braid
