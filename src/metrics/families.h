// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace braid {

// Every metric of braidd; families.cpp says what each is. Names and labels are an interface:
// dashboards and alerts rely on them.
enum class Metric : uint8_t {
  BuildInfo,
  StartTime,
  Jobs,
  JobsMax,
  ClientConnections,
  ControlPeers,
  ControlMessages,
  ControlReconnects,
  ControlRejected,
  OperationsPending,
  Operations,
  OperationBytes,
  ResultMemory,
  ResultMemoryMax,
  Units,
  EngineBytes,
  WireBytes,
  Chunks,
  ChunksResent,
  ChunksSentTwice,
  ChunksDiscarded,
  RailUp,
  Flows,
  FlowFailures,
  FlowsSilent,
  FlowsReplaced,
  LinkBytes,
  LinkFlows,
  LinkFlowFailures,
  LinkFlowReplacements,
  LinkChunksReturned,
  LinkChunksOverdue,
  LinkSegmentsResent,
  LinkUnacknowledged,
  LinkOldest,
  LinkPathRoundTrip,
  LinkSlowestFlow,
  LinkMedianFlow,
  LinkQueued,
  JobOperations,
  JobOperationBytes,
  JobOperationsPending,
  JobOperationSeconds,
  JobMessages,
  JobMessageBytes,
  JobMessagesPending,
  JobSteps,
  JobStepSeconds,
  JobExposedSeconds,
  JobRankLateSeconds,
  JobRankWaitSeconds,
  JobPlan,
  JobPlanGroups,
  JobIterationPredicted,
  JobIterationMeasured,
  JobTuning,
  JobFinding,
  JobWorkLoad,
  JobWorkPlanned,
  JobWorkWait,
  JobWorkMakespan,
  JobWorkBound,
  JobResultMemory,
  JobArenaMemory,
  JobFailures,
  RejectedConnections,
  DescriptorsClosing,
  DescriptorsClosingMax,
  TuneTrials,
  TuneSteps,
  TuneChanges,
  TuneGain,
  GuardPlainGroups,
  CodecResidual,
  CodecCosine,
  CodecSaturation,
  ProcessorSeconds,
  LoopRounds,
  LoopLongRounds,
  LoopLongestRound,
  PollingSeconds,
  Polls,
  GpuInfo,
  GpuUp,
  GpuSilentSeconds,
  GpuClock,
  GpuClockMax,
  GpuSlowed,
  GpuTemperature,
  GpuPower,
  GpuPowerLimit,
  GpuUtilization,
  GpuMemoryUsed,
  GpuMemory,
  GpuEccErrors,
  GpuXidErrors,
  GpuPcieWidth,
  GpuPcieWidthMax,
  GpuPcieGeneration,
  GpuPcieGenerationMax,
  GpuPcieReplays,
  GpuProcesses,
  JobRankGpu,
};

struct MetricInfo {
  Metric metric;
  std::string_view name;
  bool is_counter = false;  // else a gauge
  std::vector<std::string_view> labels;
  // Values of the only label, when they are few and known. Counters then begin at 0 for each of
  // them: rate() would miss the first event otherwise.
  std::vector<std::string_view> label_values;
  std::string_view help;

  // Its samples name jobs, and may be negative or parts of 1.
  bool is_of_job() const { return !labels.empty() && labels.front() == "training_job"; }
  bool is_of_gpu() const { return name.starts_with("braid_gpu_"); }
};

std::span<const MetricInfo> metric_infos();  // in the order of the enum
const MetricInfo& metric_info(Metric metric);

// A number that somebody's counter has right now. Samples of the same metric and labels are added
// up, so every I/O loop may give its own.
struct MetricSample {
  Metric metric;
  std::vector<std::string> label_values;  // as many as the metric has labels
  double value = 0;
};

// Asked at every scrape, on a thread of the metrics server: must be safe to call from any thread,
// fast, and without waiting for a loop; reads atomics.
using MetricsSource = std::function<std::vector<MetricSample>()>;

// "job_failed" for the label `reason`.
std::string reason_label(StatusCode code);

// The table of docs/reference.md.
std::string print_metrics_markdown();

}  // namespace braid
