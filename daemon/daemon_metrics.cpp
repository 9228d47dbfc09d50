// SPDX-License-Identifier: Apache-2.0
#include "daemon/daemon_metrics.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <sys/resource.h>

#include "base/processor_time.h"
#include "coordinator/job_tuning.h"
#include "explain/findings_board.h"
#include "gpu/gpu_watch.h"
#include "loop/loop.h"
#include "metrics/gpu_samples.h"
#include "net/transport.h"
#include "operation/engine_pool.h"
#include "operation/job_board.h"
#include "planning/guard_board.h"

namespace braid {

namespace {

class Samples {
 public:
  void add(Metric metric, uint64_t value, std::vector<std::string> labels = {}) {
    add_real(metric, static_cast<double>(value), std::move(labels));
  }
  void add_real(Metric metric, double value, std::vector<std::string> labels) {
    samples_.push_back({metric, std::move(labels), value});
  }

  void add_seconds(Metric metric, uint64_t nanoseconds, std::vector<std::string> labels) {
    add_real(metric, static_cast<double>(nanoseconds) / 1e9, std::move(labels));
  }

  void add_gauges(const DaemonGauges& gauges) {
    add(Metric::Jobs, gauges.jobs);
    add(Metric::ClientConnections, gauges.client_connections);
    add(Metric::ControlPeers, gauges.control_peers);
    add(Metric::ControlMessages, gauges.control_messages_sent, {"sent"});
    add(Metric::ControlMessages, gauges.control_messages_received, {"received"});
    add(Metric::ControlReconnects, gauges.control_reconnects);
    add(Metric::ControlRejected, gauges.control_frames_rejected, {"frame"});
    add(Metric::ControlRejected, gauges.control_messages_rejected, {"message"});
    add(Metric::OperationsPending, gauges.operations_pending);
    add(Metric::OperationBytes, gauges.operation_bytes);
    add(Metric::ResultMemory, gauges.result_memory_bytes);
    if (const uint64_t max = gauges.result_memory_max; max != UINT64_MAX)
      add(Metric::ResultMemoryMax, max);
    add(Metric::RejectedConnections, gauges.rejected_clients, {"client"});
    add(Metric::RejectedConnections, gauges.rejected_peers, {"control"});
    add(Metric::DescriptorsClosing, gauges.descriptors_closing);
    for (uint8_t i = 0; i < kCollectiveCount; ++i) {
      add(Metric::Operations, gauges.operations[i], {to_string(static_cast<Collective>(i))});
    }
    for (uint8_t code = 1; code <= kStatusCodeMax; ++code) {
      add(Metric::JobFailures, gauges.job_failures[code],
          {reason_label(static_cast<StatusCode>(code))});
    }
  }

  void add_tuning(const TuningCounters& tuning) {
    add(Metric::TuneTrials, tuning.trials);
    add(Metric::TuneSteps, tuning.steps);
    add(Metric::TuneChanges, tuning.changes);
    add(Metric::TuneGain, static_cast<uint64_t>(std::lround(std::max(0.0, tuning.gain - 1) * 100)));
  }

  void add_guard(const GuardBoard& guard) {
    add(Metric::GuardPlainGroups, guard.plain_groups());
    for (const GuardBoard::Entry& entry : guard.entries()) {
      const std::vector<std::string> labels = {entry.job, entry.codec};
      if (entry.residual) add_real(Metric::CodecResidual, *entry.residual, labels);
      if (entry.cosine) add_real(Metric::CodecCosine, *entry.cosine, labels);
      add_real(Metric::CodecSaturation, entry.saturation, labels);
    }
  }

  void add_findings(const FindingsBoard& findings) {
    for (const FindingsBoard::Entry& entry : findings.entries())
      add_real(Metric::JobFinding, entry.ratio, {entry.job, entry.cause, entry.node, entry.rank});
  }

  void add_wire(const Transport& transport) {
    const TransportCounters wire = transport.counters();
    add(Metric::WireBytes, wire.bytes_sent, {"sent"});
    add(Metric::WireBytes, wire.bytes_received, {"received"});
    add(Metric::Chunks, wire.chunks_sent, {"sent"});
    add(Metric::Chunks, wire.chunks_received, {"received"});
    add(Metric::ChunksResent, wire.chunks_resent);
    add(Metric::ChunksSentTwice, wire.chunks_sent_twice);
    add(Metric::ChunksDiscarded, wire.chunks_rejected, {"rejected"});
    add(Metric::RejectedConnections, wire.strangers, {"transport"});
    for (const RailStatus& rail : transport.rails())
      add(Metric::RailUp, rail.is_up ? 1 : 0, {rail.name});
    add(Metric::Flows, wire.flows_open, {"open"});
    add(Metric::Flows, wire.flows_opening, {"opening"});
    add(Metric::Flows, wire.flows_failed, {"failed"});
    add(Metric::FlowFailures, wire.flow_failures);
    add(Metric::FlowsSilent, wire.flows_silent);
    add(Metric::FlowsReplaced, wire.flows_replaced);
  }

