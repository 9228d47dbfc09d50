// SPDX-License-Identifier: Apache-2.0
#include "metrics/status.h"

#include <nlohmann/json.hpp>

#include "gpu/gpu_facts_json.h"

namespace braid {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(DaemonStatus::Node, name, id, address)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(DaemonStatus::Flow, peer, direction, io_loop, flow,
                                                rail, state, bytes_sent, bytes_received, failures,
                                                error, round_trip_ms, bytes_per_second,
                                                path_round_trip_ms, segments_resent)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(DaemonStatus::JobNode, name, address, ranks, rack)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(DaemonStatus::LocalRank, rank, pid, uid,
                                                arena_memory_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(DaemonStatus::Work, rank, work, updates,
                                                interval_seconds, seconds, wait_seconds,
                                                planned_seconds, makespan_seconds, bound_seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(DaemonStatus::DuelFound, pays, gain, duels)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(DaemonStatus::Job, name, epoch, state, world_size,
                                                weight, nodes, local_ranks, operations_done,
                                                steps_done, operations_pending, bytes,
                                                arena_memory_bytes, result_memory_bytes,
                                                result_memory_used_bytes, planned_steps,
                                                step_seconds, exposed_seconds, work, polling,
                                                few_flows)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(DaemonStatus::Peer, name, address, port)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(DaemonStatus::Polling, mode, seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(DaemonStatus::Processor, seconds, wait_seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(DaemonStatus, version, node, uptime_seconds,
                                                polling, processor, transport, rails, rails_down,
                                                gpus, gpus_silent_seconds, flows, jobs, jobs_hidden,
                                                peers, counters)

std::string to_json(const DaemonStatus& status) {
  // Names come from users and may be no UTF-8; a status must not fail for that.
  return nlohmann::json(status).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string flows_json(const std::vector<DaemonStatus::Flow>& flows) {
  return nlohmann::json(flows).dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<DaemonStatus> parse_status(std::string_view json) {
  try {
    return nlohmann::json::parse(json).get<DaemonStatus>();
  } catch (const nlohmann::json::exception& error) {
    return make_status(StatusCode::Protocol, "the status is not what braidctl expects: {}",
                       error.what());
  }
}

}  // namespace braid
