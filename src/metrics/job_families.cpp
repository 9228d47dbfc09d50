// SPDX-License-Identifier: Apache-2.0
#include "metrics/all_families.h"

namespace braid {
namespace {

std::vector<MetricInfo> job_operation_infos() {
  return {
      {Metric::JobOperations,
       "braid_job_operations_total",
       true,
       {"training_job"},
       {},
       "Operations of the job that ended well on this node."},
      {Metric::JobOperationBytes,
       "braid_job_operation_bytes_total",
       true,
       {"training_job"},
       {},
       "Bytes of the results of the job's operations that ended well."},
      {Metric::JobOperationsPending,
       "braid_job_operations_pending",
       false,
       {"training_job"},
       {},
       "Operations of the job that a local rank has submitted and that have not ended."},
      {Metric::JobOperationSeconds,
       "braid_job_operation_seconds_total",
       true,
       {"training_job", "phase"},
       {},
       "Time of the job's successful operations, summed per operation (overlap counts twice), by "
       "phase: submit, waiting for this node's other ranks; ready, waiting for the nodes that it "
       "is sent to; run, until its result is there."},
  };
}

std::vector<MetricInfo> job_message_infos() {
  return {
      {Metric::JobMessages,
       "braid_job_messages_total",
       true,
       {"training_job", "direction"},
       {},
       "Messages between two ranks of the job that ranks of this node have sent or received."},
      {Metric::JobMessageBytes,
       "braid_job_message_bytes_total",
       true,
       {"training_job", "direction"},
       {},
       "Bytes of the messages that ranks of this node have sent or received."},
      {Metric::JobMessagesPending,
       "braid_job_messages_pending",
       false,
       {"training_job", "direction"},
       {},
       "Sends (sent) and receives (received) of this node's ranks that have not ended. braidctl "
       "pending says whom each of them waits for."},
  };
}

std::vector<MetricInfo> job_step_infos() {
  return {
      {Metric::JobSteps,
       "braid_job_steps_total",
       true,
       {"training_job"},
       {},
       "Steps of the job's planned tensors that have ended on this node: the last result is "
       "there."},
      {Metric::JobStepSeconds,
       "braid_job_step_seconds_total",
       true,
       {"training_job"},
       {},
       "Time of the job's steps: each from the end of the step before, the first one from its "
       "first submission."},
      {Metric::JobExposedSeconds,
       "braid_job_exposed_seconds_total",
       true,
       {"training_job"},
       {},
       "The part of the steps' time in which trainers wait for the network, or for late ranks of "
       "other nodes: from the last gradient of this node (or from the end of the step before if "
       "that is later) to the last result."},
      {Metric::JobRankLateSeconds,
       "braid_job_rank_late_seconds_total",
       true,
       {"training_job", "rank"},
       {},
       "How much later than the first rank of this node a rank submits its last gradient of a "
       "step, summed over all steps."},
      {Metric::JobRankWaitSeconds,
       "braid_job_rank_wait_seconds_total",
       true,
       {"training_job", "rank"},
       {},
       "How long a rank of this node waits, from its last gradient of a step to the last result, "
       "summed over all steps. A late rank waits least, also among ranks of different nodes."},
  };
}

std::vector<MetricInfo> job_plan_infos() {
  return {
      {Metric::JobPlan,
       "braid_job_plan",
       false,
       {"training_job"},
       {},
       "Number of the plan of the step that ended last; 0: the plan that every set begins with."},
      {Metric::JobPlanGroups,
       "braid_job_plan_groups",
       false,
       {"training_job"},
       {},
       "Groups of the plan of the step that ended last."},
      {Metric::JobIterationPredicted,
       "braid_job_iteration_predicted_seconds",
       false,
       {"training_job"},
       {},
       "Predicted time of an iteration, with the latest plan that was made for it."},
      {Metric::JobIterationMeasured,
       "braid_job_iteration_measured_seconds",
       false,
       {"training_job"},
       {},
       "Measured time of an iteration, the median of the latest steps."},
      {Metric::JobTuning,
       "braid_job_tuning",
       false,
       {"training_job"},
       {},
       "1: the step that ended last was measured for the tuner; 0: its settings hold."},
      {Metric::JobFinding,
       "braid_job_finding_ratio",
       false,
       {"training_job", "cause", "node", "rank"},
       {},
       "Causes that bound the job's steps, as braidctl explain finds them: the largest share of a "
       "step that the cause costs; node and rank are empty if the cause has none. On the node of "
       "the job's first rank."},
  };
}

std::vector<MetricInfo> job_work_infos() {
  return {
      {Metric::JobWorkLoad,
       "braid_job_work_load_seconds",
       false,
       {"training_job", "rank", "work"},
       {},
       "Placed work, such as K-FAC's inverses: how long a rank of this node computes its items in "
       "an update, as its trainer has told last. Largest over mean of all ranks is the imbalance."},
      {Metric::JobWorkPlanned,
       "braid_job_work_planned_seconds",
       false,
       {"training_job", "rank", "work"},
       {},
       "How long the rank was to compute its items, by the latest placement."},
      {Metric::JobWorkWait,
       "braid_job_work_wait_seconds",
       false,
       {"training_job", "rank", "work"},
       {},
       "How long the rank waits in an update for items that other ranks compute."},
      {Metric::JobWorkMakespan,
       "braid_job_work_makespan_seconds",
       false,
       {"training_job", "work"},
       {},
       "When all ranks have all items of an update, by the latest placement."},
      {Metric::JobWorkBound,
       "braid_job_work_bound_seconds",
       false,
       {"training_job", "work"},
       {},
       "No placement has a smaller makespan, at the costs of the latest one."},
  };
}

std::vector<MetricInfo> job_memory_infos() {
  return {
      {Metric::JobResultMemory,
       "braid_job_result_memory_bytes",
       false,
       {"training_job"},
       {},
       "Memory that is reserved for results of the job."},
      {Metric::JobArenaMemory,
       "braid_job_arena_memory_bytes",
       false,
       {"training_job"},
       {},
       "Memory that the input arenas of the job's ranks on this node hold."},
  };
}

}  // namespace

std::vector<MetricInfo> job_infos() {
  std::vector<MetricInfo> all;
  for (const auto& infos : {job_operation_infos(), job_message_infos(), job_step_infos(),
                            job_plan_infos(), job_work_infos(), job_memory_infos()})
    all.insert(all.end(), infos.begin(), infos.end());
  return all;
}

}  // namespace braid
