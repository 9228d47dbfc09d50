// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "metrics/families.h"
#include "metrics/status.h"
#include "proto/types.h"

namespace braid {

class EnginePool;
class FindingsBoard;
struct FlowStatus;
class GpuWatch;
class GuardBoard;
class JobBoard;
class Loop;
struct TuningCounters;
class Transport;

// The control loop's numbers where a scrape can read them: the loop stores them each time before it
// sleeps.
struct DaemonGauges {
  std::atomic<uint64_t> jobs{0};
  std::atomic<uint64_t> client_connections{0};
  std::atomic<uint64_t> control_peers{0};
  std::atomic<uint64_t> control_messages_sent{0};
  std::atomic<uint64_t> control_messages_received{0};
  std::atomic<uint64_t> control_reconnects{0};
  std::atomic<uint64_t> control_frames_rejected{0};
  std::atomic<uint64_t> control_messages_rejected{0};
  std::atomic<uint64_t> operations_pending{0};
  std::atomic<uint64_t> operation_bytes{0};
  std::atomic<uint64_t> result_memory_bytes{0};
  std::atomic<uint64_t> result_memory_max{UINT64_MAX};  // this: there is no bound
  std::atomic<uint64_t> rejected_clients{0};
  std::atomic<uint64_t> descriptors_closing{0};
  std::atomic<uint64_t> rejected_peers{0};
  std::array<std::atomic<uint64_t>, kCollectiveCount> operations{};
  std::array<std::atomic<uint64_t>, kStatusCodeMax + 1> job_failures{};
};

// Who has the numbers.
struct DaemonSources {
  const DaemonGauges& gauges;
  const Transport& transport;
  const EnginePool& engines;
  const TuningCounters& tuning;
  const GuardBoard& guard;
  const JobBoard& jobs;
  const FindingsBoard& findings;
  const GpuWatch* gpus;  // nullptr: they are not watched
  std::span<const Loop* const> loops;
};

// Everything that /metrics shows. Any thread.
std::vector<MetricSample> daemon_samples(const DaemonSources& sources);

// Adds to a status what any thread may find out: flows as they were told, counters, processor time.
void add_numbers(DaemonStatus& status, const std::vector<FlowStatus>& flows,
                 const DaemonSources& sources);

}  // namespace braid