  void add_link(const LinkStatus& link) {
    add(Metric::LinkQueued, link.queued_bytes, {link.peer});
    for (const LinkStatus::Rail& rail : link.rails) {
      const std::vector<std::string> labels = {link.peer, rail.name};
      add(Metric::LinkBytes, rail.bytes_sent, {link.peer, rail.name, "sent"});
      add(Metric::LinkBytes, rail.bytes_received, {link.peer, rail.name, "received"});
      if (!rail.is_sent_on()) continue;
      add(Metric::LinkFlows, rail.flows_open, {link.peer, rail.name, "open"});
      add(Metric::LinkFlows, rail.flows_opening, {link.peer, rail.name, "opening"});
      add(Metric::LinkFlows, rail.flows_failed, {link.peer, rail.name, "failed"});
      add(Metric::LinkFlowFailures, rail.flow_failures, labels);
      add(Metric::LinkFlowReplacements, rail.flow_replacements, labels);
      add(Metric::LinkChunksReturned, rail.chunks_returned, labels);
      add(Metric::LinkChunksOverdue, rail.chunks_overdue, labels);
      add(Metric::LinkSegmentsResent, rail.segments_resent, labels);
      add(Metric::LinkUnacknowledged, rail.unacknowledged_bytes, labels);
      add_seconds(Metric::LinkOldest, rail.oldest_ns, labels);
      if (rail.path_round_trip_ns != 0)
        add_seconds(Metric::LinkPathRoundTrip, rail.path_round_trip_ns, labels);
      if (rail.flow_rates.empty()) continue;
      add_real(Metric::LinkSlowestFlow, rail.flow_rates.front(), labels);
      add_real(Metric::LinkMedianFlow, rail.flow_rates[rail.flow_rates.size() / 2], labels);
    }
  }

  void add_work(const JobTotals& job) {
    std::map<std::string, const WorkLoad*> placed;  // by work: of all ranks the latest
    for (const auto& [name, load] : job.work) {
      const std::vector<std::string> own = {job.name, std::to_string(load.rank), load.work};
      add_real(Metric::JobWorkLoad, load.seconds, own);
      add_real(Metric::JobWorkWait, load.wait_seconds, own);
      if (load.makespan_seconds == 0) continue;
      add_real(Metric::JobWorkPlanned, load.planned_seconds, own);
      const WorkLoad*& latest = placed[load.work];
      if (latest == nullptr || latest->told_ns < load.told_ns) latest = &load;
    }
    for (const auto& [work, load] : placed) {
      add_real(Metric::JobWorkMakespan, load->makespan_seconds, {job.name, work});
      add_real(Metric::JobWorkBound, load->bound_seconds, {job.name, work});
    }
  }

  void add_job(const JobTotals& job) {
    const std::vector<std::string> labels = {job.name};
    add(Metric::JobOperations, job.operations, labels);
    add(Metric::JobOperationBytes, job.operation_bytes, labels);
    add(Metric::JobOperationsPending, job.operations_pending, labels);
    add_seconds(Metric::JobOperationSeconds, job.submit_ns, {job.name, "submit"});
    add_seconds(Metric::JobOperationSeconds, job.ready_ns, {job.name, "ready"});
    add_seconds(Metric::JobOperationSeconds, job.run_ns, {job.name, "run"});
    add(Metric::JobResultMemory, job.result_memory_bytes, labels);
    add(Metric::JobArenaMemory, job.arena_memory_bytes, labels);
    add_messages(job.name, "sent", job.sends);
    add_messages(job.name, "received", job.receives);
    add_work(job);
    if (!job.plan && job.steps == 0) return;
    add(Metric::JobSteps, job.steps, labels);
    add_seconds(Metric::JobStepSeconds, job.step_ns, labels);
    add_seconds(Metric::JobExposedSeconds, job.exposed_ns, labels);
    for (const auto& [rank, times] : job.ranks) {
      const std::vector<std::string> own = {job.name, std::to_string(rank)};
      add_seconds(Metric::JobRankLateSeconds, times.late_ns, own);
      add_seconds(Metric::JobRankWaitSeconds, times.wait_ns, own);
    }
    if (job.plan) add_plan(*job.plan, labels);
  }

  void add_messages(const std::string& job, const std::string& direction,
                    const JobTotals::MessageEnds& ends) {
    const std::vector<std::string> labels = {job, direction};
    add(Metric::JobMessages, ends.ended, labels);
    add(Metric::JobMessageBytes, ends.bytes, labels);
    add(Metric::JobMessagesPending, ends.pending, labels);
  }

  void add_plan(const JobTotals::Plan& plan, const std::vector<std::string>& labels) {
    add(Metric::JobPlan, plan.number, labels);
    add(Metric::JobPlanGroups, plan.groups, labels);
    add(Metric::JobTuning, plan.is_tuning ? 1 : 0, labels);
    if (plan.predicted_ns != 0)
      add_seconds(Metric::JobIterationPredicted, plan.predicted_ns, labels);
    if (plan.iteration_ns != 0)
      add_seconds(Metric::JobIterationMeasured, plan.iteration_ns, labels);
  }

