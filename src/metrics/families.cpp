// SPDX-License-Identifier: Apache-2.0
#include "metrics/families.h"

#include <algorithm>
#include <cctype>

#include <fmt/ranges.h>

#include "metrics/all_families.h"
#include "proto/types.h"

namespace braid {
namespace {

std::vector<std::string_view> collective_labels() {
  std::vector<std::string_view> labels;
  for (uint8_t i = 0; i < kCollectiveCount; ++i) {
    labels.emplace_back(to_string(static_cast<Collective>(i)));
  }
  return labels;
}

std::vector<std::string_view> reason_labels() {
  static const std::vector<std::string> labels = [] {
    std::vector<std::string> all;
    for (uint8_t code = 1; code <= kStatusCodeMax; ++code) {
      all.push_back(reason_label(static_cast<StatusCode>(code)));
    }
    return all;
  }();
  return {labels.begin(), labels.end()};
}

std::vector<MetricInfo> daemon_infos() {
  return {
      {Metric::BuildInfo,
       "braid_build_info",
       false,
       {"version", "ucx"},
       {},
       "Always 1; the labels say what runs."},
      {Metric::StartTime,
       "braid_start_time_seconds",
       false,
       {},
       {},
       "When the daemon started, in seconds since 1970."},
      {Metric::Jobs, "braid_jobs", false, {}, {}, "Jobs with ranks on this node."},
      {Metric::JobsMax, "braid_jobs_max", false, {}, {}, "The most jobs that there may be."},
      {Metric::ClientConnections,
       "braid_client_connections",
       false,
       {},
       {},
       "Connections to the Unix socket."},
      {Metric::ControlPeers,
       "braid_control_peers",
       false,
       {},
       {},
       "Other daemons that this one is connected to."},
      {Metric::ControlMessages,
       "braid_control_messages_total",
       true,
       {"direction"},
       {"sent", "received"},
       "Messages to and from daemons on control.port, those to itself included; no heartbeats."},
      {Metric::ControlReconnects,
       "braid_control_reconnects_total",
       true,
       {},
       {},
       "Times that a broken or silent connection to another daemon was replaced; no job failed for "
       "it."},
      {Metric::ControlRejected,
       "braid_control_rejected_total",
       true,
       {"what"},
       {"frame", "message"},
       "Dropped messages of other daemons: frames that were changed or inserted on the way, and "
       "messages about a job that their sender may not send."},
  };
}

std::vector<MetricInfo> operation_infos() {
  return {
      {Metric::OperationsPending,
       "braid_operations_pending",
       false,
       {},
       {},
       "Operations that a local rank has submitted and that have not ended."},
      {Metric::Operations,
       "braid_operations_total",
       true,
       {"collective"},
       collective_labels(),
       "Operations that ended well on this node, each counted once per node."},
      {Metric::OperationBytes,
       "braid_operation_bytes_total",
       true,
       {},
       {},
       "Bytes of the results of the operations that ended well."},
      {Metric::ResultMemory,
       "braid_result_memory_bytes",
       false,
       {},
       {},
       "Memory that is reserved for results of all jobs."},
      {Metric::ResultMemoryMax,
       "braid_result_memory_max_bytes",
       false,
       {},
       {},
       "The most that braid_result_memory_bytes may be: collective.result_memory_max, or what the "
       "machine allows."},
      {Metric::Units, "braid_units_total", true, {}, {}, "Units finished on this node."},
      {Metric::EngineBytes,
       "braid_engine_bytes_total",
       true,
       {"work"},
       {},
       "Bytes that the engines have written: reduced, sums of parts; copied, what they wrote as it "
       "came or lay."},
  };
}

std::vector<MetricInfo> chunk_infos() {
  return {
      {Metric::WireBytes,
       "braid_wire_bytes_total",
       true,
       {"direction"},
       {"sent", "received"},
       "Payload of chunks on all flows, including chunks that were sent again."},
      {Metric::Chunks,
       "braid_chunks_total",
       true,
       {"direction"},
       {"sent", "received"},
       "Chunks on all flows, including those sent again."},
      {Metric::ChunksResent,
       "braid_chunks_resent_total",
       true,
       {},
       {},
       "Chunks sent again because their flow had died."},
      {Metric::ChunksSentTwice,
       "braid_chunks_sent_twice_total",
       true,
       {},
       {},
       "Chunks that were overdue, so they were sent over another flow, too."},
      {Metric::ChunksDiscarded,
       "braid_chunks_discarded_total",
       true,
       {"reason"},
       {"duplicate", "stale", "malformed", "rejected"},
       "Chunks that arrived and were not used: they came twice, belong to an operation that is "
       "over, have impossible numbers, or lack the flow's token."},
  };
}

std::vector<MetricInfo> flow_infos() {
  return {
      {Metric::RailUp,
       "braid_rail_up",
       false,
       {"rail"},
       {},
       "1: the rail is switched on and has a carrier; 0: it carries nothing."},
      {Metric::Flows,
       "braid_flows",
       false,
       {"state"},
       {"open", "opening", "failed"},
       "Flows by state: open (from and to other nodes), being opened, and failed (from here; they "
       "wait for their next try or for their rail)."},
      {Metric::FlowFailures,
       "braid_flow_failures_total",
       true,
       {},
       {},
       "Flows that died or could not be opened."},
      {Metric::FlowsSilent,
       "braid_flow_silences_total",
       true,
       {},
       {},
       "Flows that were given up because no chunk on them was acknowledged any more; "
       "braid_flow_failures_total counts them, too."},
      {Metric::FlowsReplaced,
       "braid_flow_replacements_total",
       true,
       {},
       {},
       "Flows that were opened again because they stayed slower than half of their link's median."},
  };
}

std::vector<MetricInfo> trouble_infos() {
  return {
      {Metric::JobFailures,
       "braid_job_failures_total",
       true,
       {"reason"},
       reason_labels(),
       "Jobs that ended with an error, by its code."},
      {Metric::RejectedConnections,
       "braid_rejected_connections_total",
       true,
       {"door"},
       {"client", "control", "transport"},
       "Connections that were refused or dropped for a wrong or missing message: on the Unix "
       "socket, on control.port, or as a flow."},
      {Metric::DescriptorsClosing,
       "braid_descriptors_closing",
       false,
       {},
       {},
       "Descriptors that clients have sent and that are still to be closed."},
      {Metric::DescriptorsClosingMax,
       "braid_descriptors_closing_max",
       false,
       {},
       {},
       "The most descriptors that may wait to be closed; then no further client is let in."},
  };
}

std::vector<MetricInfo> tuning_infos() {
  return {
      {Metric::TuneTrials,
       "braid_tune_trials_total",
       true,
       {},
       {},
       "Trials of settings that were measured, in jobs that this node coordinates."},
      {Metric::TuneSteps,
       "braid_tune_steps_total",
       true,
       {},
       {},
       "Steps that were measured for trials of settings."},
      {Metric::TuneChanges,
       "braid_tune_changes_total",
       true,
       {},
       {},
       "Changes of settings that all nodes have agreed on, in jobs that this node coordinates."},
      {Metric::TuneGain,
       "braid_tune_gain_percent",
       false,
       {},
       {},
       "How much longer a step takes with the configured settings than with the chosen ones, by "
       "the tuning that ended last; 0: nothing better was found, or no tuning has ended."},
  };
}

std::vector<MetricInfo> guard_infos() {
  return {
      {Metric::GuardPlainGroups,
       "braid_guard_plain_groups_total",
       true,
       {},
       {},
       "Groups of tensors that went back to plain elements because their codec lost too much, in "
       "jobs that this node coordinates."},
      {Metric::CodecResidual,
       "braid_codec_residual_ratio",
       false,
       {"training_job", "codec"},
       {},
       "Norm of the codec's error memory, in norms of the gradient: the largest of all groups' "
       "latest measurements, in jobs that this node coordinates."},
      {Metric::CodecCosine,
       "braid_codec_cosine",
       false,
       {"training_job", "codec"},
       {},
       "Cosine between the sum that all ranks get and the exact sum, estimated: the smallest of "
       "all groups' latest measurements, in jobs that this node coordinates."},
      {Metric::CodecSaturation,
       "braid_codec_saturation_ratio",
       false,
       {"training_job", "codec"},
       {},
       "Share of elements that the codec cannot send: the largest of all groups' latest "
       "measurements, in jobs that this node coordinates."},
  };
}

std::vector<MetricInfo> loop_infos() {
  return {
      {Metric::ProcessorSeconds,
       "braid_processor_seconds_total",
       true,
       {},
       {},
       "Processor time of braidd, all of its threads, in user space and in the kernel."},
      {Metric::LoopRounds,
       "braid_loop_rounds_total",
       true,
       {"loop"},
       {},
       "Loop rounds: times that the loop was woken, or found something when it polled "
       "(braid_polls_total)."},
      {Metric::LoopLongRounds,
       "braid_loop_long_rounds_total",
       true,
       {"loop"},
       {},
       "Loop rounds of more than 5 ms, computing or blocked. Processor time that other threads, or "
       "other guests of a virtual machine, took meanwhile does not count."},
      {Metric::LoopLongestRound,
       "braid_loop_longest_round_seconds",
       false,
       {"loop"},
       {},
       "The longest loop round of more than 5 ms since the daemon started; 0: there was none."},
      {Metric::PollingSeconds,
       "braid_polling_seconds_total",
       true,
       {"loop"},
       {},
       "Time that a loop has polled before it slept (node.polling). It yields the processor "
       "meanwhile."},
      {Metric::Polls,
       "braid_polls_total",
       true,
       {"loop", "outcome"},
       {},
       "Polls by how they ended: came, something came; not_came, nothing came within the time; "
       "displaced, other threads needed the processor."},
  };
}

std::vector<MetricInfo> make_infos() {
  std::vector<MetricInfo> all;
  for (const auto& infos :
       {daemon_infos(), operation_infos(), chunk_infos(), flow_infos(), link_infos(), job_infos(),
        trouble_infos(), tuning_infos(), guard_infos(), loop_infos(), gpu_infos()}) {
    all.insert(all.end(), infos.begin(), infos.end());
  }
  return all;
}

}  // namespace

std::span<const MetricInfo> metric_infos() {
  static const std::vector<MetricInfo> infos = make_infos();
  return infos;
}

const MetricInfo& metric_info(Metric metric) {
  const MetricInfo& info = metric_infos()[static_cast<size_t>(metric)];
  BRAID_ASSERT(info.metric == metric, "the table stands in the order of the enum");
  return info;
}

std::string reason_label(StatusCode code) {
  std::string label = status_code_name(code);
  std::transform(label.begin(), label.end(), label.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return label;
}

std::string print_metrics_markdown() {
  std::string out = "| metric | type | labels | meaning |\n|---|---|---|---|\n";
  for (const MetricInfo& info : metric_infos()) {
    std::string labels = fmt::format("{}", fmt::join(info.labels, ", "));
    if (!info.label_values.empty()) {
      labels += fmt::format(": {}", fmt::join(info.label_values, ", "));
    }
    out += fmt::format("| `{}` | {} | {} | {} |\n", info.name,
                       info.is_counter ? "counter" : "gauge", labels, info.help);
  }
  return out;
}

}  // namespace braid
