// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace braid {

// `given`, else $BRAID_SOCKET, else where the packages put it.
std::string daemon_socket_path(const std::string& given);

// Plans and tunings: what one's own jobs say, and how many jobs are other users'.
struct JobsReply {
  std::string json;
  uint32_t jobs_hidden = 0;
};

// Asks the daemon behind `socket_path` for its status, as JSON (metrics/status.h). Blocks, at most
// `timeout_ms`.
Result<std::string> query_status(const std::string& socket_path, uint32_t timeout_ms);
// The same for the plans of the jobs of this name on its node, or of all jobs if it is empty
// (plan/live_plan.h).
Result<JobsReply> query_plans(const std::string& socket_path, const std::string& job_name,
                              uint32_t timeout_ms);
// The same for what all of their nodes know of their steps (explain/node_facts.h): takes up to
// three seconds where a node does not answer.
Result<JobsReply> query_facts(const std::string& socket_path, const std::string& job_name,
                              uint32_t timeout_ms);
// The same for the timelines of their latest steps (timeline/node_timeline.h): a JSON array of
// JobTimelines.
Result<JobsReply> query_timelines(const std::string& socket_path, const std::string& job_name,
                                  uint32_t steps, uint32_t timeout_ms);
// The same for their tuning: see docs/tuning.md.
Result<JobsReply> query_tuning(const std::string& socket_path, const std::string& job_name,
                               uint32_t timeout_ms);
// How the way to the daemon at host:port is (check/path_facts.h); takes up to 45 s. port 0: the one
// of this daemon. `measure_ms`: that each of four measurements takes; 0: none is made.
Result<std::string> query_path(const std::string& socket_path, const std::string& host,
                               uint16_t port, uint32_t measure_ms, uint32_t timeout_ms);

}  // namespace braid