  void add_engines(const EnginePool& engines) {
    const EngineCounters engine = engines.counters();
    add(Metric::Units, engine.units_done);
    add(Metric::EngineBytes, engine.bytes_reduced, {"reduced"});
    add(Metric::EngineBytes, engine.bytes_copied, {"copied"});
    add(Metric::ChunksDiscarded, engine.chunks_duplicate, {"duplicate"});
    add(Metric::ChunksDiscarded, engine.chunks_stale, {"stale"});
    add(Metric::ChunksDiscarded, engine.chunks_malformed, {"malformed"});
  }

  void add_rounds(const Loop& loop) {
    const LoopCounters rounds = loop.counters();
    add(Metric::LoopRounds, rounds.rounds, {loop.name()});
    add(Metric::LoopLongRounds, rounds.long_rounds, {loop.name()});
    add_seconds(Metric::LoopLongestRound, rounds.longest_round_ns, {loop.name()});
    const PollingCounters polling = loop.polling_counters();
    add_seconds(Metric::PollingSeconds, polling.polled_ns, {loop.name()});
    add(Metric::Polls, polling.came, {loop.name(), "came"});
    add(Metric::Polls, polling.not_came, {loop.name(), "not_came"});
    add(Metric::Polls, polling.displaced, {loop.name(), "displaced"});
  }

  void add_gpus(const GpuReport& report, const std::vector<JobTotals>& jobs) {
    if (!report.gpus.empty() || report.silent_seconds > 0)
      add_real(Metric::GpuSilentSeconds, report.silent_seconds, {});
    for (MetricSample& sample : gpu_samples(report.gpus)) samples_.push_back(std::move(sample));
    std::map<int64_t, std::string> gpu_of_pid;
    for (const GpuFacts& gpu : report.gpus) {
      for (const GpuFacts::Process& process : gpu.processes)
        gpu_of_pid.emplace(process.pid, std::to_string(gpu.index));
    }
    for (const JobTotals& job : jobs) {
      for (const auto& [rank, times] : job.ranks) {
        const auto gpu = gpu_of_pid.find(static_cast<int64_t>(times.pid));
        if (times.pid != 0 && gpu != gpu_of_pid.end())
          add(Metric::JobRankGpu, 1, {job.name, std::to_string(rank), gpu->second});
      }
    }
  }

  void add_processor() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    add_real(Metric::ProcessorSeconds, seconds(used.ru_utime) + seconds(used.ru_stime), {});
  }

  std::vector<MetricSample> take() && { return std::move(samples_); }

 private:
  std::vector<MetricSample> samples_;
};

}  // namespace

std::vector<MetricSample> daemon_samples(const DaemonSources& sources) {
  Samples samples;
  samples.add_gauges(sources.gauges);
  samples.add_tuning(sources.tuning);
  samples.add_guard(sources.guard);
  samples.add_wire(sources.transport);
  for (const LinkStatus& link : sources.transport.link_statuses()) samples.add_link(link);
  const std::vector<JobTotals> jobs = sources.jobs.totals();
  for (const JobTotals& job : jobs) samples.add_job(job);
  if (sources.gpus != nullptr) samples.add_gpus(sources.gpus->report(), jobs);
  samples.add_findings(sources.findings);
  samples.add_engines(sources.engines);
  samples.add_processor();
  for (const Loop* loop : sources.loops) samples.add_rounds(*loop);
  return std::move(samples).take();
}

void add_numbers(DaemonStatus& status, const std::vector<FlowStatus>& flows,
                 const DaemonSources& sources) {
  const ProcessorTime time = processor_time();
  status.processor = {static_cast<double>(time.ran_ns) / 1e9,
                      static_cast<double>(time.waited_ns) / 1e9};
  for (const FlowStatus& flow : flows) {
    status.flows.push_back(
        {flow.peer, flow.outgoing ? "out" : "in", flow.io_loop, flow.flow, flow.rail, flow.state,
         flow.bytes_sent, flow.bytes_received, flow.failures, flow.error,
         static_cast<double>(flow.round_trip_ns) * 1e-6, flow.bytes_per_second,
         static_cast<double>(flow.path_round_trip_ns) * 1e-6, flow.segments_resent});
  }
  for (const MetricSample& sample : daemon_samples(sources)) {
    // Series of jobs include other users' jobs: `braidctl plan` has those of one's own.
    const MetricInfo& info = metric_info(sample.metric);
    // GPUs stand in the status by themselves.
    if (info.is_of_job() || info.is_of_gpu()) continue;
    std::string name(metric_info(sample.metric).name);
    for (const std::string& label : sample.label_values) name += "." + label;
    status.counters[name] += static_cast<uint64_t>(sample.value);
  }
}

}  // namespace braid
