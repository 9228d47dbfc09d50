// SPDX-License-Identifier: Apache-2.0
#include "daemon/daemon_metrics.h"

#include <algorithm>
#include <cmath>

#include "loop/loop.h"
#include "net/transport.h"
#include "operation/engine_pool.h"
#include "planning/guard_board.h"
#include "planning/job_tuning.h"

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

  void add_engines(const EnginePool& engines) {
    const EngineCounters engine = engines.counters();
    add(Metric::Units, engine.units_done);
    add(Metric::ChunksDiscarded, engine.chunks_duplicate, {"duplicate"});
    add(Metric::ChunksDiscarded, engine.chunks_stale, {"stale"});
    add(Metric::ChunksDiscarded, engine.chunks_malformed, {"malformed"});
  }

  void add_rounds(const Loop& loop) {
    const LoopCounters rounds = loop.counters();
    add(Metric::LoopLongRounds, rounds.long_rounds, {loop.name()});
    add_real(Metric::LoopLongestRound, static_cast<double>(rounds.longest_round_ns) / 1e9,
             {loop.name()});
    const PollingCounters polling = loop.polling_counters();
    add_real(Metric::PollingSeconds, static_cast<double>(polling.polled_ns) / 1e9, {loop.name()});
    add(Metric::Polls, polling.came, {loop.name(), "came"});
    add(Metric::Polls, polling.not_came, {loop.name(), "not_came"});
    add(Metric::Polls, polling.displaced, {loop.name(), "displaced"});
  }

  std::vector<MetricSample> take() && { return std::move(samples_); }

 private:
  std::vector<MetricSample> samples_;
};

}  // namespace

std::vector<MetricSample> daemon_samples(const DaemonGauges& gauges, const Transport& transport,
                                         const EnginePool& engines, const TuningCounters& tuning,
                                         const GuardBoard& guard,
                                         std::span<const Loop* const> loops) {
  Samples samples;
  samples.add_gauges(gauges);
  samples.add_tuning(tuning);
  samples.add_guard(guard);
  samples.add_wire(transport);
  samples.add_engines(engines);
  for (const Loop* loop : loops) samples.add_rounds(*loop);
  return std::move(samples).take();
}

}  // namespace braid
